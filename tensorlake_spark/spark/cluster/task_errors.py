"""Errors of ours that were raised inside Spark's tasks, as the caller should see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorlake_spark import errors
from tensorlake_spark.errors import (
    InvalidTensorError,
    MissingDependencyError,
    StorageError,
    TensorLakeError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = re.compile(r"tensorlake_spark\.errors\.(\w+): (.*)")
_NO_S3A = re.compile(r'S3AFileSystem not found|No FileSystem for scheme "s3a"')
_DATA = re.compile(r"\[([A-Z_.]+)\] (.*?) SQLSTATE: 22", re.DOTALL)

# What Spark logs of a task that failed: lines whose text has the traceback, and loggers that add it to theirs.
_TOLD = r"(?s).*(tensorlake_spark\.errors\.|; aborting job).*"
_TELLING = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution.datasources.v2",
)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise our own error where Spark wrapped it, and one of ours for a value that an expression refused.

    PySpark raises what a task raised as one of its own exceptions, whose text is the task's traceback. Our
    error is the last line of it. Inside of this block it is raised as what it is, with one line of text; the
    exception of PySpark is its ``__cause__``.

    Examples
    --------
    ::

        with plain_errors():
            df.write.format("tensor").mode("append").option("id", "x").save(path)
    """
    try:
        yield
    except TensorLakeError:
        raise
    except Exception as error:
        plain = plain_error(error)
        if plain is None:
            raise
        raise plain from error


def plain_error(error: Exception) -> TensorLakeError | None:
    """Return our own error that is inside of one of Spark's, None if there is none."""
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        kind = getattr(errors, name, TensorLakeError)
        found: TensorLakeError = kind(message)
        return found
    if _NO_S3A.search(text):
        return MissingDependencyError(
            "Spark itself reads CSV, Parquet, .tns and Delta tables, and this session does not know s3a://: start "
            "spark-submit with the packages and settings of conf/s3a.conf, see docs/object_stores.md"
        )
    if "No space left on device" in text:  # of a disk of ours, our own error tells it
        return StorageError(
            "a disk where Spark keeps its temporary files is full, and what was committed before is as it was: free "
            "some space in the folders of SPARK_LOCAL_DIRS, spark.local.dir or TMPDIR, or name others, and do it again"
        )
    refused = _DATA.search(text)
    if refused:
        message = " ".join(refused[2].split())
        return InvalidTensorError(
            f"{message} ({refused[1]}, in --column, --where or a sum of --value)"
        )
    return None


@contextmanager
def quiet_tasks(session: SparkSession, is_quiet: bool = True) -> Iterator[None]:
    """Keep tracebacks of tasks out of the driver's log, where the job tells a mistake in one line of its own.

    What made a task fail is in the exception that the job gets. Executors elsewhere keep logs of their own, and
    these are as they were.

    Parameters
    ----------
    session : SparkSession
        The job's. Of Spark Connect the driver is another process, whose log is left alone.
    is_quiet : bool
        False leaves everything as it is, as for ``--debug``.
    """
    jvm: Any = getattr(session, "_jvm", None) if is_quiet else None
    if jvm is None:
        yield
        return
    from pyspark.logger import PySparkLogger

    # With the stack of the JVM. PySpark has to make it: it calls it in a way that loggers of other classes refuse.
    python = PySparkLogger.getLogger("SQLQueryContextLogger")
    was_disabled, python.disabled = python.disabled, True
    core = jvm.org.apache.logging.log4j.core
    result = core.Filter.Result
    context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
    config = context.getConfiguration()
    told = core.filter.RegexFilter.createFilter(_TOLD, None, False, result.DENY, result.NEUTRAL)
    levels = {name: config.getLoggerConfig(name).getLevel() for name in _TELLING}
    config.addFilter(told)
    for name in _TELLING:
        core.config.Configurator.setLevel(name, jvm.org.apache.logging.log4j.Level.OFF)
    context.updateLoggers()
    try:
        yield
    finally:
        python.disabled = was_disabled
        config.removeFilter(told)
        for name, level in levels.items():
            core.config.Configurator.setLevel(name, level)
        context.updateLoggers()
