"""Spark writes: executors encode and write data files, only the driver commits.

A task may run twice, so files carry names of their own and nothing names them before the one commit;
what a lost attempt leaves behind is an orphan, which vacuum removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tensorlake_spark import edit
from tensorlake_spark.delta import catalog
from tensorlake_spark.delta.commit import Change, StaleChange, app_of, commit, transaction_done
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.write import DataFile, FileWriter, create_table, discard
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    TableNotFoundError,
    TensorExistsError,
)
from tensorlake_spark.indexing import Box, Grid
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.row import Meta, Totals
from tensorlake_spark.source import ArraySource
from tensorlake_spark.spark.options import SparkWriteOptions
from tensorlake_spark.spark.views import TENSOR, tensors_of
from tensorlake_spark.spec import TensorSpec, check_id

Array = np.ndarray[Any, Any]

_COALESCE_BYTES = 32 << 20
_OPEN_END = 1 << 40
"""Stands for the length of axis 0 while slabs still arrive, so that all tasks choose one block shape."""


@dataclass(frozen=True)
class Written:
    """What a task wrote of one tensor.

    Attributes
    ----------
    spec : TensorSpec
        As the task saw it.
    boxes : tuple of Box
        The slabs, where they lie in what is written.
    totals : Totals
        What the rows add up to.
    """

    spec: TensorSpec
    boxes: tuple[Box, ...]
    totals: Totals


@dataclass(frozen=True)
class TensorCommitMessage(WriterCommitMessage):
    """What a task tells the driver: names and statistics, never data."""

    files: tuple[DataFile, ...] = ()
    written: tuple[Written, ...] = ()


class TensorWriter(DataSourceArrowWriter):
    """Writes slabs (``lo, tensor``) of one tensor, or a tensor a row (``id, tensor``).

    Made on the driver, where the DataFrame's schema is checked and the table is looked at: what is
    computed from that look is committed only if the tensors did not change since.
    """

    def __init__(self, options: SparkWriteOptions, schema: t.StructType, overwrite: bool) -> None:
        self.options = options
        self.overwrite = overwrite
        self.slabs = _kind(schema, options)
        try:
            snapshot = Snapshot.open(options.storage)
        except TableNotFoundError:
            create_table(options.storage)
            snapshot = Snapshot.open(options.storage)
        snapshot.check_writable()
        self.done = transaction_done(snapshot, options.write.transaction)
        self.old: Meta | None = None
        self.version = snapshot.version
        if self.slabs and not overwrite and options.id is not None:
            self.old = catalog.find(snapshot, options.id)
        layout_of("ftsf" if options.write.layout == "auto" else options.write.layout)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Encode and write one partition; runs on an executor, perhaps more than once."""
        if self.done:
            return TensorCommitMessage()
        writer = FileWriter(self.options.storage)
        try:
            if self.slabs:
                written = self._write_slabs(_slabs(iterator), writer)
            else:
                written = self._write_tensors(iterator, writer)
            return TensorCommitMessage(tuple(writer.finish()), tuple(written))
        except BaseException:
            writer.abort()
            raise

    def _write_slabs(
        self, slabs: Iterator[tuple[tuple[int, ...], Array]], writer: FileWriter
    ) -> list[Written]:
        spec: TensorSpec | None = None
        boxes: list[Box] = []
        totals = Totals()
        for lo, region in _coalesce(slabs):
            if spec is None:
                spec = self._slab_spec(lo, region)
            box = Box(lo, tuple(a + n for a, n in zip(lo, region.shape, strict=True)))
            self._check_slab(spec, box, region)
            boxes.append(box)
            totals += self._encode(spec, self._moved(spec, box), region, writer)
        return [] if spec is None else [Written(spec, tuple(boxes), totals)]

    def _slab_spec(self, lo: tuple[int, ...], region: Array) -> TensorSpec:
        """Return the spec by which a task encodes: the old tensor's, or one that all tasks agree on."""
        if self.old is not None:
            spec = self.old.spec
            axis = self.options.axis
            edit.check_append(spec, self._whole_shape(lo, region, axis), region.dtype, axis)
            axis %= spec.ndim
            size = (self.options.shape or (0,) * spec.ndim)[axis] or _OPEN_END
            grid = Grid(spec.shape, spec.block_shape, spec.segments).extend(axis, size)
            return replace(spec, shape=grid.shape, segments=grid.segments)
        shape = self.options.shape or self._whole_shape(lo, region, 0)
        if self.options.shape is None and shape:
            shape = (_OPEN_END, *shape[1:])
            while np.prod([float(n) for n in shape]) >= 2**62:
                shape = (shape[0] // 2, *shape[1:])
        source = ArraySource(region, region.shape, region.dtype)
        guess = edit.new_spec(str(self.options.id), source, self.options.write)
        block = guess.block_shape
        write = self.options.write
        if write.block_shape is None and write.chunk_rank is None:
            block = layout_of(guess.layout).default_block(shape, guess.dtype)
        return replace(guess, shape=shape, block_shape=block, segments=())

    def _whole_shape(self, lo: tuple[int, ...], region: Array, axis: int) -> tuple[int, ...]:
        """Return the shape of what the slabs make up; along `axis` only as far as this slab goes."""
        if self.options.shape is not None:
            return self.options.shape
        axis %= max(1, region.ndim)
        if any(a for k, a in enumerate(lo) if k != axis):
            raise InvalidOptionError(
                f"a slab lies at {lo}, so slabs do not span all axes but axis {axis}: give the shape of "
                "all of them together with option('shape', 'n0,n1,...')"
            )
        return tuple(a + n for a, n in zip(lo, region.shape, strict=True))

    def _check_slab(self, spec: TensorSpec, box: Box, region: Array) -> None:
        if region.ndim != spec.ndim or region.dtype != spec.dtype:
            raise InvalidTensorError(
                f"a slab of tensor {spec.id!r} has rank {region.ndim} and dtype {region.dtype}; the others "
                f"have rank {spec.ndim} and dtype {spec.dtype}"
            )
        shape = self.options.shape
        if shape is not None and any(b > n for b, n in zip(box.hi, shape, strict=True)):
            raise InvalidTensorError(
                f"a slab of tensor {spec.id!r} ends at {box.hi}, outside of the shape {shape}"
            )

    def _moved(self, spec: TensorSpec, box: Box) -> Box:
        """Return where a slab lies in the tensor: an append begins where the tensor ended."""
        if self.old is None:
            return box
        axis = self.options.axis % spec.ndim
        start = self.old.spec.shape[axis]
        return box.shift([start if k == axis else 0 for k in range(spec.ndim)])

    def _encode(
        self, spec: TensorSpec, box: Box, region: Array, writer: FileWriter, base: int = 0
    ) -> Totals:
        """Encode a region into rows; the place of a row is that of its first element in C order."""
        base = self.old.seq + 1 if self.old is not None else base
        layout = layout_of(spec.layout)
        strides = np.cumprod([1, *spec.shape[:0:-1]], dtype=object)[::-1].tolist()
        axis = self.options.axis % max(1, spec.ndim)
        totals = Totals()
        for part in layout.pieces(spec, box):
            here = region[part.shift([-a for a in box.lo]).slices()]
            for row in layout.encode(here, part.lo, spec):
                place = list(row.lo)
                if self.old is not None:
                    place[axis] -= self.old.spec.shape[axis]
                seq = base + sum(p * s for p, s in zip(place, strides, strict=True))
                writer.add(spec, int(seq), row)
                totals += Totals(1, row.nnz, row.nbytes)
        return totals

    def _write_tensors(
        self, iterator: Iterator[pa.RecordBatch], writer: FileWriter
    ) -> list[Written]:
        out = []
        for batch in iterator:
            ids = batch.column("id").to_pylist()
            for tensor_id, array in zip(ids, tensors_of(batch.column("tensor")), strict=True):
                if tensor_id is None:
                    raise InvalidTensorError("a row of the DataFrame has a null id")
                source = ArraySource(array, array.shape, array.dtype)
                spec = edit.new_spec(check_id(tensor_id), source, self.options.write)
                box = Box.whole(spec.shape)
                totals = self._encode(spec, box, array, writer)
                out.append(Written(spec, (box,), totals))
        return out

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make all that the tasks wrote visible in one commit; runs on the driver."""
        parts = [m for m in messages if isinstance(m, TensorCommitMessage)]
        written = [w for m in parts for w in m.written]
        if self.done or not written:
            return
        storage = self.options.storage
        snapshot = Snapshot.open(storage)
        planned = Snapshot.open(storage, self.version)
        writer = FileWriter(storage, schema=snapshot.schema)
        try:
            ids = list(dict.fromkeys(w.spec.id for w in written))
            if self.slabs:
                metas = [self._joined(written)]
            else:
                metas = [_single(w) for w in written]
                if len(ids) != len(metas):
                    raise InvalidTensorError("two rows of the DataFrame have the same id")
                taken = [i for i in ids if catalog.find(snapshot, i) is not None]
                if taken and not self.overwrite:
                    raise TensorExistsError(
                        f"tensor {taken[0]!r} exists in {storage.uri}; mode('overwrite') replaces it, and an "
                        "append of slabs (lo, tensor) with option('id', ...) continues it"
                    )
            removes = edit.drop_tensors(snapshot, ids, writer) if self.overwrite else []
            writer.add_meta(
                [m.spec for m in metas], [m.seq for m in metas], [m.totals for m in metas]
            )
            change = Change(
                tensors={i: planned.transaction(app_of(i)) for i in ids},
                adds=[f for m in parts for f in m.files] + writer.finish(),
                removes=removes,
                operation="spark overwrite" if self.overwrite else "spark append",
                transaction=self.options.write.transaction,
            )
            commit(storage, change)
        except StaleChange as stale:
            writer.abort()
            self.abort(messages)
            raise ConcurrentWriteError(
                f"another writer changed tensor {stale.tensor_id!r} while this job ran; nothing of it was "
                "committed, run it again"
            ) from stale
        except BaseException:
            writer.abort()
            self.abort(messages)
            raise

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of the tasks that ended well; those of the others are orphans for vacuum."""
        parts = [m for m in messages if isinstance(m, TensorCommitMessage)]
        discard(self.options.storage, [file.path for part in parts for file in part.files])

    def _joined(self, written: Sequence[Written]) -> Meta:
        """Return the metadata of a tensor whose slabs came from many tasks, after checking that they fit."""
        first = written[0].spec
        boxes = [box for w in written for box in w.boxes]
        axis = self.options.axis % max(1, first.ndim) if self.old is not None else 0
        for w in written:
            if (w.spec.dtype, w.spec.block_shape) != (first.dtype, first.block_shape):
                raise InvalidTensorError(
                    f"the slabs of tensor {first.id!r} differ: dtype {w.spec.dtype} and {first.dtype}, or "
                    "their shapes"
                )
        shape = self.options.shape or _extent(first.id, boxes, axis)
        _check_disjoint(first.id, boxes)
        totals = sum((w.totals for w in written), Totals())
        if self.old is None:
            spec = replace(first, shape=shape, segments=())
            size = spec.size
            return Meta(spec, totals, size)
        old = self.old
        edit.check_append(old.spec, shape, first.dtype, axis)
        grid = Grid(old.spec.shape, old.spec.block_shape, old.spec.segments).extend(
            axis, shape[axis]
        )
        spec = replace(old.spec, shape=grid.shape, segments=grid.segments)
        strides = int(np.prod([float(n) for n in first.shape[1:]])) if first.ndim else 1
        last = old.seq + 1 + max((b.hi[0] for b in boxes), default=0) * strides + strides
        return Meta(spec, old.totals + totals, last)


def _single(written: Written) -> Meta:
    return Meta(written.spec, written.totals, written.spec.size)


def _kind(schema: t.StructType, options: SparkWriteOptions) -> bool:
    """Return whether a DataFrame holds slabs (else tensors), or say what it should have.

    Raises
    ------
    InvalidOptionError
        If its columns are neither, or the option ``id`` does not go with them.
    """
    names = set(schema.names)
    types = {f.name: f.dataType.simpleString() for f in schema.fields}
    if names == {"lo", "tensor"} and types["lo"] == "array<bigint>":
        kind = True
    elif names == {"id", "tensor"} and types["id"] == "string":
        kind = False
    else:
        hint = ""
        if "value" in names:
            hint = "; cells (i0, ..., value) need a sparse layout, which this version does not have"
        raise InvalidOptionError(
            f"a DataFrame with the columns {', '.join(f'{n}: {k}' for n, k in types.items())} is neither "
            "slabs (lo: array<bigint>, tensor) nor tensors (id: string, tensor), where tensor is "
            f"{TENSOR.simpleString()}{hint}"
        )
    if types["tensor"] != TENSOR.simpleString():
        raise InvalidOptionError(
            f"the column tensor is {types['tensor']}; it should be {TENSOR.simpleString()}"
        )
    if kind and options.id is None:
        raise InvalidOptionError("slabs (lo, tensor) need the option id, the tensor's name")
    if not kind and options.id is not None:
        raise InvalidOptionError(
            "tensors (id, tensor) bring their own ids; leave out the option id, or write slabs (lo, tensor)"
        )
    return kind


def _slabs(iterator: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[int, ...], Array]]:
    for batch in iterator:
        corners = batch.column("lo").to_pylist()
        for lo, array in zip(corners, tensors_of(batch.column("tensor")), strict=True):
            if lo is None or None in lo or len(lo) != array.ndim or min(lo, default=0) < 0:
                raise InvalidTensorError(
                    f"a slab of shape {array.shape} has lo = {lo}; it needs {array.ndim} non-negative numbers"
                )
            yield tuple(lo), array


def _coalesce(
    slabs: Iterator[tuple[tuple[int, ...], Array]],
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Join slabs that follow each other along axis 0, so that small ones fill whole chunks."""
    waiting: list[Array] = []
    start: tuple[int, ...] = ()
    end = size = 0
    for lo, array in slabs:
        follows = (
            bool(waiting)
            and bool(lo)
            and lo == (end, *start[1:])
            and array.shape[1:] == waiting[0].shape[1:]
            and array.dtype == waiting[0].dtype
            and size + array.nbytes <= _COALESCE_BYTES
        )
        if waiting and not follows:
            yield start, waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            waiting, size = [], 0
        if not waiting:
            start, end = lo, lo[0] if lo else 0
        waiting.append(array)
        size += array.nbytes
        end += array.shape[0] if array.ndim else 0
    if waiting:
        yield start, waiting[0] if len(waiting) == 1 else np.concatenate(waiting)


def _extent(tensor_id: str, boxes: Sequence[Box], axis: int) -> tuple[int, ...]:
    """Return the shape that slabs make up, which without option shape follow each other along one axis."""
    if not boxes or not boxes[0].ndim:
        return ()
    ordered = sorted(boxes, key=lambda b: b.lo[axis])
    trailing = {tuple(n for k, n in enumerate(b.hi) if k != axis) for b in ordered}
    if len(trailing) > 1:
        raise InvalidTensorError(
            f"the slabs of tensor {tensor_id!r} have different shapes beside axis {axis}: {sorted(trailing)}"
        )
    end = 0
    for box in ordered:
        if box.lo[axis] > end:
            raise InvalidTensorError(
                f"the slabs of tensor {tensor_id!r} leave {end}:{box.lo[axis]} of axis {axis} open; give "
                "option('shape', ...) if it is meant to be full of the fill value"
            )
        end = max(end, box.hi[axis])
    return tuple(end if k == axis else n for k, n in enumerate(ordered[0].hi))


def _check_disjoint(tensor_id: str, boxes: Sequence[Box]) -> None:
    """Raise InvalidTensorError if two slabs overlap: one of them would win by chance."""
    ordered = sorted((b for b in boxes if not b.is_empty), key=lambda b: b.lo)
    if not ordered or not ordered[0].ndim:
        if len(ordered) > 1:
            raise InvalidTensorError(f"tensor {tensor_id!r} has no axis, and more than one slab")
        return
    active: list[Box] = []
    for box in ordered:
        active = [other for other in active if other.hi[0] > box.lo[0]]
        for other in active:
            if other.overlaps(box):
                raise InvalidTensorError(
                    f"two slabs of tensor {tensor_id!r} overlap: {other.lo}..{other.hi} and "
                    f"{box.lo}..{box.hi}"
                )
        active.append(box)
