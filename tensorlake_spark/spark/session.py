"""A local Spark session with Delta and the settings of ``conf/spark-defaults.conf``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlake_spark.errors import MissingDependencyError
from tensorlake_spark.spark.java import java_problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = Path(str(files("tensorlake_spark.spark"))) / "conf"
"""Folder of the settings; ``conf`` at the top of a checkout is a link to it."""


def default_settings() -> dict[str, str]:
    """Return the settings of ``conf/spark-defaults.conf``.

    Examples
    --------
    >>> default_settings()["spark.sql.extensions"]
    'io.delta.sql.DeltaSparkSessionExtension'
    """
    out = {}
    for line in (CONF / "spark-defaults.conf").read_text().splitlines():
        name, _, value = line.strip().partition(" ")
        if name and not name.startswith("#"):
            out[name] = value.strip()
    return out


def local_session(
    master: str = "local[2]", app_name: str = "tensorlake", **conf: Any
) -> SparkSession:
    """Return a local session with Delta and ``format("tensor")``.

    Parameters
    ----------
    master : str
        Where it runs.
    app_name : str
        Its name.
    **conf
        Settings that win over those of ``conf/spark-defaults.conf``; their names have dots, so write
        ``local_session(**{"spark.sql.shuffle.partitions": 4})``.

    Raises
    ------
    MissingDependencyError
        If pyspark or Java is missing; the message says what to install.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "Spark is not installed: pip install 'tensorlake-spark[spark]'"
        ) from error
    problem = java_problem()
    if problem:
        raise MissingDependencyError(problem)
    # Without these, workers take the system's python3, which has no pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        **default_settings(),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{CONF / 'log4j2.properties'}",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "tensorlake-warehouse"),
    }
    if not any(name.startswith("spark.jars") for name in conf):
        settings["spark.jars"] = ",".join(jars(settings["spark.jars.packages"]))
        del settings["spark.jars.packages"], settings["spark.jars.excludes"]
    settings |= {name: str(value) for name, value in conf.items()}
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    from tensorlake_spark.spark.source import register

    register(session)
    return session


def jars(packages: str) -> list[str]:
    """Return the jars of `packages`, fetched once by Spark's own Ivy and then kept.

    They lie in ``~/.cache/tensorlake-spark``, or where ``TENSORLAKE_CACHE`` says. A session that is given
    the files starts faster than one that resolves them, without pages of Ivy's messages, and needs no
    network.

    Raises
    ------
    MissingDependencyError
        If they cannot be fetched; the message ends with what Ivy said.
    """
    cache = Path(os.environ.get("TENSORLAKE_CACHE", Path.home() / ".cache" / "tensorlake-spark"))
    folder = cache / re.sub(r"[^\w.-]+", "_", packages)
    done = folder / "complete"
    if not done.exists():
        script = (
            "import sys; from pyspark.sql import SparkSession; b = SparkSession.builder.master('local[1]')\n"
            "for a in sys.argv[1:]: b = b.config(*a.split('=', 1))\n"
            "b.getOrCreate().stop()"
        )
        excludes = default_settings()["spark.jars.excludes"]
        run = subprocess.run(
            [
                sys.executable, "-c", script, f"spark.jars.packages={packages}",
                f"spark.jars.excludes={excludes}", f"spark.jars.ivy={folder}", "spark.ui.enabled=false",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if run.returncode:
            raise MissingDependencyError(
                f"Spark could not fetch {packages}; where Maven Central is not reached, set the "
                "environment variable DEFAULT_ARTIFACT_REPOSITORY to a mirror of it. It said:\n"
                f"{(run.stdout + run.stderr)[-2000:]}"
            )
        done.touch()
    return sorted(str(path) for path in (folder / "jars").glob("*.jar"))


if __name__ == "__main__":
    # What `make setup` runs, so that no later run needs the network.
    jars(default_settings()["spark.jars.packages"])
    print("Spark's jars are ready.")
