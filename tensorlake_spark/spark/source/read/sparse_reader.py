"""Spark reads sparse tensors: rows are decoded many at a time, and their elements become rows of Spark.

Rows are cut into partitions row group by row group, as those of dense tensors are. Where rows overlap and
the tensor combines duplicates, partitions are regions of the tensor instead, so that all that is stored of
an element meets in one task; the view ``blocks`` joins overlapping boxes for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing import Selection
from tensorlake_spark.indexing.coords import unravel
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.sparse.element_keys import Gathered, unite
from tensorlake_spark.layouts.verification import box_text
from tensorlake_spark.rows.row import corners
from tensorlake_spark.spark.source.read.overlapping_rows import (
    RowBoxes,
    filtered,
    hull,
    merged,
    overlapping,
    owners,
    regions,
    row_boxes,
    within,
)
from tensorlake_spark.spark.source.read.reader import TensorPartition, TensorReader
from tensorlake_spark.spark.source.schemas import coordinate_batch
from tensorlake_spark.spark.source.sparse_blocks import Elements, Parts, block_batch, runs_of

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 64 << 20
"""A block of a sparse tensor is shown as an array up to this size."""

_DECODE = 1 << 20  # elements that are decoded at a time; one row may have more
_CELL_ROWS = 1 << 18
_BATCH_BYTES = 8 << 20
_TASK_ELEMENTS = 4 << 20  # elements whose duplicates one task combines
_DELIVERED = 128 << 20  # bytes that Spark gets of a partition, about


class SparseReader(TensorReader):
    """The views ``cells`` and ``blocks`` of a sparse tensor."""

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the slice: files by the log, row groups by their footers, overlapping rows together."""
        if self.selection.is_empty:
            return [TensorPartition()]
        if self.options.view == "blocks":
            return self._block_partitions() or [TensorPartition()]
        if self.spec.params.get("duplicates", "error") != "error":
            rows = row_boxes(self.snapshot, self.spec, self.selection)
            if overlapping(rows, np.arange(len(rows)), self.spec).any():
                return self._regions(rows) or [TensorPartition()]
        size = 8 * (self.spec.ndim + 1)
        return self._by_bytes(self._elements() * size / _DELIVERED)

    def _elements(self) -> float:
        """Return about how many elements the row groups of the plan store."""
        stored = max(1, self.totals.nbytes) / max(1, self.totals.nnz)
        return scan.plan(self.snapshot, self.spec.id, self.selection).n_bytes / stored

    def _regions(self, rows: RowBoxes) -> list[TensorPartition]:
        """Return a partition for each region; its pieces are all that may hold a row of it."""
        stored = max(1, self.totals.nbytes) / max(1, self.totals.nnz)
        limit = max(1, min(_TASK_ELEMENTS, int(self.options.partition_bytes / stored)))
        out = []
        for box in regions(rows, self.selection.box, limit, self.spec):
            part = within(self.selection, box)
            if not part.is_empty:
                pieces = scan.pieces(self.snapshot, scan.plan(self.snapshot, self.spec.id, part))
                out.append(self._partition(pieces, region=part))
        return out

    def _block_partitions(self) -> Sequence[TensorPartition]:
        """Return partitions of whole blocks, once it is known that each of them can be made."""
        spec = self.spec
        rows = row_boxes(self.snapshot, spec, self.selection)
        lo, hi = rows.lo, rows.hi
        shared = overlapping(rows, np.arange(len(rows)), spec)
        if shared.any():
            lo, hi = merged(rows, spec)
        sizes = Parts.of(self.selection, lo, hi).sizes * spec.dtype.itemsize
        if (sizes > BLOCK_BYTES).any():
            i = int(np.argmax(sizes))
            raise InvalidOptionError(
                f"a block of tensor {spec.id!r}, {box_text(lo[i], hi[i])}, layout {spec.layout}, takes "
                f"{size_text(int(sizes[i]))} as an array, the limit is {size_text(BLOCK_BYTES)}; read the "
                "stored elements with option('view', 'cells'), or a smaller slice"
            )
        if not shared.any():
            return self._by_bytes(sizes.sum() / _DELIVERED)
        out = []
        for some in runs_of(sizes, _DELIVERED):
            box = within(self.selection, hull(lo[some], hi[some]))
            pieces = scan.pieces(self.snapshot, scan.plan(self.snapshot, spec.id, box))
            out.append(self._partition(pieces, blocks=(lo[some], hi[some])))
        return out

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the elements of a partition, or its blocks, trimmed to the slice."""
        if not isinstance(partition, TensorPartition):
            return
        if self.options.view == "cells":
            batches = self._stored(partition)
        elif partition.blocks is not None:
            batches = self._merged_blocks(partition, *partition.blocks)
        else:
            batches = self._blocks(partition)
        yield from self._shown(batches)

    def _rows(
        self, partition: TensorPartition, selection: Selection
    ) -> Iterator[tuple[str, pa.RecordBatch, RowBoxes]]:
        """Yield the rows of a partition that a selection needs, a bounded number of elements at a time."""
        spec = self.spec
        columns = scan.leaves(layout_of(spec.layout).columns, spec.ndim)
        for piece in partition.pieces:
            keep = partition.keeps.get(piece.path)
            for batch in scan.read_piece(self.storage, piece, spec.id, columns, keep):
                lo, hi = corners(batch, spec.ndim)
                nnz, seq = (batch.column(name).to_numpy() for name in ("nnz", "seq"))
                hit = selection.hits(lo, hi)
                boxes = RowBoxes(lo, hi, nnz, seq).take(hit)
                batch = filtered(batch, hit)
                for some in runs_of(boxes.nnz, _DECODE):
                    part = batch.slice(some.start, some.stop - some.start)
                    yield piece.path, part, boxes.take(np.arange(some.start, some.stop))

    def _stored(self, partition: TensorPartition) -> Iterator[pa.RecordBatch]:
        """Yield stored elements; those of a region only when all of its rows are decoded."""
        layout, region = layout_of(self.spec.layout), partition.region
        selection = self.selection if region is None else region
        gathered = Gathered()
        for path, batch, _ in self._rows(partition, selection):
            with reading(self.storage, path):
                layout.decode(batch, self.spec, selection, gathered)
                if region is None:
                    yield from self._stored_batches(gathered, selection)
                    gathered = Gathered()
        yield from self._stored_batches(gathered, selection)

    def _stored_batches(self, gathered: Gathered, selection: Selection) -> Iterator[pa.RecordBatch]:
        for keys, values in unite(gathered.parts, self.spec):
            for start in range(0, len(keys), _CELL_ROWS):
                some = slice(start, start + _CELL_ROWS)
                places = unravel(keys[some], selection.storage_shape)
                yield coordinate_batch(places, values[some], selection, self.spec)

    def _blocks(self, partition: TensorPartition) -> Iterator[pa.RecordBatch]:
        """Yield a block for every row."""
        spec, selection = self.spec, self.selection
        for path, batch, rows in self._rows(partition, selection):
            parts = Parts.of(selection, rows.lo, rows.hi)
            for some in runs_of(parts.sizes * spec.dtype.itemsize, _BATCH_BYTES):
                with reading(self.storage, path):
                    piece = batch.slice(some.start, some.stop - some.start)
                    elements = Elements.of(piece, spec, selection)
                owner = _look_up(elements.seqs, rows.seq[some], np.arange(some.stop - some.start))
                yield block_batch(elements, owner, parts.take(some), spec, selection)

    def _merged_blocks(
        self, partition: TensorPartition, lo: Array, hi: Array
    ) -> Iterator[pa.RecordBatch]:
        """Yield blocks that several rows may make up; rows of other partitions are left out."""
        spec, selection = self.spec, self.selection
        found = []
        for path, batch, rows in self._rows(partition, within(selection, hull(lo, hi))):
            owner = owners(rows, lo, hi)
            ours = owner >= 0
            found.append((path, filtered(batch, ours), rows.seq[ours], owner[ours]))
        parts = Parts.of(selection, lo, hi)
        for some in runs_of(parts.sizes * spec.dtype.itemsize, _BATCH_BYTES):
            elements, blocks = [], []
            for path, batch, seqs, owner in found:
                ours = (owner >= some.start) & (owner < some.stop)
                with reading(self.storage, path):
                    elements.append(Elements.of(filtered(batch, ours), spec, selection))
                blocks.append(_look_up(elements[-1].seqs, seqs, owner - some.start))
            joined = Elements.join(elements)
            yield block_batch(joined, np.concatenate(blocks), parts.take(some), spec, selection)


def _look_up(wanted: Array, seqs: Array, numbers: Array) -> Array:
    """Return for each of the wanted places in storage order the number that goes with it."""
    by = np.argsort(seqs, kind="stable")
    return np.asarray(numbers[by][np.searchsorted(seqs[by], wanted)])
