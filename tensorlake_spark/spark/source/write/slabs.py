"""Slabs (``lo, tensor``) of one tensor, and tensors (``id, tensor``), a row of the DataFrame each."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing import Box, Grid
from tensorlake_spark.layouts import grid_of, layout_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage, Written
from tensorlake_spark.spark.source.schemas import tensors_of
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.conversion import slabs_anew
from tensorlake_spark.spark.source.write.extents import check_disjoint, check_full, extent
from tensorlake_spark.spark.source.write.grouping import usual_block
from tensorlake_spark.spark.source.write.input_format import InputForm, encode_region, first_place
from tensorlake_spark.tensor.label_input import check_labels
from tensorlake_spark.tensor.spec import TensorSpec, check_id, fill_bytes
from tensorlake_spark.writing.append import check_append, longer_labels
from tensorlake_spark.writing.options import WriteOptions, auto_layout, new_spec, tell_layout
from tensorlake_spark.writing.source import ArraySource, native_dtype

Array = np.ndarray[Any, Any]

_COALESCE_BYTES = 32 << 20
_SORTED_BYTES = 64 << 20
"""So much of tensors that come in any order is sorted by id at a time: half a file of the usual size."""

_OPEN_END = 1 << 40
"""Stands for the length of an axis while slabs still arrive, so that all tasks choose one block shape."""

_USUAL_LENGTH = 4096
"""Stands for it where blocks of a sparse tensor are chosen."""


class Slabs(InputForm):
    """Slabs (``lo, tensor``) of one tensor; they follow each other, and what is there, along the option ``axis``."""

    def __init__(self, options: SparkWriteOptions, old: Meta | None) -> None:
        self.options = options
        self.old = old
        self.choices = replace(options.write, labels={})
        self.is_open = old is None and options.write.layout == "auto"
        if options.write.layout != "auto":
            layout_of(options.write.layout)

    def write(self, batches: Iterator[pa.RecordBatch], writer: FileWriter) -> list[Written]:
        """Encode the slabs of one partition; those that follow each other are joined."""
        spec: TensorSpec | None = None
        sample = (0, 0)
        boxes: list[Box] = []
        totals = Totals()
        base = 0 if self.old is None else self.old.seq + 1
        resumption = self.options.resumption
        first = first_place(base if resumption is None else max(base, resumption.place))
        numbers = itertools.count(first)
        for lo, region in _coalesce(_slabs(batches)):
            if spec is None:
                choices, sample = self._chosen(region)
                spec = self._spec(lo, region, choices)
            box = Box(lo, tuple(a + n for a, n in zip(lo, region.shape, strict=True)))
            self._check(spec, box, region)
            boxes.append(box)
            moved = self._moved(spec, box)
            totals += encode_region(self._reaching(spec, moved), moved, region, writer, numbers)
        if spec is None:
            return []
        return [Written(spec, tuple(boxes), totals, ((first, next(numbers)),), sample)]

    def _chosen(self, region: Array) -> tuple[WriteOptions, tuple[int, int]]:
        """Return what a task writes by, and the sample by which it chose: its first slab."""
        if not self.is_open:
            return self.choices, (0, 0)
        density = ArraySource(region, region.shape, region.dtype).density()
        layout, _ = auto_layout(density, self.choices, self._is_filled(region.dtype))
        return replace(self.choices, layout=layout), (round(density * region.size), region.size)

    def _is_filled(self, dtype: np.dtype[Any]) -> bool:
        return any(fill_bytes(self.choices.fill_value, native_dtype(dtype)))

    def settle(
        self,
        parts: Sequence[TensorCommitMessage],
        snapshot: Snapshot,
        new_writer: Callable[[], FileWriter],
    ) -> list[TensorCommitMessage]:
        """Return what the tasks wrote in one layout: that which all of their samples together ask for.

        The slabs of tasks that chose the other one are written again here, one by one.
        """
        told = [written for part in parts for written in part.written]
        if not self.is_open or not told:
            return list(parts)
        nonzero, looked_at = (sum(w.sample[k] for w in told) for k in range(2))
        first = told[0].spec
        density = nonzero / looked_at if looked_at else 1.0
        name, reason = auto_layout(density, self.choices, self._is_filled(first.dtype))
        asked = [w.spec for w in told if w.spec.layout == name]
        odd = [w for w in told if w.spec.layout != name]
        if odd and asked:
            reason += f"; {len(odd)} of {len(told)} tasks saw otherwise, and their slabs were written again"
        tell_layout(first.id, name if asked else first.layout, f"in a sample of it {reason}")
        if not odd or not asked:
            return list(parts)

        def spec_of(hi: tuple[int, ...]) -> TensorSpec:
            return self._reaching(asked[0], Box((0,) * len(hi), hi))

        return [
            slabs_anew(part, spec_of, snapshot, new_writer)
            if part.written and part.written[0].spec.layout != name
            else part
            for part in parts
        ]

    def _spec(self, lo: tuple[int, ...], region: Array, choices: WriteOptions) -> TensorSpec:
        """Return the spec by which a task encodes: the old tensor's, or one that all tasks agree on."""
        if self.old is not None:
            spec = self.old.spec
            axis = self._axis(spec.ndim)
            check_append(spec, self._whole_shape(lo, region, axis), region.dtype, axis)
            size = (self.options.shape or (0,) * spec.ndim)[axis] or _open_end(spec.shape, axis)
            grid = Grid(spec.shape, spec.block_shape or (1,) * spec.ndim, spec.segments)
            grid = grid.extend(axis, size)
            return replace(spec, shape=grid.shape, segments=grid.segments)
        axis = self._axis(region.ndim)
        shape = self.options.shape or self._whole_shape(lo, region, axis)
        if self.options.shape is None and shape:
            end = _open_end(_with_length(shape, axis, 0), axis)  # the same one in all tasks
            shape = _with_length(shape, axis, end)
        source = ArraySource(region, region.shape, region.dtype)
        guess = new_spec(str(self.options.id), source, choices)
        block = guess.block_shape
        if choices.block_shape is None and choices.chunk_rank is None and block:
            block = self._block(guess, shape)
        return replace(guess, shape=shape, block_shape=block, segments=())

    def _block(self, spec: TensorSpec, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the block shape of a layout with blocks, by the shape alone."""
        layout = layout_of(spec.layout)
        if not layout.is_sparse:
            return layout.default_block(shape, spec.dtype)
        if self.options.shape is None:
            shape = _with_length(shape, self._axis(len(shape)), _USUAL_LENGTH)
        return usual_block(shape)

    def _axis(self, ndim: int) -> int:
        """Return the axis along which slabs follow each other, counted from the front."""
        axis = self.options.axis
        if axis and not -ndim <= axis < ndim:
            raise InvalidOptionError(
                f"option axis={axis} is no axis of slabs of rank {ndim}; give one from {-ndim} to {ndim - 1}"
                if ndim
                else f"option axis={axis} goes with slabs that have axes, and these have none; leave it out"
            )
        return axis % max(1, ndim)

    def _whole_shape(self, lo: tuple[int, ...], region: Array, axis: int) -> tuple[int, ...]:
        """Return the shape of what the slabs make up; along `axis` only as far as this slab goes."""
        if self.options.shape is not None:
            return self.options.shape
        if any(a for k, a in enumerate(lo) if k != axis):
            raise InvalidOptionError(
                f"a slab lies at {lo}, so slabs do not span all axes but axis {axis}: give the shape of "
                "all of them together with option('shape', 'n0,n1,...')"
            )
        return tuple(a + n for a, n in zip(lo, region.shape, strict=True))

    def _check(self, spec: TensorSpec, box: Box, region: Array) -> None:
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
        axis = self._axis(spec.ndim)
        start = self.old.spec.shape[axis]
        return box.shift([start if k == axis else 0 for k in range(spec.ndim)])

    def _reaching(self, spec: TensorSpec, box: Box) -> TensorSpec:
        """Return the spec for a slab; blocks of a sparse tensor end with it where no shape is given."""
        if self.options.shape is not None or not layout_of(spec.layout).is_sparse:
            return spec
        axis = self._axis(spec.ndim)
        return (
            replace(spec, shape=_with_length(spec.shape, axis, box.hi[axis])) if spec.ndim else spec
        )

    def describe(
        self, written: Sequence[Written], files: Sequence[DataFile], snapshot: Snapshot
    ) -> list[Meta]:
        """Return the metadata of the tensor that all slabs make up; none where there is no slab."""
        if not written:
            return []
        first = written[0].spec
        boxes = [box for w in written for box in w.boxes]
        axis = self._axis(first.ndim)
        dtypes = {w.spec.dtype: None for w in written}
        if len(dtypes) > 1:
            raise InvalidTensorError(
                f"the slabs of tensor {first.id!r} have dtypes {' and '.join(map(str, dtypes))}; cast them to one"
            )
        shape = self.options.shape or extent(first.id, boxes, axis)
        for w in written:
            if w.spec.block_shape != first.block_shape:
                raise InvalidTensorError(
                    f"the slabs of tensor {first.id!r} have block shapes {first.block_shape} and {w.spec.block_shape}; "
                    "give option('blockShape', ...)"
                )
        check_disjoint(first.id, boxes)
        if self.options.resumption is not None:
            check_full(first.id, boxes, shape)
        totals = sum((w.totals for w in written), Totals())
        after = max(stop for w in written for _, stop in w.spans)
        if self.old is None:
            labels = check_labels(self.options.write.labels, first.axes, shape)
            spec = replace(first, shape=shape, segments=(), labels=labels)
            return [Meta(spec, totals, after)]
        old = self.old
        check_append(old.spec, shape, first.dtype, axis)
        grid = grid_of(old.spec).extend(axis, shape[axis])
        labels = longer_labels(old.spec, grid.shape, self.options.write.labels)
        spec = replace(old.spec, shape=grid.shape, segments=grid.segments, labels=labels)
        spec = replace(spec, attrs={**old.spec.attrs, **self.options.write.attrs})
        return [Meta(spec, old.totals + totals, after)]


def _with_length(shape: Sequence[int], axis: int, length: int) -> tuple[int, ...]:
    """Return a shape with another length of one axis."""
    return tuple(length if k == axis else n for k, n in enumerate(shape))


def _open_end(shape: Sequence[int], axis: int) -> int:
    """Return what stands for the length of an axis that is not known yet, in a tensor that can have it."""
    others = math.prod(n for k, n in enumerate(shape) if k != axis)
    return max(1, min(_OPEN_END, 2**62 // max(1, others) - shape[axis]))


class Tensors(InputForm):
    """Tensors (``id, tensor``), each in a row of its own and with what suits it."""

    def __init__(self, options: SparkWriteOptions) -> None:
        self.options = options
        layout_of("ftsf" if options.write.layout == "auto" else options.write.layout)

    def write(self, batches: Iterator[pa.RecordBatch], writer: FileWriter) -> list[Written]:
        """Encode the tensors of one partition, some of them at a time in the order of their ids."""
        out: list[Written] = []
        waiting: list[tuple[str, Array]] = []
        size = 0
        for tensor_id, array in _tensors(batches):
            if size + array.nbytes > _SORTED_BYTES:
                out += self._written(waiting, writer)
                waiting, size = [], 0
            waiting.append((tensor_id, array))
            size += array.nbytes
        return out + self._written(waiting, writer)

    def _written(self, tensors: Sequence[tuple[str, Array]], writer: FileWriter) -> list[Written]:
        """Encode some tensors; a writer whose last row has a later id begins a new file with them."""
        out = []
        for tensor_id, array in sorted(tensors, key=lambda pair: pair[0]):
            source = ArraySource(array, array.shape, array.dtype)
            spec = new_spec(tensor_id, source, self.options.write)
            box = Box.whole(spec.shape)
            totals = encode_region(spec, box, array, writer, itertools.count())
            out.append(Written(spec, (box,), totals))
        return out

    def describe(
        self, written: Sequence[Written], files: Sequence[DataFile], snapshot: Snapshot
    ) -> list[Meta]:
        """Return the metadata of all tensors."""
        metas = [Meta(w.spec, w.totals, w.totals.rows) for w in written]
        twice = [tensor_id for tensor_id, n in Counter(m.spec.id for m in metas).items() if n > 1]
        if twice:
            raise InvalidTensorError(
                f"{len(twice)} id(s) are in several rows of the DataFrame, such as {min(twice)!r}; each row is a "
                "tensor of its own, so give it another id"
            )
        resumption = self.options.resumption
        if resumption is not None and {m.spec.id for m in metas} != resumption.numbers.keys():
            raise InvalidTensorError(
                f"{len(metas)} of {len(resumption.numbers)} tensors were written; run the job without --resume"
            )
        return metas


def _tensors(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, Array]]:
    for batch in batches:
        ids = batch.column("id").to_pylist()
        for tensor_id, array in zip(ids, tensors_of(batch.column("tensor")), strict=True):
            if tensor_id is None:
                raise InvalidTensorError("a row of the DataFrame has a null id")
            yield check_id(tensor_id), array


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
