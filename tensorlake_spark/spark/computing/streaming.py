"""A computed tensor goes to the lake: executors compute and write parts of it, the driver makes the one commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.computing.writing_results import free_id
from tensorlake_spark.delta.files.runner import Output
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard, marked
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.spark.cluster.tasks import cores_of, tasks_of
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.pipeline import put, recomputed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEQ_BITS = 32  # so many places in a tensor's storage order are a task's own


def stream(
    session: SparkSession, source: Mapped, storage: Storage, tensor_id: str, layout: str
) -> Snapshot:
    """Write a computed tensor by a session's executors, in one commit; return the version that has it.

    Nothing is there before the commit. What tasks have written is deleted if it fails; what a task wrote whose Python
    was lost is for vacuum.

    Parameters
    ----------
    session : SparkSession
        Whose executors compute and write.
    source : Mapped
        The tensor.
    storage : Storage
        The table.
    tensor_id, layout : str
        What it becomes.

    Raises
    ------
    TensorExistsError
        If there is a tensor of this id.
    ConcurrentWriteError
        If another writer made one meanwhile; nothing is committed.
    """
    now = free_id(storage, tensor_id)
    number = now.transaction(app_of(tensor_id))
    spec = new_spec(tensor_id, source, WriteOptions(layout=layout))
    tasks = _tasks(source, spec, cores_of(session), now.file_bytes)
    mark = f"{uuid.uuid4().hex[:16]}-"
    work = partial(_written, source, spec, storage, now.file_bytes, mark)
    files: list[DataFile] = []
    totals = Totals()
    try:
        for _, output in run_in(session)(work, tasks):
            files += output.files
            totals += output.totals

        def change(now: Snapshot) -> Snapshot:
            with FileWriter.into(now) as writer:
                writer.add_meta([spec], [len(tasks) << _SEQ_BITS], [totals])
                adds = [*files, *writer.finish()]
                return commit(storage, Change({tensor_id: number}, adds, operation="compute"))

        return recomputed(now, tensor_id, change)
    except BaseException as error:
        discard(storage, marked(storage, mark))
        if isinstance(error, StaleChange):
            raise ConcurrentWriteError(
                f"{error} while it was computed; nothing was committed, run it again"
            ) from error
        raise


@dataclass(frozen=True)
class _Part:
    """Neighbouring boxes that one task computes, and the first of its places in the tensor's storage order."""

    boxes: tuple[Box, ...]
    place: int


@dataclass(frozen=True, eq=False)
class _Regions:
    """Some boxes of a computed tensor, as what `put` writes."""

    source: Mapped
    boxes: tuple[Box, ...]

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Any]]:
        for box in self.boxes:
            yield box.lo, self.source.part(box)


def _tasks(source: Mapped, spec: TensorSpec, cores: int, file_bytes: int) -> list[_Part]:
    """Return what each task computes: as many as files become large, and all cores have work."""
    boxes = tuple(source.boxes(spec.block_shape or None))
    nbytes = round(spec.nbytes * source.density())
    tasks = tasks_of(len(boxes), 0, nbytes, cores, file_bytes) if boxes else 0
    cuts = np.linspace(0, len(boxes), tasks + 1).astype(int).tolist()
    return [_Part(boxes[a:b], k << _SEQ_BITS) for k, (a, b) in enumerate(pairwise(cuts))]


def _written(
    source: Mapped, spec: TensorSpec, storage: Storage, file_bytes: int, mark: str, part: _Part
) -> Output:
    """Compute some boxes and write their rows to data files that no commit names yet; runs on an executor."""
    size = layout_of(spec.layout).row_group_bytes
    with FileWriter(storage, file_bytes, size, mark=mark) as writer:
        offset = (0,) * spec.ndim
        regions: Any = _Regions(source, part.boxes)
        totals = put(writer, spec, regions, offset, count(part.place), lambda _: None)
        return Output(tuple(writer.finish()), totals)
