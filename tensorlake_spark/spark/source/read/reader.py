"""Spark reads: partitions of about equal bytes, each decoded by an executor from the files themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tensorlake_spark.delta.files import catalog, scan
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidSliceError
from tensorlake_spark.indexing import Box, Run, Selection, parse_key, select_simple
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.reading.gaps import gaps, stored_boxes, touched_cells
from tensorlake_spark.reading.read import is_full
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals, corners
from tensorlake_spark.spark.source import sparse_blocks
from tensorlake_spark.spark.source.label_columns import with_labels
from tensorlake_spark.spark.source.read.overlapping_rows import filtered
from tensorlake_spark.spark.source.schemas import (
    arrow_schema,
    cell_batches,
    cell_schema,
    conform,
)
from tensorlake_spark.spark.source.source_options import ReadOptions
from tensorlake_spark.spark.source.sparse_blocks import Parts, Scattered
from tensorlake_spark.tensor.spec import TensorSpec, dtype_name

Array = np.ndarray[Any, Any]

_BATCH_BYTES = 8 << 20
_CELL_ROWS = 1 << 18
_MOST_TASKS = 100_000  # a driver starts a few thousand in a second (docs/scale.md)


@dataclass
class TensorPartition(InputPartition):
    """What one task reads; small, because it travels in the task.

    Attributes
    ----------
    pieces : tuple of ScanPiece
        Row groups.
    keeps : dict of str to ndarray
        For files with a deletion vector which rows are still there.
    fills : tuple of Box
        Boxes that no row covers: they are full of the fill value.
    region : Selection, or None
        The part of the slice whose elements meet here, where those of one element may lie in several rows.
    blocks : (lo, hi), or None
        Boxes of the blocks that are made here, where a block may consist of several rows.
    """

    pieces: tuple[scan.ScanPiece, ...] = ()
    keeps: dict[str, Array] = field(default_factory=dict)
    fills: tuple[Box, ...] = ()
    region: Selection | None = None
    blocks: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class Unread:
    """What a slice picks of some boxes, not decoded yet.

    Attributes
    ----------
    parts : Parts
        Of the boxes.
    rows : pyarrow.RecordBatch, or None
        A row for each box; None where no row covers them, so that they are full of the fill value.
    path : str
        The data file, for messages.
    """

    parts: Parts
    rows: pa.RecordBatch | None = None
    path: str = ""


class CatalogReader(DataSourceReader):
    """The view ``catalog``: a row for every tensor."""

    def __init__(self, options: ReadOptions, version: int, schema: StructType) -> None:
        self.options, self.version, self.schema = options, version, schema

    def partitions(self) -> Sequence[InputPartition]:
        """One partition: the metadata of a lake is small."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the tensors of the pinned version."""
        metas = list(catalog.metas(Snapshot.open(self.options.storage, self.version)))
        rows = [
            {
                "id": m.spec.id,
                "shape": m.spec.shape,
                "dtype": dtype_name(m.spec.dtype),
                "layout": m.spec.layout,
                "block_shape": m.spec.block_shape
                if m.spec.block_shape or not m.spec.ndim
                else None,
                "codec": m.spec.codec,
                "axes": m.spec.axes,
                "nnz": m.totals.nnz,
                "nbytes": m.spec.nbytes,
                "stored_bytes": m.totals.nbytes,
                "rows": m.totals.rows,
                "attrs": json.dumps(dict(m.spec.attrs)),
            }
            for m in metas
        ]
        schema = arrow_schema(self.schema)
        columns = [pa.array([r[f.name] for r in rows], f.type) for f in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


class TensorReader(DataSourceReader):
    """The views ``blocks`` and ``cells`` of one tensor."""

    def __init__(
        self, options: ReadOptions, snapshot: Snapshot, meta: Meta, schema: StructType
    ) -> None:
        self.options = options
        self.snapshot = snapshot
        self.schema = schema
        self.storage: Storage = options.storage
        self.spec: TensorSpec = meta.spec
        self.totals: Totals = meta.totals
        self.is_full = is_full(meta)
        self.selection: Selection = selection_of(meta.spec, options)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the snapshot on the driver: what an executor reads is in its partition."""
        return {name: value for name, value in self.__dict__.items() if name != "snapshot"}

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the slice: files by the log, row groups by their footers, balanced by bytes."""
        if self.selection.is_empty:
            return [TensorPartition()]
        out = self._by_bytes()
        if not self.is_full:
            out += self._fills()
        return out or [TensorPartition()]

    def _by_bytes(self, at_least: float = 1) -> list[TensorPartition]:
        """Return the row groups of the slice in partitions of about equal bytes, `at_least` so many."""
        plan = scan.plan(self.snapshot, self.spec.id, self.selection)
        count = max(1, -(-plan.n_bytes // self.options.partition_bytes), math.ceil(at_least))
        groups: list[list[scan.ScanPiece]] = [[] for _ in range(min(count, _MOST_TASKS))]
        pieces = scan.pieces(self.snapshot, plan, max(1, plan.n_bytes // (8 * len(groups))))
        before = 0
        for piece in pieces:
            # By its middle, so that no small rest becomes a task of its own.
            middle = before + piece.nbytes // 2
            groups[min(middle * len(groups) // max(1, plan.n_bytes), len(groups) - 1)].append(piece)
            before += piece.nbytes
        return [self._partition(group) for group in groups if group]

    def _partition(self, group: Sequence[scan.ScanPiece], **more: Any) -> TensorPartition:
        found = {p.path: self.snapshot.kept(p.path) for p in group}
        keeps = {path: keep for path, keep in found.items() if keep is not None}
        return TensorPartition(scan.joined(group), keeps, **more)

    def _fills(self) -> list[TensorPartition]:
        """Return partitions for what no row covers: it is part of a dense tensor all the same."""
        cells = touched_cells(self.spec, self.selection)
        fills = gaps(cells, stored_boxes(self.snapshot, self.spec, cells), self.selection)
        step = max(1, (4 * self.options.partition_bytes) // max(1, self.spec.dtype.itemsize))
        out: list[TensorPartition] = []
        group: list[Box] = []
        for box in fills:
            group.append(box)
            if sum(b.size for b in group) >= step:
                out.append(TensorPartition(fills=tuple(group)))
                group = []
        return [*out, TensorPartition(fills=tuple(group))] if group else out

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the blocks of a partition, or their cells, trimmed to the slice."""
        if not isinstance(partition, TensorPartition):
            return
        produce = self._as_cells if self.options.view == "cells" else self._as_blocks
        yield from self._shown(batch for part in self._unread(partition) for batch in produce(part))

    def _shown(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches with the columns that Spark asked for."""
        schema = arrow_schema(self.schema)
        for batch in batches:
            yield conform(with_labels(batch, self.spec) if self.options.labels else batch, schema)

    def _unread(self, partition: TensorPartition) -> Iterator[Unread]:
        """Yield what a partition holds of the slice, a few MiB at a time."""
        spec, selection = self.spec, self.selection
        columns = scan.leaves(layout_of(spec.layout).columns, spec.ndim)
        for piece in partition.pieces:
            keep = partition.keeps.get(piece.path)
            for batch in scan.read_piece(self.storage, piece, spec.id, columns, keep):
                lo, hi = corners(batch, spec.ndim)
                hit = selection.hits(lo, hi)
                yield from self._bounded(lo[hit], hi[hit], filtered(batch, hit), piece.path)
        if partition.fills:
            lo, hi = (np.array(c, np.int64) for c in zip(*((b.lo, b.hi) for b in partition.fills)))
            yield from self._bounded(lo, hi)

    def _bounded(
        self, lo: Array, hi: Array, rows: pa.RecordBatch | None = None, path: str = ""
    ) -> Iterator[Unread]:
        parts = Parts.of(self.selection, lo, hi)
        for some in sparse_blocks.runs_of(parts.sizes * self.spec.dtype.itemsize, _BATCH_BYTES):
            taken = None if rows is None else rows.slice(some.start, some.stop - some.start)
            yield Unread(parts.take(some), taken, path)

    def _decoded(self, unread: Unread) -> tuple[Array, list[Array]]:
        """Return the elements of all blocks one after the other, and each block as a view of them."""
        parts, spec = unread.parts, self.spec
        data, arrays = sparse_blocks.blank(parts, spec.dtype)
        if unread.rows is None:
            data[...] = spec.fill_value
            return data, arrays
        with reading(self.storage, unread.path):
            result: Any = Scattered.of(parts, arrays)
            layout_of(spec.layout).decode(unread.rows, spec, self.selection, result)
        return data, arrays

    def _as_cells(self, unread: Unread) -> Iterator[pa.RecordBatch]:
        schema = cell_schema(self.spec)
        for block, lo in zip(self._decoded(unread)[1], unread.parts.lo.tolist(), strict=True):
            yield from cell_batches(block, lo, self.selection, schema, _CELL_ROWS)

    def _as_blocks(self, unread: Unread) -> Iterator[pa.RecordBatch]:
        data, arrays = self._decoded(unread)
        yield sparse_blocks.dense_batch(data, arrays, unread.parts, self.spec, self.selection)


def selection_of(spec: TensorSpec, options: ReadOptions) -> Selection:
    """Return the selection that the option ``slice`` stands for.

    Raises
    ------
    InvalidSliceError
        If the text cannot be read, or has an index list, whose elements make up no block; the cells of a
        sparse tensor do without.
    InvalidKeyError
        If it does not fit the tensor.
    """
    selection = select_simple(parse_key(options.slice, spec.axes), spec.shape)
    if options.view == "cells" and layout_of(spec.layout).is_sparse:
        return selection
    if not all(isinstance(axis, Run) for axis in selection.axes):
        cells = "take view='cells', " if layout_of(spec.layout).is_sparse else ""
        raise InvalidSliceError(
            f"slice {options.slice!r} has an index list, which makes up no block; {cells}read a range and filter "
            "it, or use plain Python: tl.open(path)[id][...]"
        )
    return selection


def runs_of(selection: Selection) -> tuple[Run, ...]:
    """Return the picks of a selection that `selection_of` made: they are all runs."""
    return tuple(axis for axis in selection.axes if isinstance(axis, Run))
