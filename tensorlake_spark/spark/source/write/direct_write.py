"""Writes without a detour: the tasks that make slabs or tensors encode them at once, and tell the driver.

``df.write.format("tensor")`` hands every row from Python to the JVM and back to Python. Here the writer is the
same, but its tasks are those that read the sources; only names and statistics of files leave them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.task_notes import from_text, to_text
from tensorlake_spark.spark.source.write.source_writer import TensorWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def save(
    tasks: DataFrame,
    make: Make,
    schema: StructType,
    settings: Mapping[str, str],
    overwrite: bool,
) -> None:
    """Write what `make` yields as ``format("tensor")`` would, in one commit.

    Parameters
    ----------
    tasks : DataFrame
        What `make` takes, one partition for every task.
    make : callable
        Yields slabs or tensors, as batches of `schema`; runs where the tasks do.
    schema : StructType
        ``lo, tensor``, or ``id, tensor``.
    settings : mapping of str to str
        The options of a write, with ``path``.
    overwrite : bool
        As the mode of a write: whether tensors that are there are replaced.
    """
    writer = TensorWriter(SparkWriteOptions.parse(settings), schema, overwrite)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = writer.write(make(batches))
        assert isinstance(told, TensorCommitMessage)  # nosec B101 # for mypy
        yield pa.RecordBatch.from_pydict({"told": [to_text(told)]})

    try:
        rows = tasks.mapInArrow(write, "told string").collect()
        messages = [from_text(row.told) for row in rows]
        if None in messages:
            raise CorruptDataError("what a task told was damaged on its way; run the job again")
    except BaseException:
        writer.abort([])
        raise
    writer.commit(list(messages))
