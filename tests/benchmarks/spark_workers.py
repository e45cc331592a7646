"""Clusters on this machine whose workers have a core each, and what their processors have spent."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def session_of(master: str, **conf: str) -> Any:
    """Return a session that has the source of one row as well."""
    import spark_peers
    from pyspark import cloudpickle

    from tensorlake_spark.spark import local_session

    cloudpickle.register_pickle_by_value(spark_peers)  # executors do not have this folder
    settings = {"spark.driver.memory": "4g", "spark.driver.maxResultSize": "0", **conf}
    spark = local_session(master, **settings)
    spark.dataSource.register(spark_peers.OneRow)
    return spark


def cluster(count: int) -> Any:
    """Return a session with so many workers, each a process of one core."""
    os.environ["SPARK_HOME"] = str(Path(__import__("pyspark").__file__).parent)
    # The driver has no core of its own here: what its JVM compiles, it compiles on a worker's.
    conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = session_of(f"local-cluster[{count},1,1024]", **conf)
    pin_executors(spark, count)
    return spark


def pin_executors(spark: Any, count: int) -> None:
    """Give every executor a core of its own, with what it starts: its Python would take others as well."""
    status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    while status().size() < count + 1:  # the driver is one of them
        time.sleep(0.05)
    ours = executors()
    if len(ours) != count:
        raise AssertionError(f"{len(ours)} executors of {count}")
    cores = sorted(os.sched_getaffinity(0))
    for number, entry in enumerate(ours):
        for thread in (entry / "task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), {cores[number % len(cores)]})


def executors() -> list[Path]:
    """Return the folders in /proc of the executors that this process started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            command = (entry / "cmdline").read_bytes()
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if b"CoarseGrainedExecutorBackend" in command and b"java" in command:
                found.append((int(parent), entry))
    return [entry for parent, entry in found if parent in family()]


def workers_of() -> dict[int, float]:
    """Return for every executor the processor time that it and its Python have taken, in seconds."""
    return processor_time()[1]


def processor_time() -> tuple[float, dict[int, float]]:
    """Return the processor time that driver and executors have taken, each with what it started, in seconds."""
    parents, spent = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            # Its own, and that of children that have ended.
            spent[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found = {int(entry.name): 0.0 for entry in executors()} | {os.getpid(): 0.0}
    for pid, seconds in spent.items():
        above: int | None = pid
        while above is not None and above not in found:
            above = parents.get(above)
        if above is not None:
            found[above] += seconds
    return found.pop(os.getpid()), found


def family() -> set[int]:
    """Return the ids of this process and of all that it, or one of those, started."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(stat[1])
    found, size = {os.getpid()}, 0
    while size != len(found):
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found
