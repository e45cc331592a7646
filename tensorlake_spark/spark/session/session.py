"""A local Spark session with Delta and the settings of ``conf/spark-defaults.conf``."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tensorlake_spark.delta.store.storage import put_file
from tensorlake_spark.errors import MissingDependencyError
from tensorlake_spark.spark.cluster.s3a import is_secret, to_hadoop
from tensorlake_spark.spark.session.java import java_problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("tensorlake_spark")

CONF = files("tensorlake_spark.spark") / "conf"
"""Folder of the settings, perhaps in an archive; ``conf`` at the top of a checkout is a link to it."""


def default_settings(s3: bool = False) -> dict[str, str]:
    """Return the settings of ``conf/spark-defaults.conf``, with `s3` those of ``conf/s3a.conf`` over them.

    Examples
    --------
    >>> default_settings()["spark.sql.extensions"]
    'io.delta.sql.DeltaSparkSessionExtension'
    """
    out = {}
    for file in ("spark-defaults.conf", "s3a.conf") if s3 else ("spark-defaults.conf",):
        for line in (CONF / file).read_text().splitlines():
            name, _, value = line.strip().partition(" ")
            if name and not name.startswith("#"):
                out[name] = value.strip()
    return out


def check_missing(error: ImportError) -> None:
    """Raise MissingDependencyError, which says what to install, if an import failed because Spark is missing.

    Examples
    --------
    >>> check_missing(ModuleNotFoundError("No module named 'pyspark'", name="pyspark"))
    Traceback (most recent call last):
    tensorlake_spark.errors.MissingDependencyError: Spark is not installed: pip install 'tensorlake-spark[spark]'
    """
    if (error.name or "").partition(".")[0] == "pyspark":
        raise MissingDependencyError(
            "Spark is not installed: pip install 'tensorlake-spark[spark]'"
        ) from error


def local_session(
    master: str = "local[2]",
    app_name: str = "tensorlake",
    s3: bool | Mapping[str, str] = False,
    **conf: Any,
) -> SparkSession:
    """Start Spark on this machine, with Delta and ``format("tensor")``, and return the session.

    Parameters
    ----------
    master : str
        Where Spark runs.
    app_name : str
        The name of the application.
    s3 : bool or mapping
        Whether Spark's own readers can read ``s3a://``, with the jars and settings of ``conf/s3a.conf``. A mapping
        is ``storage_options``, as for `tensorlake_spark.open`; Spark and ``format("tensor")`` both use it. What it
        leaves open comes from the environment. Keys are set after the session has started, so that they are not
        on the command line of its JVM. Other sessions of the same process, and RDDs of text files, do not have
        them.
    **conf
        Settings that override those of ``conf/spark-defaults.conf``. Their names have dots, so write
        ``local_session(**{"spark.sql.shuffle.partitions": 4})``.

    Raises
    ------
    MissingDependencyError
        If pyspark or Java is missing. The message says what to install.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        check_missing(error)
        raise
    problem = java_problem()
    if problem:
        raise MissingDependencyError(problem)
    # Without these, workers take the system's python3, which has no pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    is_s3 = s3 is not False
    settings = {
        **default_settings(is_s3),
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "tensorlake-warehouse"),
    }
    logging = CONF / "log4j2.properties"
    if isinstance(logging, Path):  # Java does not read it out of an archive
        place = logging.as_uri()  # a URI, as the folder's name may have blanks
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={place}"
    if not any(name.startswith("spark.jars") for name in conf):
        settings["spark.jars"] = ",".join(fetch(is_s3))
        del settings["spark.jars.packages"], settings["spark.jars.excludes"]
    if is_s3:
        known = to_hadoop(s3 if isinstance(s3, Mapping) else {})
        settings |= {f"spark.hadoop.{name}": value for name, value in known.items()}
    settings |= {name: str(value) for name, value in conf.items()}
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName(app_name)
    # What the JVM is started with stands on its command line, which everybody on the machine can read.
    secret = {name: value for name, value in settings.items() if is_secret(name)}
    for name, value in settings.items():
        if name not in secret:
            builder = builder.config(name, value)
    with _no_orphan():
        session: SparkSession = builder.getOrCreate()
    for name, value in secret.items():
        session.conf.set(name.removeprefix("spark.hadoop."), value)
    from tensorlake_spark.spark.source.data_source import register

    register(session)
    return session


@contextmanager
def _no_orphan() -> Iterator[None]:
    """Let Ctrl-C wait until the JVM is there: one whose start PySpark gave up does not notice that Python has ended.

    A second Ctrl-C does not wait.
    """
    from pyspark import SparkContext

    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = False

    def wait(number: int, frame: Any) -> None:
        nonlocal waiting
        if SparkContext._gateway is None and not waiting:
            waiting = True
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            before(signal.SIGINT, None)


def fetch(s3: bool = False) -> list[str]:
    """Return the URLs of the jars that `default_settings` names, fetched once by Spark's own Ivy.

    They lie where Ivy keeps them for every Spark of this user, so ``spark-submit --properties-file`` finds
    them too; which ones they are is noted in ``~/.cache/tensorlake-spark``, or where ``TENSORLAKE_CACHE``
    says. A session that is given the files starts faster than one that resolves them, without pages of
    Ivy's messages, and needs no network.

    Raises
    ------
    MissingDependencyError
        If they cannot be fetched; the message ends with what Ivy said.
    """
    wanted = {k: v for k, v in default_settings(s3).items() if k.startswith("spark.jars")}
    key = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("TENSORLAKE_CACHE", Path.home() / ".cache" / "tensorlake-spark"))
    note = cache / f"jars-{key}.json"
    if note.exists():
        urls: list[str] = json.loads(note.read_text())
        if all(os.path.exists(unquote(urlsplit(url).path)) for url in urls):
            return urls
    done = subprocess.run(  # nosec B603 # no shell; our own text
        [sys.executable, "-c", _FETCH],
        input=json.dumps(wanted),
        env={"SPARK_LOCAL_IP": "127.0.0.1", **os.environ},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise MissingDependencyError(
            f"Spark could not fetch {wanted['spark.jars.packages']}; where Maven Central is not reached, "
            "set the environment variable DEFAULT_ARTIFACT_REPOSITORY to a mirror of it. It said:\n"
            f"{(done.stdout + done.stderr)[-2000:]}"
        )
    urls = done.stdout.splitlines()[-1].split(",")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        put_file(str(note), json.dumps(urls, indent=0).encode())  # another process may be reading
    except OSError as error:  # the jars are there
        logger.warning(
            "%s cannot be written, and each session looks for its jars anew: %s; name another folder by "
            "TENSORLAKE_CACHE",
            note,
            error.strerror,
        )
    return urls


# A session of its own, in a process of its own: the JVM of this one must not start before it has its jars.
_FETCH = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = builder.config(map=json.load(sys.stdin)).getOrCreate()
urls = session.conf.get("spark.jars")
session.stop()
print(urls)
"""
