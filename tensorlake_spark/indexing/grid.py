"""The grid on which a tensor's boxes lie: per axis runs of equal chunks, one run for each append."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.box import Box

Array = np.ndarray[Any, Any]


def cells_along(positions: Array, side: int, starts: Sequence[int]) -> tuple[Array, Array]:
    """Return for positions on an axis the numbers of their cells, and where these begin.

    Parameters
    ----------
    positions : integer ndarray, shape (n,)
        Not negative.
    side : int
        Length of a whole cell.
    starts : sequence of int
        Where a fresh run of cells begins; see `Grid.segments`.

    Examples
    --------
    >>> cells_along(np.array([0, 5, 7]), 4, (0, 6))
    (array([0, 1, 2]), array([0, 4, 6]))
    """
    if len(starts) == 1:
        bits = (side - 1).bit_length()
        number = positions >> bits if side == 1 << bits else positions // side
        return number, number * side
    first = np.array(starts, np.int64)
    run = np.searchsorted(first, positions, side="right") - 1
    inside = (positions - first[run]) // side
    # Cells of earlier runs come first; the last of a run may be clipped.
    before = np.concatenate([[0], np.cumsum(-(-np.diff(first) // side))])
    return before[run] + inside, first[run] + inside * side


@dataclass(frozen=True, slots=True)
class Grid:
    """A rectilinear grid.

    Attributes
    ----------
    shape : tuple of int
        Length of every axis.
    chunk : tuple of int
        Length of a whole cell on every axis, at least 1.
    segments : tuple of tuple of int
        For every axis the positions at which a fresh run of cells begins, the first of them 0. An
        append that starts in the middle of a cell starts a new run.

    Examples
    --------
    >>> grid = Grid((10,), (4,))
    >>> grid.cuts(0).tolist(), grid.extend(0, 3).cuts(0).tolist()
    ([0, 4, 8, 10], [0, 4, 8, 10, 13])
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.segments:
            object.__setattr__(self, "segments", ((0,),) * len(self.shape))
        if not len(self.shape) == len(self.chunk) == len(self.segments):
            raise InvalidKeyError(
                f"shape {self.shape}, chunk {self.chunk} and segments {self.segments} differ in rank"
            )
        if min(self.chunk, default=1) < 1:
            raise InvalidKeyError(f"chunk {self.chunk} has a length below 1")
        for axis, starts in enumerate(self.segments):
            ordered = all(a < b for a, b in itertools.pairwise(starts))
            if not starts or starts[0] != 0 or not ordered or starts[-1] > self.shape[axis]:
                raise InvalidKeyError(
                    f"axis {axis}: segments {starts} do not rise from 0 within {self.shape[axis]}"
                )

    def cuts(self, axis: int) -> Array:
        """Return all positions at which cells of an axis begin or end: ``[0, ..., size]``.

        An axis of length 0 has the one cut 0, and no cell.

        Examples
        --------
        >>> Grid((10,), (4,), ((0, 6),)).cuts(0).tolist()
        [0, 4, 6, 10]
        """
        starts = self.segments[axis]
        stops = (*starts[1:], self.shape[axis])
        runs = [np.arange(a, b, self.chunk[axis]) for a, b in zip(starts, stops, strict=True)]
        return np.concatenate([*runs, [self.shape[axis]]], dtype=np.int64)

    @property
    def counts(self) -> tuple[int, ...]:
        """Cells on every axis."""
        return tuple(
            sum(
                -(-(b - a) // self.chunk[axis])
                for a, b in zip(starts, (*starts[1:], self.shape[axis]), strict=True)
            )
            for axis, starts in enumerate(self.segments)
        )

    @property
    def n_cells(self) -> int:
        """Cells of the grid."""
        return math.prod(self.counts)

    def cell_ranges(self, box: Box) -> tuple[range, ...]:
        """Return for every axis the numbers of the cells that overlap `box`; none lies past the shape.

        Examples
        --------
        >>> Grid((10, 4), (4, 4)).cell_ranges(Box((3, 0), (5, 4)))
        (range(0, 2), range(0, 1))
        """
        return tuple(
            self._range(axis, a, b)
            for axis, a, b in zip(range(len(self.shape)), box.lo, box.hi, strict=True)
        )

    def _runs(self, axis: int) -> Iterator[tuple[int, int, int]]:
        """Yield ``(start, stop, number of the first cell)`` for the runs of an axis."""
        starts = self.segments[axis]
        number = 0
        for a, b in itertools.zip_longest(starts, starts[1:], fillvalue=self.shape[axis]):
            yield a, b, number
            number += -(-(b - a) // self.chunk[axis])

    def _number(self, axis: int, position: int) -> int:
        """Return the number of the cell in which a position of an axis lies."""
        a, _, number = next(run for run in self._runs(axis) if position < run[1])
        return number + (position - a) // self.chunk[axis]

    def _range(self, axis: int, lo: int, hi: int) -> range:
        hi = min(hi, self.shape[axis])
        if hi <= lo:
            return range(0)
        return range(self._number(axis, lo), self._number(axis, hi - 1) + 1)

    def _sides(self, axis: int, lo: int, hi: int) -> list[tuple[int, int]]:
        """Return ``(start, stop)`` of the cells of an axis that overlap ``[lo, hi)``, and no others."""
        step, out = self.chunk[axis], []
        for a, b, _ in self._runs(axis):
            if max(a, lo) < min(b, hi):
                first = a + (max(a, lo) - a) // step * step
                out += [(c, min(c + step, b)) for c in range(first, min(b, hi), step)]
        return out

    def side(self, axis: int, cell: int) -> tuple[int, int]:
        """Return ``(start, stop)`` of the cell of an axis that has this number.

        Examples
        --------
        >>> Grid((10,), (4,), ((0, 6),)).side(0, 1)
        (4, 6)
        """
        for a, b, number in self._runs(axis):
            start = a + (cell - number) * self.chunk[axis]
            if a <= start < b:
                return start, min(start + self.chunk[axis], b)
        raise InvalidKeyError(
            f"cell {cell} is out of bounds for axis {axis} with {self.counts[axis]} cells"
        )

    def count(self, box: Box) -> int:
        """Return how many cells overlap `box`, without going through them.

        Examples
        --------
        >>> Grid((10,), (4,)).count(Box((3,), (9,)))
        3
        """
        return math.prod(len(r) for r in self.cell_ranges(box))

    def cell_box(self, index: Sequence[int]) -> Box:
        """Return the box of one cell, clipped to the shape.

        Examples
        --------
        >>> Grid((10,), (4,)).cell_box((2,))
        Box(lo=(8,), hi=(10,))
        """
        axes = range(len(self.shape))
        sides = [self.side(axis, cell) for axis, cell in zip(axes, index, strict=True)]
        return Box(tuple(a for a, _ in sides), tuple(b for _, b in sides))

    def cells(self, box: Box) -> Iterator[Box]:
        """Yield, in C order, the whole boxes of the cells that overlap `box`.

        Examples
        --------
        >>> [c.lo for c in Grid((10,), (4,)).cells(Box((5,), (9,)))]
        [(4,), (8,)]
        """
        sides = [
            self._sides(axis, a, b)
            for axis, a, b in zip(range(len(self.shape)), box.lo, box.hi, strict=True)
        ]
        for corner in itertools.product(*sides):
            yield Box(tuple(a for a, _ in corner), tuple(b for _, b in corner))

    def extend(self, axis: int, size: int) -> Grid:
        """Return the grid after an append of `size` along `axis`.

        Examples
        --------
        >>> Grid((8,), (4,)).extend(0, 1).segments, Grid((9,), (4,)).extend(0, 1).segments
        (((0,),), ((0, 9),))
        """
        if size < 0 or not 0 <= axis < len(self.shape):
            raise InvalidKeyError(f"cannot append {size} along axis {axis} of shape {self.shape}")
        end = self.shape[axis]
        starts = self.segments[axis]
        if size and (end - starts[-1]) % self.chunk[axis]:
            starts = (*starts, end)
        shape = (*self.shape[:axis], end + size, *self.shape[axis + 1 :])
        segments = (*self.segments[:axis], starts, *self.segments[axis + 1 :])
        return Grid(shape, self.chunk, segments)
