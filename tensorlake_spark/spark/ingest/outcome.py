"""What an ingestion is about to do, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorlake_spark.delta.files.compacting.compaction import OptimizeReport
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.ingest.source_files import exists, files_of
from tensorlake_spark.tensor.spec import TensorSpec

DONE, REPEATED, PLANNED = "done", "repeated", "planned"
"""What an ingestion ends with: it wrote, an earlier run had written the batch, it was only a plan."""


@dataclass(frozen=True)
class Plan:
    """What would be written.

    Attributes
    ----------
    files : tuple of str
        The sources, in order.
    tensors : tuple of TensorSpec
        As they would be in the table afterwards: of an append the whole tensor.
    added : tuple of (tuple of int)
        For every tensor the shape of what is added to it, or written afresh.
    partitions : int
        Tasks that write at the most.
    records : int, or None
        Of cells how many records there are; None for arrays.
    tells_layout : bool
        Whether layout and blocks are known; of a tensor for each file, ``layout="auto"`` and the blocks of a
        sparse layout follow how full it is, which is asked when it is written.
    """

    files: tuple[str, ...]
    tensors: tuple[TensorSpec, ...]
    added: tuple[tuple[int, ...], ...]
    partitions: int
    records: int | None = None
    tells_layout: bool = True

    def rows(self) -> list[dict[str, Any]]:
        """Return the tensors as a scheduler reads them."""
        out = []
        for spec, added in zip(self.tensors, self.added, strict=True):
            row = {"id": spec.id, "shape": spec.shape, "dtype": spec.dtype.name, "added": added}
            if self.tells_layout:
                row |= {"layout": spec.layout, "block_shape": spec.block_shape or None}
            out.append({**row, "bytes": raw_bytes(added, spec)})
        return out

    def lines(self, source_bytes: int) -> list[str]:
        """Return the plan as people read it; the sources have so many bytes."""
        some = [*self.files[:3], *(["..."] if len(self.files) > 3 else [])]
        out = [f"{len(self.files)} source(s), {size_text(source_bytes)}: {', '.join(some)}"]
        for spec, added in zip(self.tensors, self.added, strict=True):
            blocks = f" in blocks of {spec.block_shape}" if spec.block_shape else ""
            stored = f"{spec.layout}{blocks}" if self.tells_layout else "stored by how full it is"
            more = "" if added == spec.shape else f", of which {added} is added"
            if self.records is None:
                size = f"{size_text(raw_bytes(added, spec))} before compression"
            else:
                size = f"{self.records} records"
            out.append(f"{spec.id}: shape {spec.shape}{more}, {spec.dtype}, {stored}, {size}")
        return [*out, f"{len(self.tensors)} tensor(s), in at most {self.partitions} partition(s)"]


@dataclass(frozen=True)
class Skipped:
    """A source that was left out, and why."""

    source: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What came of an ingestion.

    Attributes
    ----------
    status : str
        `DONE`, `REPEATED` or `PLANNED`.
    metas : tuple of Meta
        The tensors that were written, or that are there already; none of a plan.
    plan : Plan, or None
        What would be done; of arrays also what was done.
    version : int, or None
        Of the table; None of a plan.
    files : tuple of str
        The sources; none where an earlier run had read them.
    source_bytes : int
        Their bytes.
    skipped : tuple of Skipped
        The sources that are bad and were left out.
    pieces, reused : int, or None
        Of a job that can be resumed in how many pieces it is written, and how many earlier runs had written.
    compacted : OptimizeReport, or None
        What was brought together afterwards; None where that was not asked for, or failed.
    compaction_error : Exception, or None
        Why that failed; what was written is in the table all the same.
    """

    status: str
    metas: tuple[Meta, ...] = ()
    plan: Plan | None = None
    version: int | None = None
    files: tuple[str, ...] = ()
    source_bytes: int = 0
    skipped: tuple[Skipped, ...] = ()
    pieces: int | None = None
    reused: int | None = None
    compacted: OptimizeReport | None = None
    compaction_error: Exception | None = None


def raw_bytes(shape: Sequence[int], spec: TensorSpec) -> int:
    """Return the bytes of all elements of an array of `shape`, as they are before compression."""
    count = spec.dtype.itemsize
    for length in shape:
        count *= length
    return count


def bytes_of(files: Sequence[str]) -> int:
    """Return the bytes of files and folders, each counted once."""
    return sum(size_of(path) for path in dict.fromkeys(files))


def size_of(path: str) -> int:
    """Return the bytes of a file, or of all files of a folder; 0 where they are gone."""
    path = path.partition("::")[0] if not exists(path) else path
    return sum(size for size, _ in files_of(path).sizes(path))
