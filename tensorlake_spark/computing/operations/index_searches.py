"""Where elements are: the first largest or smallest one along an axis, and all that are not zero."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial as _partial
from typing import Any, cast

import numpy as np

from tensorlake_spark.computing.fold import AxesFold, Block, Fold, Place, indices_at
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.accumulation import accumulate, has_loop
from tensorlake_spark.computing.operations.block_reductions import reduced_axes
from tensorlake_spark.computing.operations.cell_tables import (
    Parts,
    can_be_tabled,
    in_cells,
    in_tables,
    joined,
)
from tensorlake_spark.computing.operations.element_reductions import (
    Cells,
    CellsFold,
    cells_and_places,
    elements_in,
    run_starts,
)
from tensorlake_spark.computing.operations.state_dtypes import identity
from tensorlake_spark.computing.operations.tiles import (
    State,
    Tiles,
    absorbed,
    by_slabs,
    gathered,
    unite,
    whole,
)
from tensorlake_spark.indexing.coords import ravel, sort_places, unravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import NO_ELEMENT, axis_to_search, refused_dtypes

Array = np.ndarray[Any, Any]

_LONGEST = 255  # of an axis along which positions are found by multiplying bytes
_ORDERED = "bBhHiIlLqQfd"  # dtypes of which a compiled loop finds the best
_FEW = 16  # planes that are compared one by one


def search(stored: Stored, name: str, axis: int | None = None, keepdims: bool = False) -> Fold[Any]:
    """Return the fold of ``argmax`` or ``argmin``.

    Raises
    ------
    AxisError
        If there is no such axis. InvalidKeyTypeError if it is not an integer.
    InvalidTensorError
        A ValueError, as NumPy's, where there is no element to choose from.
    """
    shape, largest = stored.shape, name == "argmax"
    axes = reduced_axes(axis_to_search(axis, len(shape)), len(shape))
    if not math.prod(shape[k] for k in axes):
        function, nothing = getattr(np, name), np.empty(0, stored.dtype)
        with refused_dtypes(function, [nothing], remedy=NO_ELEMENT):
            function(nothing)
    make = ElementSearch if stored.is_sparse else BlockSearch
    return make(shape, axes, stored.dtype, largest, keepdims)


@dataclass(frozen=True)
class BlockSearch(AxesFold[Tiles]):
    """The first largest or smallest element of a dense tensor: states are values and their places.

    Attributes
    ----------
    shape : tuple of int
        Of the selection.
    axes : tuple of int
        One axis, or all.
    dtype : dtype
        Of its elements.
    largest : bool
        Whether the largest is looked for.
    keepdims : bool
        Whether axes stay, with length 1.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    largest: bool
    keepdims: bool = False

    def map(self, place: Place, block: Block) -> Tiles:
        return Tiles.of(
            self.kept(self.shape), self.kept(place), self._found(place, cast("Array", block))
        )

    def _found(self, place: Place, block: Array) -> State:
        if len(self.axes) == 1:
            return by_slabs(_partial(self._along, place[self.axes[0]]), block, self.axes)
        best = int(block.argmax() if self.largest else block.argmin())
        coords = np.unravel_index(best, block.shape)
        inside = [indices_at(part, c) for part, c in zip(place, coords, strict=True)]
        at = ravel(np.array(inside, np.int64).reshape(-1, 1), self.shape)[0]
        return np.asarray(block[coords]), np.asarray(at, self._word)

    def _along(self, part: slice | Array, block: Array, axes: tuple[int, ...]) -> State:
        """Return the state of a slab that has a part of the axis."""
        with np.errstate(all="ignore"):
            value, first = _along(self.largest, block, axes)
        if not isinstance(part, slice):
            return value, part[first].astype(self._word)
        at = first.astype(self._word, copy=False)
        at += self._word.type(part.start)
        return value, at

    def _reduce(self, part: slice | Array, state: State, block: Array) -> None:
        """Change a state by a slab that has a part of the axis."""
        value, at = state
        planes = np.moveaxis(block, self.axes[0], 0)
        is_short = len(planes) <= _FEW and self.axes[0] < block.ndim - 1
        if isinstance(part, slice) and is_short and at.max() < part.start:
            # Only what is better counts. If no plane is better, the old place stays.
            new = _later(self.largest, planes, value)
            new_at = new.astype(self._word)
            new_at += self._word.type(part.start - 1)
            _take(at, new_at, new)
        else:
            self.absorb(state, self._along(part, block, self.axes))

    def add(self, partial: Tiles | None, place: Place, block: Block) -> Tiles:
        dense, part = cast("Array", block), place[self.axes[0]] if self.axes else None
        loop = "best" if len(self.axes) == 1 and isinstance(part, slice) else ""
        if has_loop(loop, dense, self.axes, self.blank((0,))):
            assert isinstance(part, slice)  # nosec B101 # for mypy
            more = part.start, self.largest

            def into(state: State, here: Place) -> bool:
                return accumulate(loop, dense, self.axes, state, here, *more)

            found = gathered(partial, self.kept(self.shape), self.kept(place), self, into)
            if found is not None:
                return found
        if len(self.axes) == 1 and part is not None:
            reduce = _partial(self._reduce, part)
            found = absorbed(partial, self.kept(place), self, reduce, dense, self.axes)
            if found is not None:
                return found
        return super().add(partial, place, block)

    def combine(self, one: Tiles, other: Tiles) -> Tiles:
        return unite(one, other, self)

    def cut(self, partial: Tiles, count: int) -> Iterator[tuple[int, Tiles]]:
        return partial.cut(count)

    def finish(self, partial: Tiles | None) -> Any:
        found = (self.blank(self.kept(self.shape)) if partial is None else whole(partial, self))[1]
        if self.keepdims:
            found = np.expand_dims(found, self.axes)
        return (
            np.asarray(found, np.int64)[()]
            if not found.ndim
            else found.astype(np.int64, copy=False)
        )

    def blank(self, shape: Any) -> State:
        """Return states of nothing: their place is behind all others."""
        value = np.full(shape, identity(self._ufunc, self.dtype), self.dtype)
        return value, np.full(shape, np.iinfo(self._word).max, self._word)

    def wide(self, state: State) -> State:
        """Return a state that can be written to."""
        return np.array(state[0]), np.array(state[1])

    def absorb(self, state: State, other: State) -> None:
        """Take the better ones of another state; of equal ones those that come first."""
        (value, at), (new, new_at) = state, other
        with np.errstate(all="ignore"):
            take = better(new, value, self.largest)
            take |= same(new, value) & (new_at < at)
            self._ufunc(value, new, out=value)
        _take(at, new_at, take)

    @property
    def _ufunc(self) -> np.ufunc:
        return np.maximum if self.largest else np.minimum

    @property
    def _word(self) -> np.dtype[Any]:
        """Integers that hold all places, and one that is behind them."""
        return np.min_scalar_type(math.prod(self.shape[k] for k in self.axes))


@dataclass(frozen=True)
class ElementSearch(CellsFold):
    """The first largest or smallest element of a sparse tensor.

    Parts of the partial have cells, places in them, and values, sorted by the first two. Of a cell that has a better
    element than zero only that one stays. Of the others all stay: which zero is the first that is not stored, they
    tell together.

    Attributes are those of `BlockSearch`.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    largest: bool
    keepdims: bool = False

    def map(self, place: Place, block: Block) -> Cells:
        some = cast("Elements", block)
        if not some.nnz:
            return Cells([])
        cells, at = cells_and_places(some, self.axes)
        if len(self.axes) == some.ndim:
            return Cells([self._gathered([(cells, at, some.values)])])
        return Cells([], 0, [(cells, at, some.values)])

    def _merged(self, all_: Cells) -> list[tuple[Array, ...]]:
        """Return parts as one at most."""
        parts = [part for part in all_.parts if len(part[0])] + all_.waiting
        if not all_.waiting and len(parts) < 2:
            return parts
        return [self._gathered(parts)]

    def _gathered(self, parts: Parts) -> tuple[Array, ...]:
        """Return what has to be known of elements in any order, sorted by cell and place."""
        cells, worst = math.prod(self.kept(self.shape)), identity(self._ufunc, self.dtype)
        is_tabled = can_be_tabled(sum(len(part[0]) for part in parts), cells, self._total)
        if is_tabled:
            found = in_cells("best", parts, cells, _ORDERED, self._total, worst, self.largest)
            if found is None:
                return joined(in_tables(self._best_of, parts, cells))
            if not self._undecided(found[2]).any():
                return *found[:2], found[2].view(self.dtype)
        return self._sorted(*joined(parts))

    def _best_of(
        self, cells: Array, counts: Array, of: Array, at: Array, values: Array
    ) -> tuple[Array, ...]:
        """Return what has to be known of elements whose cells are numbered, nothing sorted where all are decided."""
        best = np.full(len(cells), identity(self._ufunc, self.dtype), self.dtype)
        with np.errstate(all="ignore"):
            self._ufunc.at(best, of, values)
        if self._undecided(best).any():
            return self._sorted(cells[of], at, values)
        first = np.full(len(cells), self._total)
        hit = np.flatnonzero(same(values, best[of]))
        np.minimum.at(first, of[hit], at[hit])
        return cells, first, best

    def _undecided(self, best: Array) -> Array:
        """Return which values do not come before zero; NaN does."""
        zero = np.zeros((), self.dtype)
        with np.errstate(invalid="ignore"):
            return np.asarray(best <= zero if self.largest else best >= zero)

    def _sorted(self, cells: Array, at: Array, values: Array) -> tuple[Array, ...]:
        """Return what has to be known of elements in any order."""
        cells = cells.astype(np.int64) * self._total
        cells += at
        keys, by = sort_places(cells)
        cells = keys // self._total
        return self._best(cells, keys - cells * self._total, values[by])

    @property
    def _ufunc(self) -> np.ufunc:
        return np.maximum if self.largest else np.minimum

    @property
    def _total(self) -> int:
        return math.prod(self.shape[k] for k in self.axes)

    def _best(self, cells: Array, at: Array, values: Array) -> tuple[Array, Array, Array]:
        """Return what has to be known of elements that are sorted by cell and place."""
        starts = run_starts(cells)
        if len(starts) == len(cells):
            return cells, at, values
        of = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cells)))
        with np.errstate(all="ignore"):
            best = self._ufunc.reduceat(values, starts)
        undecided = self._undecided(best)
        is_best = np.flatnonzero(same(values, best[of]))
        first = is_best[run_starts(of[is_best])]
        if not undecided.any():
            return cells[first], at[first], values[first]
        stays = undecided[of]
        stays[first] = True
        return cells[stays], at[stays], values[stays]

    def finish(self, partial: Cells | None) -> Any:
        none = np.zeros(0, np.int64)
        parts = self._merged(partial) if partial is not None else []
        cells, at, values = parts[0] if parts else (none, none, np.zeros(0, self.dtype))
        if not self._undecided(values).any():
            answers = at  # each cell has one entry
        else:
            starts = run_starts(cells)
            answers, cells = self._first_of_each(cells, at, values, starts), cells[starts]
        if not self.answer_shape and not self.keepdims:
            return answers[0] if len(answers) else np.int64(0)
        return elements_in(cells, answers, self.answer_shape)

    def _first_of_each(self, cells: Array, at: Array, values: Array, starts: Array) -> Array:
        """Return the place in each cell, zeros that are not stored among the elements."""
        zero = np.zeros(1, self.dtype)
        counts = np.diff(starts, append=len(cells))
        best = self._ufunc.reduceat(values, starts)
        rank = np.arange(len(at)) - np.repeat(starts, counts)
        # The first place that is not stored is the first whose rank is not itself.
        hole = np.where(at == rank, counts.max() + 1, rank)
        holes = np.minimum(np.minimum.reduceat(hole, starts), counts)
        is_best = np.where(same(values, np.repeat(best, counts)), at, np.iinfo(np.int64).max)
        first = np.minimum.reduceat(is_best, starts)
        undecided = self._undecided(best)
        worse = better(np.broadcast_to(zero, best.shape), best, self.largest)
        has_hole = holes < self._total
        answer = np.where(worse & has_hole, holes, first)
        return np.where(undecided & ~worse & has_hole, np.minimum(first, holes), answer)


@dataclass(frozen=True)
class NonzeroSearch(Fold[list[Array]]):
    """Places of all elements that are not zero, in C order; the partial is parts of them.

    Attributes
    ----------
    shape : tuple of int
        Of the selection.
    stacked : bool
        Whether coordinates are one array with a row for each element, as ``argwhere`` has them.
    """

    shape: tuple[int, ...]
    stacked: bool = False

    def map(self, place: Place, block: Block) -> list[Array]:
        if isinstance(block, Elements):
            return [block.places[block.values.astype(bool)]]
        found = np.nonzero(np.atleast_1d(block))
        if not block.ndim:
            return [np.zeros(len(found[0]), np.int64)]
        coords = [indices_at(part, row) for part, row in zip(place, found, strict=True)]
        return [ravel(np.stack(coords), self.shape)]

    def combine(self, one: list[Array], other: list[Array]) -> list[Array]:
        return one + other

    def finish(self, partial: list[Array] | None) -> Any:
        places = np.concatenate(partial) if partial else np.zeros(0, np.int64)
        places.sort(kind="stable")
        coords = unravel(places, self.shape)
        return np.ascontiguousarray(coords.T) if self.stacked else tuple(coords)


def better(one: Array, other: Array, largest: bool) -> Array:
    """Return where one value comes before another: NaN before all numbers, as in NumPy.

    Examples
    --------
    >>> better(np.array([2.0, np.nan, 1.0]), np.array([1.0, 5.0, np.nan]), True).tolist()
    [True, True, False]
    """
    with np.errstate(invalid="ignore"):  # of NaN in complex numbers NumPy warns
        out = np.asarray(one > other if largest else one < other)
    if one.dtype.kind in "fcmMV":
        lost, missing = (np.isnat if one.dtype.kind in "mM" else np.isnan)(one), _is_nan(other)
        out = (out | lost) & ~missing
    return out


def same(one: Array, other: Array) -> Array:
    """Return where neither value comes before the other."""
    out = np.asarray(one == other)
    return out | (_is_nan(one) & _is_nan(other)) if one.dtype.kind in "fcmMV" else out


def _is_nan(values: Array) -> Array:
    return np.asarray(np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values))


def _along(largest: bool, block: Array, axes: tuple[int, ...]) -> State:
    """Return the best values along an axis, and where the first of each is."""
    (axis,) = axes
    length = block.shape[axis]
    if length == 1:
        value = block.take(0, axis)
        return value, np.zeros(value.shape, np.uint8)
    if axis == block.ndim - 1 or length > _LONGEST:
        first = block.argmax(axis) if largest else block.argmin(axis)
        value = np.take_along_axis(block, np.expand_dims(first, axis), axis)
        return np.squeeze(value, axis), first
    if length <= _FEW:
        planes = np.moveaxis(block, axis, 0)
        value = planes[0].copy()
        return value, _later(largest, planes[1:], value)
    ufunc = np.maximum if largest else np.minimum
    value = np.asarray(ufunc.reduce(block, axis=axis))
    # Of a one in its place from the end, the largest is the first: no element is looked at by itself.
    hit = same(block, np.expand_dims(value, axis)).view(np.uint8)
    weights = np.arange(length, 0, -1).astype(np.uint8).reshape(-1, *(1,) * (block.ndim - axis - 1))
    return value, (length - np.maximum.reduce(hit * weights, axis=axis)).astype(np.uint8)


def _later(largest: bool, planes: Array, value: Array) -> Array:
    """Improve values by planes, and return as uint8 which plane each is from now: 0 for none, else counted from 1."""
    ufunc, at = np.maximum if largest else np.minimum, np.zeros(value.shape, np.uint8)
    for number, plane in enumerate(planes, 1):
        is_later = better(plane, value, largest).view(np.uint8)
        np.maximum(at, is_later * np.uint8(number), out=at)
        ufunc(value, plane, out=value)
    return at


def _take(at: Array, new: Array, where: Array) -> None:
    """Take new places where a condition holds, by bits: NumPy copies under a mask one by one."""
    change = at ^ new
    change &= np.negative(where.astype(bool, copy=False).view(np.uint8).astype(at.dtype))
    np.bitwise_xor(at, change, out=at)
