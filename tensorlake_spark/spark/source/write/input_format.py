"""A form in which tensors arrive from Spark: what a task does with it, and what the driver makes of all tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage, Written
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

_TASK_ROWS = 32  # bits: so many places in a tensor's storage order are a task's own


class InputForm(ABC):
    """A form in which tensors arrive: what a task does, and what the driver makes of all tasks."""

    @abstractmethod
    def write(self, batches: Iterator[pa.RecordBatch], writer: FileWriter) -> list[Written]:
        """Encode one partition into data files; runs on an executor."""

    @abstractmethod
    def describe(
        self, written: Sequence[Written], files: Sequence[DataFile], snapshot: Snapshot
    ) -> list[Meta]:
        """Return the metadata of all tensors, after checking that the tasks' parts fit; runs on the driver.

        Parameters
        ----------
        written : sequence of Written
            What the tasks tell.
        files : sequence of DataFile
            Their files, which no commit names yet.
        snapshot : Snapshot
            The newest version of the table.
        """

    def settle(
        self,
        parts: Sequence[TensorCommitMessage],
        snapshot: Snapshot,
        new_writer: Callable[[], FileWriter],
    ) -> list[TensorCommitMessage]:
        """Return what the tasks wrote, once all of it is in one layout; runs on the driver, before `describe`."""
        return list(parts)

    def finish(
        self,
        metas: list[Meta],
        files: list[DataFile],
        snapshot: Snapshot,
        new_writer: Callable[[], FileWriter],
    ) -> tuple[list[Meta], list[DataFile]]:
        """Return tensors and files as they are committed; runs on the driver, after `describe`."""
        return metas, files


def first_place(base: int) -> int:
    """Return the first of the places in a tensor's storage order that belong to this task.

    Rows of a later partition come later, so that of duplicates the last one is that of the last partition.
    """
    context = TaskContext.get()
    return base + ((context.partitionId() if context is not None else 0) << _TASK_ROWS)


def encode_region(
    spec: TensorSpec,
    box: Box,
    region: Array,
    writer: FileWriter,
    seqs: Iterator[int],
) -> Totals:
    """Encode an array that lies at `box` of a tensor, and return what its rows add up to.

    Parameters
    ----------
    spec, box, region
        The tensor, and the array in it.
    writer : FileWriter
        Where the rows go.
    seqs : iterator of int
        The places of the rows in the tensor's storage order, ascending.
    """
    layout = layout_of(spec.layout)
    writer.row_group_bytes = layout.row_group_bytes
    totals = Totals()
    for part in layout.pieces(spec, box):
        here = region[part.shift([-a for a in box.lo]).slices()]
        for row in layout.encode(here, part.lo, spec):
            writer.add(spec, next(seqs), row)
            totals += Totals(1, row.nnz, row.nbytes)
    return totals
