"""Tasks: how many there are, and which rows of a list each of them takes.

A shuffle would spread rows too, after a job that looks at them; tasks that know their numbers need neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = TypeVar("Row")

TASKS = 4
"""For every core."""

_LEAST_BYTES = 32 << 20
_OPEN_BYTES = 4 << 20


def numbers(session: SparkSession, count: int) -> DataFrame:
    """Return a DataFrame of so many partitions, one row in each: its number (``id bigint``)."""
    return session.range(0, count, 1, count)


def share(
    rows: Sequence[Row], count: int, make: Callable[[Sequence[Row]], Iterator[pa.RecordBatch]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what makes batches of rows where `numbers` are: each task takes its share, neighbours in order.

    The rows travel with the code.

    Examples
    --------
    >>> made = share("abcde", 2, lambda some: iter([pa.RecordBatch.from_pydict({"of": [some]})]))
    >>> [b.column(0).to_pylist() for b in made(iter([pa.RecordBatch.from_pydict({"id": [1]})]))]
    [['cde']]
    """

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from make(
                    rows[len(rows) * number // count : len(rows) * (number + 1) // count]
                )

    return made


def tasks_of(rows: int, files: int, nbytes: int, cores: int, file_bytes: int) -> int:
    """Return how many tasks share the writing of arrays: all cores have work, and files become large.

    A task writes files of its own, which are no larger than what it reads. So there are as many tasks as
    files of the target size would be, up to four for every core, which evens them out. For less than that
    there is one for every core as long as each has 32 MiB to read: about a second's work, and what more
    tasks would save, readers would pay for with more files. To open a source counts as 4 MiB, as in Spark
    (``spark.sql.files.openCostInBytes``): many small ones are slow to read on a store.

    Parameters
    ----------
    rows : int
        Pieces that a task can take.
    files : int
        Sources that are opened.
    nbytes : int
        Bytes of their elements.
    cores : int
        Tasks that run at a time.
    file_bytes : int
        Target size of a data file.

    Examples
    --------
    >>> [tasks_of(120, 1, 2 << 30, cores, 128 << 20) for cores in (1, 2, 8, 40, 400)]
    [4, 8, 16, 40, 65]
    >>> tasks_of(1000, 1000, 1000 << 10, 8, 128 << 20)
    8
    >>> tasks_of(16, 1, 20 << 20, 8, 128 << 20)
    1
    """
    full = -(-nbytes // file_bytes)
    least = min(file_bytes, _LEAST_BYTES)
    busy = min(cores, -(-(nbytes + files * _OPEN_BYTES) // least))
    return max(1, min(rows, TASKS * cores, max(full, busy)))


def cores_of(session: SparkSession) -> int:
    """Return how many tasks run at a time."""
    cores = int(session.conf.get("spark.default.parallelism", "2") or 2)
    with contextlib.suppress(Exception):  # Spark Connect has no such thing
        cores = max(cores, session.sparkContext.defaultParallelism)
    return cores
