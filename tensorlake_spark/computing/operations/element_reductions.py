"""Reductions of sparse tensors, folded: elements are put into the cell of the answer that they belong to."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from tensorlake_spark.computing.fold import AxesFold, Block, Place
from tensorlake_spark.computing.operations.cell_tables import (
    can_be_tabled,
    in_tables,
    joined,
)
from tensorlake_spark.computing.operations.reduction_kernels import Kernel
from tensorlake_spark.indexing.coords import ravel, sort_places, unravel
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.result_memory import scratch
from tensorlake_spark.layouts.sparse.element_keys import LOOPS
from tensorlake_spark.ops.elements import Elements, nonzero
from tensorlake_spark.ops.lookup import look_up
from tensorlake_spark.ops.loop_choice import loops_for
from tensorlake_spark.ops.reducing.reduction_mask import Mask
from tensorlake_spark.thread_shares import PART, by_parts

Array = np.ndarray[Any, Any]

_ELEMENT_LOOPS = "tensorlake_spark.ops.element_loops"

_MANY = (
    1 << 22
)  # so many elements or states wait to be merged, or as many as there were after the last time


@dataclass
class Cells:
    """States of cells of an answer, in parts: a cell has an entry in each part that knows of it.

    Attributes
    ----------
    parts : list of tuple of ndarray
        Cells, ascending and each once, as places in C order; elements that each has; then the state.
    merged : int
        Entries that were left when parts were last merged.
    waiting : list of tuple of ndarray
        Cells and values of elements, in any order, that no part has yet: many are put into their cells at once.
    """

    parts: list[tuple[Array, ...]]
    merged: int = 0
    waiting: list[tuple[Array, ...]] = field(default_factory=list)

    def with_others(self, other: Cells) -> Cells:
        """Return the parts of both."""
        merged = max(self.merged, other.merged)
        return Cells([*self.parts, *other.parts], merged, [*self.waiting, *other.waiting])

    def cut(self, count: int, cells: int) -> Iterator[tuple[int, Cells]]:
        """Yield what lies in each of `count` ranges of so many cells, where there is something; none may wait."""
        edges = [cells * number // count for number in range(count + 1)]
        found = [np.searchsorted(part[0], edges).tolist() for part in self.parts]
        for number in range(count):
            sides = [slice(*at[number : number + 2]) for at in found]
            parts = [
                tuple(array[side] for array in part)
                for part, side in zip(self.parts, sides, strict=True)
                if side.start < side.stop
            ]
            if parts:
                yield number, Cells(parts)

    @property
    def is_much(self) -> bool:
        """Whether it is time to merge parts."""
        held = sum(len(part[0]) for parts in (self.parts, self.waiting) for part in parts)
        return held > max(_MANY, 2 * self.merged)


class CellsFold(AxesFold[Cells]):
    """A fold over some axes of a sparse tensor, whose partials are cells of the answer that have elements."""

    @property
    def in_order(self) -> bool:
        return False

    def combine(self, one: Cells, other: Cells) -> Cells:
        both = one.with_others(other)
        if not both.is_much:
            return both
        parts = self._merged(both)
        return Cells(parts, len(parts[0][0]))

    def cut(self, partial: Cells, count: int) -> Iterator[tuple[int, Cells]]:
        return self.packed(partial).cut(count, math.prod(self.kept(self.shape)))

    def packed(self, partial: Cells) -> Cells:
        return Cells(self._merged(partial))

    @abstractmethod
    def _merged(self, all_: Cells) -> list[tuple[Array, ...]]:
        """Return parts as one at most."""


@dataclass(frozen=True)
class ElementReduction(CellsFold):
    """A reduction of a sparse tensor; zeros that are not stored are counted once, at the end.

    Attributes are those of `BlockReduction`.
    """

    kernel: Kernel
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keepdims: bool = False
    is_scalar: bool = False
    mask: Mask | None = None

    def map(self, place: Place, block: Block) -> Cells:
        some = cast("Elements", block)
        if self.mask is not None:
            chosen = self.mask.of_elements(some.coords)
            places, values = some.places[chosen], some.values[chosen]
            some = Elements._trusted(None, values, some.shape, places)
        if not some.nnz:
            return Cells([])
        cells, values = kept_places(some, self.axes), some.values
        if len(self.axes) == some.ndim:
            return Cells([self._part(cells, values)])
        return Cells([], 0, [(cells, values)])

    def _part(self, cells: Array, values: Array) -> tuple[Array, ...]:
        """Return the part of elements whose cells ascend."""
        starts = run_starts(cells)
        counts = np.diff(starts, append=len(cells))
        return cells[starts], counts, *self.kernel.groups(values, starts)

    def finish(self, partial: Cells | None) -> Any:
        kept, shape = self.kept(self.shape), self.answer_shape
        total: Any = math.prod(self.shape[k] for k in self.axes)
        if self.mask is not None:
            total = self.mask.counts(self.axes)
        unstored = self.kernel.with_zeros(self.kernel.blank(np.shape(total)), total)
        nothing = self.kernel.finish(unstored, total)
        parts = self._merged(partial) if partial is not None else []
        if not parts:
            cells, values = np.zeros(0, np.int64), np.zeros(0, nothing.dtype)
        else:
            cells, counts, *state = parts[0]
            values = scratch(cells.shape, nothing.dtype)

            def finish_some(here: slice) -> None:
                all_ = look_up(total, unravel(cells[here], kept)) if np.ndim(total) else total
                done = tuple(array[here] for array in state)
                values[here] = self.kernel.finish_with_zeros(done, counts[here], all_)

            by_parts(finish_some, len(cells), PART)
        if not shape:
            return values[0] if len(values) else nothing[()]
        if nothing.any():
            out = np.broadcast_to(nothing, kept).flatten()
            out[cells] = values
            cells, values = np.arange(len(out)), out
        return elements_in(cells, values, shape)

    def _merged(self, all_: Cells) -> list[tuple[Array, ...]]:
        """Return parts as one at most, in which each cell has one entry."""
        parts = [part for part in all_.parts if len(part[0])]
        if all_.waiting:
            parts.append(self._gathered(all_.waiting))
        if len(parts) < 2:
            return [*parts]
        cells, counts, *state = joined(parts)
        cells, by = sort_places(cells)
        starts = run_starts(cells)
        if len(starts) == len(cells):
            return [(cells, counts[by], *(array[by] for array in state))]
        merged = self.kernel.merge(tuple(array[by] for array in state), starts)
        return [(cells[starts], np.add.reduceat(counts[by], starts), *merged)]

    def _gathered(self, waiting: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        """Return the part of elements that come in any order: by tables, or sorted where these would be empty."""
        total = math.prod(self.kept(self.shape))
        if not can_be_tabled(sum(len(part[0]) for part in waiting), total):
            cells, values = joined(waiting)
            cells, by = sort_places(cells.astype(np.int64, copy=False))
            return self._part(cells, values[by])
        at_once = self.kernel.in_cells(waiting, total)
        if at_once is not None:
            return at_once

        def states(cells: Array, counts: Array, at: Array, values: Array) -> tuple[Array, ...]:
            return cells, counts, *self.kernel.scatter(at, values, counts)

        return joined(in_tables(states, waiting, total))


def kept_places(block: Elements, axes: Sequence[int]) -> Array:
    """Return for each element the place in C order of its coordinates without some axes.

    Examples
    --------
    >>> some = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5.0, 7.0]), (3, 2))
    >>> kept_places(some, (1,)), kept_places(some, (0,)), kept_places(some, (0, 1))
    (array([0, 2]), array([1, 0]), array([0, 0]))
    """
    shape, ndim = block.shape, len(block.shape)
    if not axes:
        return block.places
    if len(axes) == ndim:
        return np.zeros(block.nnz, np.int64)
    first = min(axes)
    if first + len(axes) == ndim:
        return _divided(block.places, math.prod(shape[first:]), block.size)[0]
    if max(axes) == len(axes) - 1:
        inner = math.prod(shape[len(axes) :])
        return _divided(block.places, inner, block.size, only_rests=True)[1]
    kept = [k for k in range(ndim) if k not in axes]
    return ravel(block.coords[kept], [shape[k] for k in kept])


def cells_and_places(block: Elements, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return for each element its place in C order of the axes that are not reduced, and of those that are.

    Parameters
    ----------
    block : Elements
        The elements.
    axes : sequence of int
        One axis that is reduced, or all.

    Examples
    --------
    >>> some = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5.0, 7.0]), (3, 2))
    >>> cells_and_places(some, (0,)), cells_and_places(some, (0, 1))
    ((array([1, 0]), array([0, 2])), (array([0, 0]), array([1, 4])))
    """
    if len(axes) == block.ndim:
        return kept_places(block, axes), block.places
    (axis,) = axes
    inner, length = math.prod(block.shape[axis + 1 :]), block.shape[axis]
    if not axis:
        at, cells = _divided(block.places, inner, block.size)
        return cells, at
    lines = block.places
    if inner > 1:
        lines, rests = _divided(lines, inner, block.size, narrow=False)
    cells, at = _divided(lines, length, block.size, narrow=inner == 1)
    if inner > 1:
        np.multiply(cells, inner, out=cells)
        np.add(cells, rests, out=cells)
    return cells, at


def _divided(
    places: Array, by: int, size: int, only_rests: bool = False, narrow: bool = True
) -> tuple[Array, Array]:
    """Return the quotients and the rests of a division of places below a size, in memory that is used again.

    With `only_rests` nobody looks at the quotients, and they may be anything. Narrow ones may be int32.

    Examples
    --------
    >>> _divided(np.array([3, 17]), 5, 20)
    (array([0, 3]), array([3, 2]))
    """
    loops = compiled(LOOPS, "divide", nbytes=places.nbytes) if size < 1 << 52 else None
    most = by if only_rests else max(by, size // max(by, 1))
    is_narrow = narrow and loops is not None and most < 1 << 31
    integers = np.dtype(np.int32 if is_narrow else np.int64)
    quotients, rests = scratch(places.shape, integers), scratch(places.shape, integers)
    if loops is not None:
        loops.divide(places, by, quotients[:0] if only_rests else quotients, rests)
        return quotients, rests
    np.floor_divide(places, by, out=quotients)
    np.multiply(quotients, by, out=rests)
    return quotients, np.subtract(places, rests, out=rests)


def elements_in(cells: Array, values: Array, shape: tuple[int, ...]) -> Elements:
    """Return the canonical elements in cells that ascend: those that are not zero, as `elements_at` does.

    What is kept is taken part by part into memory that is used again: new memory costs more than to copy.

    Examples
    --------
    >>> elements_in(np.array([1, 4]), np.array([5, 0]), (3, 2)).coords.tolist()
    [[0], [1]]
    """
    mask = nonzero(values)
    counts = [np.count_nonzero(mask[first : first + PART]) for first in range(0, len(mask), PART)]
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    if counts and ends[-1] < len(cells):
        size, loops = values.dtype.itemsize, None
        if size in (1, 2, 4, 8):
            loops = loops_for(_ELEMENT_LOOPS, "keep", np.dtype(f"u{size}"), values.nbytes)
        every = cells, values
        cells, values = (scratch((ends[-1],), array.dtype) for array in every)

        def keep_some(here: slice) -> None:
            number = here.start // PART
            into = slice(ends[number] - counts[number], ends[number])
            some, kept = [array[here] for array in every], [cells[into], values[into]]
            if loops is not None:
                loops.keep(mask[here], *some, *kept)
                return
            at = np.flatnonzero(mask[here])
            for array, out in zip(some, kept, strict=True):
                np.take(array, at, out=out, mode="clip")

        by_parts(keep_some, len(mask), PART)
    return Elements._trusted(None, values, shape, cells)


def run_starts(cells: Array) -> Array:
    """Return where each run of equal cells begins."""
    return np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))[: len(cells)]
