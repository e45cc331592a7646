"""Errors of ours that were raised inside Spark's tasks, as the caller should see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tensorlake_spark import errors
from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError, TensorLakeError

_OURS = re.compile(r"tensorlake_spark\.errors\.(\w+): (.*)")
_NO_S3A = re.compile(r'S3AFileSystem not found|No FileSystem for scheme "s3a"')
_DATA = re.compile(r"\[([A-Z_.]+)\] (.*?) SQLSTATE: 22", re.DOTALL)


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
    refused = _DATA.search(text)
    if refused:
        message = " ".join(refused[2].split())
        return InvalidTensorError(f"{message} ({refused[1]}, in --column or --where)")
    return None
