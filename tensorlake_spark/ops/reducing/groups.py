"""Groups: the stored elements of a tensor, by the cell of the result of a reduction to which they belong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorlake_spark.indexing.coords import sort_places
from tensorlake_spark.ops.csr_matrix import run_sums, splits, turned_product
from tensorlake_spark.ops.elements import Elements, elements_at, nonzero, nonzero_elements
from tensorlake_spark.ops.loop_choice import loops_for
from tensorlake_spark.ops.numpy_arguments import axes_to_reduce, is_axis_of_scalar
from tensorlake_spark.ops.reducing.reduction_mask import Mask

Array = np.ndarray[Any, Any]

_LOOPS = "tensorlake_spark.ops.element_loops"
_EXACT = "dlqLQ"  # dtypes of numbers that are added as they are
_ORDERED = "bBhHiIlLqQfd"  # dtypes whose extremes a compiled loop finds
_MANY = 1 << 12  # elements below which SciPy costs more than it saves
_PART = 4096  # numbers whose sum has several accumulators
_SHORT = 16  # elements of a run, on the average, that a loop takes in their order
_MEMORY = (
    8  # where groups start is kept if that takes at most this part of the memory of the elements
)
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
    shape : tuple of int
        Lengths of the axes that stay.

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
        no_axis = is_axis_of_scalar(axis, x.ndim)
        self._reduced = sorted(axes_to_reduce(None if no_axis else axis, x.ndim))
        self._kept = [k for k in range(x.ndim) if k not in self._reduced]
        self.shape = tuple(x.shape[k] for k in self._kept)
        self.length: Any = math.prod(x.shape[k] for k in self._reduced)
        self.is_masked = where is not True
        self._framed = tuple(1 if k in self._reduced else n for k, n in enumerate(x.shape))
        if not keepdims:
            self._framed = self.shape
        if self.is_masked:
            mask = Mask.of(where, x.shape)
            chosen = mask.of_elements(x.coords)
            x = Elements._trusted(None, x.values[chosen], x.shape, x.places[chosen])
            if counted:
                counts = mask.counts(self._reduced)
                self.length = np.broadcast_to(counts, self.shape).reshape(-1)
        self._x, self.values = x, x.values
        self._order: Array | None = None  # of elements that are not side by side
        self._starts: Array | None = None  # of the groups that are
        self._counts: Array | None = None
        self._found_cells: Array | None = None
        if not self._kept and not np.ndim(self.length):  # all of it is one group
            self._starts = self._found_cells = np.zeros(min(1, x.nnz), np.int64)
            return
        if self._kept == [*range(len(self._kept))] and not np.ndim(self.length):
            self._starts = _adjacent(x, len(self._kept))
            return
        if np.ndim(self.length) or math.prod(self.shape) <= _SPREAD * x.nnz:
            return
        cells, self._order = sort_places(self._cells)
        self.values = self.values[self._order]
        self._starts = _runs(cells)
        self._found_cells = cells[self._starts]

    @property
    def _cells(self) -> Array:
        """Cells of the groups, or of the elements where these are scattered; in C order of the axes that stay."""
        if self._found_cells is None:
            starts = slice(None) if self._starts is None else self._starts
            self._found_cells = _among(self._x, self._kept, starts)
        return self._found_cells

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

    def positions(self, elements: Array) -> Array:
        """Return the places of some elements among those of their cell, stored or not, in C order."""
        return _among(
            self._x, self._reduced, elements if self._order is None else self._order[elements]
        )

    def numbers(self, elements: Array) -> Array:
        """Return the numbers of the groups of some elements."""
        if self._starts is None:
            return self._cells[elements]
        return np.repeat(np.arange(len(self._starts)), self.counts)[elements]

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
            if ufunc is np.add and values.dtype.char in _EXACT and len(values) > _MANY:
                return _sums(values, self._starts)
            is_extreme = ufunc in (np.maximum, np.minimum) and values.dtype.char in _ORDERED
            if is_extreme and len(values) < _SHORT * len(self._starts):
                loops = loops_for(_LOOPS, "run_best", values.dtype, values.nbytes)
                if loops is not None:
                    return np.asarray(loops.run_best(values, self._starts, ufunc is np.maximum))
            # Of times NumPy knows the dtype, and takes none.
            dtype = None if values.dtype.kind in "mM" else values.dtype
            return np.asarray(ufunc.reduceat(values, self._starts, dtype=dtype))
        size = math.prod(self.shape)
        if ufunc is np.add and values is self._x.values and self._is_split():
            lead = len(self._reduced)
            ones = np.ones(math.prod(self._x.shape[:lead]), values.dtype)
            return turned_product(self._x, range(lead), range(lead, self._x.ndim), ones)
        if ufunc is np.add and values.dtype.char in _EXACT:
            loops = loops_for(_LOOPS, "cell_sums", values.dtype, values.nbytes)
            if loops is not None:
                return np.asarray(loops.cell_sums(self._cells, values, size))
        if ufunc is np.add and values.dtype.kind == "f":
            return np.bincount(self._cells, values, size).astype(values.dtype, copy=False)
        out = np.zeros(size, values.dtype)
        if ufunc is np.multiply:
            out[...] = 1
        elif ufunc is not np.add:
            out[self._cells] = values  # any of them, to begin with
        ufunc.at(out, self._cells, values)
        return np.asarray(out)

    def _is_split(self) -> bool:
        """Whether the cells are the columns of a matrix that pays, and SciPy adds as NumPy does."""
        is_first = self._reduced == [*range(len(self._reduced))]
        if not is_first or self.dtype.char not in _EXACT or self.is_masked:
            return False
        return splits(self._x, len(self._reduced))

    def spread(self, found: Array) -> Array:
        """Return for each element what was computed for its group."""
        return np.repeat(found, self.counts) if self._starts is not None else found[self._cells]

    def dense(self, found: Array, empty: Any = 0) -> Array:
        """Return what was computed as an array, with one value for all cells that have no group."""
        if self._starts is not None:
            groups, found = found, np.full(math.prod(self.shape), empty, found.dtype)
            found[self._cells] = groups
        return found.reshape(self._framed)

    def result(self, found: Array, empty: Any = 0) -> Any:
        """Return what was computed as canonical elements, or as a scalar if no axes are left."""
        if not self._framed:
            return self.dense(found, empty)[()]
        if self._starts is None or empty:
            found = self.dense(found, empty).reshape(-1)
            places = np.flatnonzero(nonzero(found))  # of bools it is four times as fast
            return Elements._trusted(None, found[places], self._framed, places)
        if self._x._coords is not None and self._order is None and self._framed == self.shape:
            coords = self._x.coords[: len(self._kept)].take(self._starts, axis=1)
            return nonzero_elements(coords, found, self.shape, None)
        return elements_at(self._cells, found, self._framed)


def sum_of_many(values: Array) -> Any:
    """Return the sum of many numbers, a scalar of their dtype; None of a few, and of a dtype that is not summed up in.

    What is done between two sums of a million counts: the processor's cache is full of numbers then.

    Examples
    --------
    >>> sum_of_many(np.ones(5000)), sum_of_many(np.ones(5000, np.int8)), sum_of_many(np.ones(5))
    (np.float64(5000.0), None, None)
    """
    if values.dtype.char not in _EXACT or len(values) <= _MANY:
        return None
    loops = loops_for(_LOOPS, "total", values.dtype, values.nbytes)
    return _total(values) if loops is None else loops.total(values)


def _sums(values: Array, starts: Array) -> Array:
    """Return the sums of many numbers that lie side by side in groups."""
    if len(starts) == 1:
        return np.asarray(sum_of_many(values))[None]
    if len(values) >= _SHORT * len(starts):
        return np.asarray(np.add.reduceat(values, starts))
    loops = loops_for(_LOOPS, "run_sums", values.dtype, values.nbytes)
    return run_sums(values, starts) if loops is None else loops.run_sums(values, starts)


def _total(values: Array) -> Any:
    """Return the sum of many numbers: of each part by several accumulators, of the parts as NumPy does."""
    if values.dtype.kind != "f":
        return np.add.reduce(values)
    whole = len(values) // _PART * _PART
    # einsum has several accumulators, and takes two thirds of the time of a sum.
    parts = np.einsum("ij->i", values[:whole].reshape(-1, _PART))
    return np.add.reduce(parts) + np.add.reduce(values[whole:])


def _adjacent(x: Elements, kept: int) -> Array:
    """Return where the groups of the first axes start; what row pointers are to a matrix."""
    found: Array | None = x._cached.get(("groups", kept))
    if found is None:
        by_places = x._coords is None
        found = _runs(_among(x, [*range(kept)])) if by_places else _runs(*x.coords[:kept])
        if _MEMORY * found.nbytes <= x.nbytes:
            x._cached["groups", kept] = found
    return found


def _runs(*rows: Array) -> Array:
    """Return the numbers of the elements that differ in one of the rows from the element before."""
    fresh = np.zeros(len(rows[0]), bool)
    fresh[:1] = True
    for row in rows:
        fresh[1:] |= row[1:] != row[:-1]
    return np.flatnonzero(fresh)


def _among(x: Elements, axes: list[int], elements: Any = slice(None)) -> Array:
    """Return the places of elements among those of some axes, in C order."""
    own = max(1, math.prod(x.shape[k] for k in axes))
    if x._coords is None:  # then places save their computation
        if axes == [*range(len(axes))]:
            return np.asarray(x.places[elements] // max(1, x.size // own))
        if axes == [*range(x.ndim - len(axes), x.ndim)]:
            places = x.places[elements]
            return np.asarray(places - places // own * own)
    rows = x.coords
    out = rows[axes[0]][elements] if axes else np.zeros(x.nnz, np.int64)[elements]
    for number, k in enumerate(axes[1:]):
        out = np.multiply(out, x.shape[k], out=out if number else None)
        out += rows[k][elements]
    return np.asarray(out)
