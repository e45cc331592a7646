"""Groups: the stored elements of a tensor, by the cell of the result of a reduction to which they belong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing.coords import ravel, sort_places, unravel
from tensorlake_spark.ops.arguments import axes_of
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.lookup import values_at

Array = np.ndarray[Any, Any]

_SPREAD = 8  # a result of at most so many cells for each stored element is computed as an array


class Groups:
    """What a reduction over axes reduces. A cell is an element of the result, and what is stored for it its group.

    What is computed has one entry for each group. Groups are *adjacent* where the last axes go, or where the
    result has too many cells to hold them all; then only cells with stored elements have a group. Otherwise they
    are *scattered*, and every cell of the result has a group, in C order, which may be empty.

    Parameters
    ----------
    x : Elements
        The tensor.
    axis : None, int or tuple of int
        The axes that go.
    keepdims : bool
        Whether they stay in the result, with length 1.
    where : array_like or Elements of bool
        Which elements take part; it broadcasts to the tensor's shape.
    counted : bool
        Whether `length` is needed; it takes an array of the result's shape if there is a `where`.

    Attributes
    ----------
    values : ndarray, shape (n,)
        What is stored and takes part, in C order within a group.
    length : int or int64 ndarray
        Elements for a group, stored or not.
    shape, lengths : tuple of int
        Lengths of the axes that stay, and of those that go.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 1, 1], [1, 0, 1]]), np.array([5, 6, 7]), (3, 2))
    >>> rows = Groups(x, 1)
    >>> rows.counts.tolist(), rows.length, rows.reduce(np.add, rows.values).tolist()
    ([1, 2], 2, [5, 13])
    """

    def __init__(
        self,
        x: Elements,
        axis: Any,
        keepdims: bool = False,
        where: Any = True,
        counted: bool = True,
    ) -> None:
        self.dtype = x.dtype
        self._reduced = sorted(axes_of(axis, x.ndim))
        self._kept = [k for k in range(x.ndim) if k not in self._reduced]
        self.shape = tuple(x.shape[k] for k in self._kept)
        self.lengths = tuple(x.shape[k] for k in self._reduced)
        self.length: Any = math.prod(self.lengths)
        self.is_masked = where is not True
        self._keepdims = keepdims
        self._counts: Array | None = None
        self._starts: Array | None = None  # of the groups that are adjacent
        self._coords, self.values = x.coords, x.values
        if self.is_masked:
            mask = _mask(where, x.shape)
            chosen = np.broadcast_to(values_at(mask, self._coords), self.values.shape)
            self._coords, self.values = self._coords[:, chosen], self.values[chosen]
            if counted:
                self.length = self._chosen(mask, x.shape)
        if self._kept == [*range(len(self._kept))] and not np.ndim(self.length):
            self._starts = _starts(self._coords[: len(self._kept)])
        else:
            cells = ravel(self._coords[self._kept], self.shape)
            if math.prod(self.shape) > _SPREAD * len(cells) and not np.ndim(self.length):
                cells, by = sort_places(cells)
                self._coords, self.values = self._coords[:, by], self.values[by]
                self._starts = _starts(cells[None])
            else:
                self._cells = cells

    def _chosen(self, mask: Any, shape: tuple[int, ...]) -> Array:
        """Return how many elements of each cell a mask chooses."""
        own = (1,) * (len(shape) - mask.ndim) + tuple(mask.shape)
        if isinstance(mask, Elements):
            true = mask.values.astype(bool)
            coords = np.zeros((len(shape), np.count_nonzero(true)), np.int64)
            coords[len(shape) - mask.ndim :] = mask.coords[:, true]
            left = tuple(own[k] for k in self._kept)
            cells = ravel(coords[self._kept], left)
            counts = np.bincount(cells, minlength=math.prod(left)).reshape(left)
        else:
            counts = np.asarray(np.count_nonzero(mask.reshape(own), axis=tuple(self._reduced)))
        repeats = math.prod(shape[k] for k in self._reduced if own[k] == 1)
        return np.broadcast_to(counts * repeats, self.shape).reshape(-1)

    @property
    def is_adjacent(self) -> bool:
        """Whether the elements of a group lie side by side."""
        return self._starts is not None

    @property
    def counts(self) -> Array:
        """Stored elements of each group."""
        if self._counts is None:
            if self._starts is None:
                self._counts = np.bincount(self._cells, minlength=math.prod(self.shape))
            else:
                self._counts = np.diff(self._starts, append=len(self.values))
        return self._counts

    @property
    def positions(self) -> Array:
        """Place of each element among those of its cell, stored or not, in C order of the axes that go."""
        return ravel(self._coords[self._reduced], self.lengths)

    @property
    def numbers(self) -> Array:
        """Number of the group of each element."""
        if self._starts is None:
            return self._cells
        return np.repeat(np.arange(len(self._starts)), self.counts)

    def reduce(self, ufunc: np.ufunc, values: Array, dtype: Any = None) -> Array:
        """Return one value for each group: ``np.add`` of nothing is 0, of any other ufunc it is undefined.

        Parameters
        ----------
        ufunc : numpy.ufunc
            Of two arguments, such as ``np.add``, and it does not matter in which order it meets values.
        values : ndarray, shape (n,)
            A value for each element of `values`.
        dtype : dtype, optional
            In which it is computed, by default that of `values`.
        """
        values = values.astype(values.dtype if dtype is None else dtype, copy=False)
        if self._starts is not None:
            # Of times NumPy knows the dtype, and takes none.
            dtype = None if values.dtype.kind in "mM" else values.dtype
            return np.asarray(ufunc.reduceat(values, self._starts, dtype=dtype))
        size = math.prod(self.shape)
        if ufunc is np.add and values.dtype.kind == "f":
            return np.bincount(self._cells, values, size).astype(values.dtype, copy=False)
        out = np.zeros(size, values.dtype)
        if ufunc is np.multiply:
            out[...] = 1
        elif ufunc is not np.add:
            out[self._cells] = values  # any of them, to begin with
        ufunc.at(out, self._cells, values)
        return out

    def spread(self, found: Array) -> Array:
        """Return for each element what was computed for its group."""
        return np.repeat(found, self.counts) if self._starts is not None else found[self._cells]

    def dense(self, found: Array, empty: Any = 0) -> Array:
        """Return what was computed as an array, with one value for all cells that have no group."""
        if self._starts is not None:
            out = np.full(math.prod(self.shape), empty, found.dtype)
            out[ravel(self._cells_at(self._starts), self.shape)] = found
            found = out
        return found.reshape(self._framed(self.shape))

    def result(self, found: Array, empty: Any = 0) -> Any:
        """Return what was computed as canonical elements, or as a scalar if no axes are left."""
        if not self.shape and not self._keepdims:
            return found[0] if len(found) else np.asarray(empty).astype(found.dtype)[()]
        if self._starts is not None and empty:
            found = self.dense(found, empty).reshape(-1)
        stored = np.flatnonzero(found.astype(bool))
        if len(found) == math.prod(self.shape) and (self._starts is None or empty):
            coords = unravel(stored, self.shape)
        else:
            assert self._starts is not None
            coords = self._cells_at(self._starts[stored])
        if self._keepdims:
            coords, some = np.zeros((len(self._kept) + len(self._reduced), len(stored)), np.int64), coords
            coords[self._kept] = some
        return Elements._trusted(coords, found[stored], self._framed(self.shape))

    def _cells_at(self, elements: Array) -> Array:
        """Return the coordinates of the cells of some elements."""
        out = np.empty((len(self._kept), len(elements)), np.int64)
        for row, k in zip(out, self._kept, strict=True):
            np.take(self._coords[k], elements, out=row)
        return out

    def _framed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result from that of the axes that stay."""
        if not self._keepdims:
            return shape
        stay = iter(shape)
        ndim = len(self._kept) + len(self._reduced)
        return tuple(1 if k in self._reduced else next(stay) for k in range(ndim))


def _mask(where: Any, shape: tuple[int, ...]) -> Any:
    """Return a mask that broadcasts to a shape."""
    mask = where if isinstance(where, Elements) else np.asarray(where)
    if mask.dtype != bool:
        raise UnsupportedDtypeError(f"where is an array of bools, not of {mask.dtype}")
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise InvalidTensorError(f"where of shape {mask.shape} does not broadcast to {shape}")
    return mask


def _starts(rows: Array) -> Array:
    """Return where columns differ from those before them."""
    fresh = np.zeros(rows.shape[1], bool)
    fresh[:1] = True
    for row in rows:
        fresh[1:] |= row[1:] != row[:-1]
    return np.flatnonzero(fresh)
