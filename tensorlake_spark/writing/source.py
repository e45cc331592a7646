"""What can be written: arrays, memory maps, array-likes and iterators of slabs, all as regions."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing import Box
from tensorlake_spark.tensor.sparse import SparseTensor, array_of, check_unmasked, sparse_of
from tensorlake_spark.tensor.spec import dtype_name, native

Array = np.ndarray[Any, Any]

_SAMPLE_BOXES, _SAMPLE_CELLS = 64, 1 << 16  # a large array's density is that of so many small boxes

_REGION_NNZ = 64 << 10  # elements of a region of a sparse tensor: what one thread encodes at a time

REGION_BYTES = 32 << 20
"""A source that is no NumPy array is read in regions of about this size."""


@dataclass(frozen=True, eq=False)
class ArraySource:
    """An array, or something that has ``shape``, ``dtype`` and ``__getitem__`` like one."""

    data: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def sample(self, block: Sequence[int]) -> Array:
        """Return a block from the middle, from which a codec is chosen."""
        lo = [max(0, (n - b) // 2) for n, b in zip(self.shape, block, strict=True)]
        hi = [min(a + b, n) for a, b, n in zip(lo, block, self.shape, strict=True)]
        return self.part(Box(tuple(lo), tuple(hi)))

    def part(self, box: Box) -> Array:
        """Return what lies in a box.

        Raises
        ------
        InvalidTensorError
            If the data has another shape there, or another dtype, than it says.
        """
        found = array_of(self.data[box.slices()])
        if found.shape != box.shape or native_dtype(found.dtype) != native_dtype(self.dtype):
            raise InvalidTensorError(
                f"{type(self.data).__name__} says that it has shape {self.shape} and dtype {self.dtype}, but from "
                f"{box.lo} to {box.hi} it gave an array of shape {found.shape} and dtype {found.dtype}"
            )
        return found

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Array]]:
        """Yield ``(offset, region)`` along axis 0, cut only between blocks."""
        if isinstance(self.data, np.ndarray):
            yield (0,) * len(self.shape), self.data
            return
        for box in bands(self.shape, block or (1,) * len(self.shape), self.dtype.itemsize):
            yield box.lo, self.part(box)

    def density(self) -> float:
        """Return the share of elements that are not zero; of a large array that of a sample of it."""
        if not self.shape or 0 in self.shape:
            return 1.0
        size = math.prod(self.shape)
        if isinstance(self.data, np.ndarray) and size <= _SAMPLE_BOXES * _SAMPLE_CELLS:
            return count_nonzero(self.data) / size
        side = [min(n, max(1, round(_SAMPLE_CELLS ** (1 / len(self.shape))))) for n in self.shape]
        rng = np.random.default_rng(0)
        seen = found = 0
        for _ in range(_SAMPLE_BOXES):
            lo = [int(rng.integers(0, n - s + 1)) for n, s in zip(self.shape, side, strict=True)]
            hi = tuple(a + s for a, s in zip(lo, side, strict=True))
            part = self.part(Box(tuple(lo), hi))
            seen, found = seen + part.size, found + count_nonzero(part)
        return found / seen


def bands(shape: Sequence[int], block: Sequence[int], itemsize: float) -> Iterator[Box]:
    """Yield boxes of whole blocks, of about `REGION_BYTES`, that tile a shape in C order.

    A cell takes `itemsize` bytes; of a sparse tensor that may be a small part of one.
    """
    step = list(block)
    for axis in reversed(range(len(shape))):
        others = itemsize
        for k, length in enumerate(step):
            others *= length if k != axis else 1
        fit = max(1, int(REGION_BYTES / others) // block[axis]) if others else 1
        step[axis] = min(max(1, shape[axis]), fit * block[axis])
        if step[axis] < shape[axis]:
            break
    ranges = [range(0, n, s) for n, s in zip(shape, step, strict=True)]
    for index in np.ndindex(*(len(r) for r in ranges)):
        lo = tuple(r[i] for r, i in zip(ranges, index, strict=True))
        yield Box(lo, tuple(min(a + s, n) for a, s, n in zip(lo, step, shape, strict=True)))


def count_nonzero(array: Array) -> int:
    """Return how many elements are not zero."""
    if array.dtype.kind in "mMV":
        array = array.view(f"i{array.dtype.itemsize}")
    if array.dtype.kind == "f":  # whose zeros NumPy finds one by one, but compares many at once
        array = array != 0
    return int(np.count_nonzero(array))


@dataclass(frozen=True, eq=False)
class SparseSource:
    """A sparse tensor in memory."""

    data: SparseTensor
    leading_axis: int = 0
    by_elements: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The tensor's."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of coordinates and values."""
        return self.data.nbytes

    def density(self) -> float:
        """Return the share of elements that are stored."""
        return self.data.density

    def sample(self, block: Sequence[int]) -> Array:
        """Return the block around the element in the middle, from which a codec is chosen."""
        if not self.data.nnz:
            return np.zeros(tuple(block), self.dtype)
        middle = self.data.coords[:, self.data.nnz // 2].tolist()
        key = tuple(slice(c - c % b, c - c % b + b) for c, b in zip(middle, block, strict=True))
        return np.asarray(self.data[key] if key else self.data[...])

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], SparseTensor]]:
        """Yield ``(offset, region)``: slabs along axis 0, cut between blocks, of many elements each."""
        whole = self.data
        if not whole.ndim or whole.nnz <= _REGION_NNZ or self.leading_axis != 0:
            yield (0,) * whole.ndim, whole
            return
        height = block[0] if block else 1
        first, axis = 0, whole.coords[0]
        while first < whole.nnz:
            near = int(axis[min(first + _REGION_NNZ, whole.nnz - 1)])
            start = int(axis[first]) - int(axis[first]) % height
            stop = min(whole.shape[0], max(near - near % height, start + height))
            last = int(np.searchsorted(axis, stop))
            coords = whole.coords[:, first:last].copy()
            coords[0] -= start
            shape = (stop - start, *whole.shape[1:])
            part = SparseTensor._trusted(coords, whole.values[first:last], shape)
            yield (start, *(0,) * (whole.ndim - 1)), part
            first = last


class SlabSource:
    """An iterator of slabs along one axis; the length of that axis is known at its end.

    Parameters
    ----------
    slabs : iterable of array-like
        All of one dtype and rank, and of one shape but for `axis`.
    axis : int
        Where they are joined.
    """

    nbytes = None

    def __init__(self, slabs: Iterable[Any], axis: int) -> None:
        self._slabs = iter(slabs)
        self.axis = axis
        try:
            self._first: Array | None = array_of(next(self._slabs))
        except StopIteration:
            raise InvalidTensorError(
                "an iterator without a slab has no shape and no dtype; write an empty array instead"
            ) from None
        first = self._first
        if not -first.ndim <= axis < first.ndim:
            raise InvalidTensorError(
                f"slabs of shape {first.shape} cannot be joined along axis {axis}"
            )
        self.axis = axis % first.ndim
        self.dtype: np.dtype[Any] = first.dtype
        # Long enough for a block of any height; the true length is known when the slabs end.
        self.shape = first.shape
        self.length = 0

    def sample(self, block: Sequence[int]) -> Array:
        """Return the first slab, from which a codec is chosen."""
        first = self._first
        if first is None:
            raise InvalidTensorError("an iterator of slabs can be written once")
        return first[tuple(slice(0, b) for b in block)]

    def density(self) -> float:
        """Return the share of elements of the first slab that are not zero."""
        first = self._first
        if first is None:
            raise InvalidTensorError("an iterator of slabs can be written once")
        return ArraySource(first, first.shape, first.dtype).density()

    def _checked(self) -> Iterator[Array]:
        if self._first is None:
            raise InvalidTensorError("an iterator of slabs can be written once")
        first, self._first = self._first, None
        shape, dtype = first.shape, first.dtype
        yield first
        del first
        for number, item in enumerate(self._slabs, start=1):
            slab = array_of(item)
            same = slab.ndim == len(shape) and all(
                a == b
                for k, (a, b) in enumerate(zip(slab.shape, shape, strict=True))
                if k != self.axis
            )
            if not same or slab.dtype != dtype:
                raise InvalidTensorError(
                    f"slab {number} has shape {slab.shape} and dtype {slab.dtype}, which does not continue "
                    f"slab 0 of shape {shape} and dtype {dtype} along axis {self.axis}"
                )
            yield slab

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Array]]:
        """Yield ``(offset, region)`` with whole blocks along the axis, but for the last one."""
        axis = self.axis
        height = block[axis] if block else self._height(axis)
        waiting: list[Array] = []
        rows = 0
        for slab in self._checked():
            waiting.append(slab)
            rows += slab.shape[axis]
            if rows >= height:
                region = waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis)
                whole = rows - rows % height
                yield self._offset(region.ndim), _cut(region, axis, 0, whole)
                self.length += whole
                rest = _cut(region, axis, whole, rows)
                rows -= whole
                # A copy, so that the slab it was cut from can go.
                waiting = [rest.copy()] if rows else []
                del region, rest
        if waiting and (rows or not self.length):
            last = np.concatenate(waiting, axis)
            yield self._offset(last.ndim), last
            self.length += rows

    def _height(self, axis: int) -> int:
        """Return how much of the axis makes a region where no blocks do: rows shall not be as thin as slabs."""
        others = [n for k, n in enumerate(self.shape) if k != axis]
        size: int = math.prod(others) * self.dtype.itemsize
        return max(1, REGION_BYTES // max(1, size))

    def _offset(self, ndim: int) -> tuple[int, ...]:
        return tuple(self.length if k == self.axis else 0 for k in range(ndim))


def _cut(array: Array, axis: int, start: int, stop: int) -> Array:
    return array[(slice(None),) * axis + (slice(start, stop),)]


class Source(Protocol):
    """Something that yields the regions of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor; along the axis of a stream that of its first slab."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the tensor."""

    @property
    def nbytes(self) -> int | None:
        """Bytes of all regions, for the progress bar; None of a stream."""

    def density(self) -> float:
        """Return the share of elements that are not zero, or a guess at it."""

    def sample(self, block: Sequence[int]) -> Array:
        """Return a block, from which a codec is chosen."""

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield ``(offset, region)``, an ndarray or a SparseTensor, cut between blocks."""


def suited(source: Source, is_sparse: bool, leading_axis: int) -> Source:
    """Return a source whose regions suit a layout: sparse ones for a sparse layout, where it has them."""
    if not isinstance(source, SparseSource):
        return source
    if is_sparse:
        return SparseSource(source.data, leading_axis)
    return ArraySource(source.data, source.shape, source.dtype)


def source_of(data: Any, axis: int = 0) -> Source:
    """Return `data` as something that yields regions.

    Parameters
    ----------
    data : array-like, array, or iterator
        An ndarray or memory map; anything with ``shape``, ``dtype`` and ``__getitem__``; an iterator of
        slabs along `axis`; or what `numpy.asarray` makes an array of.
    axis : int
        For an iterator, where its slabs are joined.

    Raises
    ------
    UnsupportedDtypeError
        If no row can hold the dtype.
    InvalidTensorError
        If it is none of these.

    Examples
    --------
    >>> source_of([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if isinstance(data, (str, os.PathLike)):
        raise UnsupportedDtypeError(
            f"{data!r:.80} is no array; read a file first, such as one of NumPy by np.load(path, mmap_mode='r'), or "
            "give it to the job ingest"
        )
    source: Source
    sparse = sparse_of(data)
    if sparse is not None:
        source = SparseSource(sparse)
    elif isinstance(data, Iterator):
        source = SlabSource(data, axis)
    elif isinstance(data, np.ndarray):
        check_unmasked(data)
        source = ArraySource(data, data.shape, data.dtype)
    elif all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__")) and not np.isscalar(
        data
    ):
        try:
            dtype = np.dtype(data.dtype)
        except TypeError:
            return source_of(array_of(data), axis)
        source = ArraySource(data, tuple(int(n) for n in data.shape), dtype)
    else:
        array = array_of(data)
        source = ArraySource(array, array.shape, array.dtype)
    dtype_name(source.dtype)
    return source


def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype in the machine's byte order.

    Examples
    --------
    >>> native_dtype(np.dtype(">i2")).isnative
    True
    """
    found: np.dtype[Any] = native(np.empty(0, dtype)).dtype
    return found
