"""Single elements as a selection: what ``vindex`` picks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.box import Box
from tensorlake_spark.indexing.coords import ravel, sort_places

Array = np.ndarray[Any, Any]

_CELLS = 1 << 16  # a table of so many is always made
_SEARCH = 8  # points are looked at in the time of one search


@dataclass(frozen=True, eq=False)
class PointSelection:
    """Single elements, each named by one index for every axis (Zarr's ``vindex``).

    It has the members of `tensorlake_spark.indexing.selection.Selection`. Rows are many and points are
    many, so points are sorted once, by their place in C order, and no row is held against all of them.

    Attributes
    ----------
    shape : tuple of int
        The tensor's.
    coords : int64 ndarray, shape (ndim, n)
        Non-negative.
    result_shape : tuple of int
        Shape of the answer, of `n` elements.

    Raises
    ------
    InvalidKeyError
        If `coords` has not one row for every axis, or a point lies outside of the tensor.

    Examples
    --------
    >>> two = PointSelection((9, 3), np.array([[0, 8], [1, 2]]), (2,))
    >>> two.box, two.hits(np.array([[0, 0], [1, 0]]), np.array([[1, 3], [8, 3]])).tolist()
    (Box(lo=(0, 1), hi=(9, 3)), [True, False])
    """

    shape: tuple[int, ...]
    coords: Array
    result_shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.coords.ndim != 2 or len(self.coords) != len(self.shape):
            raise InvalidKeyError(
                f"coordinates of shape {self.coords.shape} for a tensor of shape {self.shape}"
            )
        for k, (axis, size) in enumerate(zip(self.coords, self.shape, strict=True)):
            first, last = axis.min(initial=0), axis.max(initial=-1)
            if first < 0 or last >= size:
                index = first if first < 0 else last
                raise InvalidKeyError(
                    f"index {index} is out of bounds for axis {k} with size {size}"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return PointSelection, (self.shape, self.coords, self.result_shape)  # not what is cached

    @property
    def storage_shape(self) -> tuple[int, ...]:
        """``(n,)``."""
        return (self.coords.shape[1],)

    @property
    def size(self) -> int:
        """Number of picked elements."""
        return int(self.coords.shape[1])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is picked."""
        return self.size == 0

    @property
    def is_scalar(self) -> bool:
        """Whether the answer is a scalar."""
        return self.result_shape == ()

    @property
    def is_box(self) -> bool:
        """Points are never taken for a box."""
        return False

    @cached_property
    def box(self) -> Box:
        """The smallest box that holds all points."""
        if self.is_empty:
            return Box((0,) * len(self.shape), (0,) * len(self.shape))
        return Box(
            tuple(self.coords.min(axis=1).tolist()), tuple((self.coords.max(axis=1) + 1).tolist())
        )

    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """Return ``(axis, lo, hi)`` of `box` for every axis that it does not cover whole."""
        return self.box.ranges(self.shape)

    @cached_property
    def _in_order(self) -> tuple[Array, Array]:
        """The points' places in C order, ascending, and which points they are of."""
        # Stable: of a point that is given twice, the later one still comes last, and so is what an
        # assignment leaves there.
        return sort_places(ravel(self.coords, self.shape))

    def hits(self, lo: Array, hi: Array) -> Array:
        """Return for each box whether it holds a point; exact, no loop over boxes.

        Parameters
        ----------
        lo, hi : int64 ndarray, shape (n, ndim)
            Corners of the boxes.

        Returns
        -------
        bool ndarray, shape (n,)
        """
        if not self.shape or self.is_empty:
            return np.full(len(lo), not self.is_empty)
        lo, hi = np.maximum(lo, self.box.lo), np.minimum(hi, self.box.hi)
        out = np.asarray((lo < hi).all(axis=1))
        if out.any():
            out[out] = self._hits(lo[out], hi[out])
        return out

    def _hits(self, lo: Array, hi: Array) -> Array:
        """As `hits`, by a table of sums over the cells that the corners of the boxes make up.

        Boxes mostly lie on a grid, so these cells are about as many as they. Where they do not, the boxes
        are parted until that is so.
        """
        numbers = self._inside(lo.min(axis=0).tolist(), hi.max(axis=0).tolist())
        inner = [k for k in range(len(self.shape)) if np.ptp(lo[:, k]) or np.ptp(hi[:, k])]
        if not len(numbers) or not inner:
            return np.full(len(lo), len(numbers) > 0)
        edges = [np.unique(np.concatenate((lo[:, k], hi[:, k]))) for k in inner]
        sides = [len(edge) for edge in edges]
        if math.prod(sides) > max(_CELLS, 4 * (len(lo) + len(numbers))):
            by = np.argsort(lo[:, inner[int(np.argmax(sides))]], kind="stable")
            out = np.empty(len(lo), bool)
            for half in np.array_split(by, 2):
                out[half] = self._hits(lo[half], hi[half])
            return out
        # What lies in the hull lies between the first and the last edge of every axis.
        cells = [
            np.searchsorted(edge, self.coords[k, numbers], side="right")
            for k, edge in zip(inner, edges, strict=True)
        ]
        count = np.bincount(ravel(np.array(cells), sides), minlength=math.prod(sides))
        below = count.reshape(sides)  # at edge i, after the sums: the points that lie before it
        for axis in range(len(sides)):
            np.cumsum(below, axis=axis, out=below)
        ends = [
            (np.searchsorted(edge, lo[:, k]), np.searchsorted(edge, hi[:, k]))
            for k, edge in zip(inner, edges, strict=True)
        ]
        found = np.zeros(len(lo), np.int64)
        for corner in itertools.product((0, 1), repeat=len(inner)):
            index = tuple(pair[end] for pair, end in zip(ends, corner, strict=True))
            found += (-1) ** (len(inner) - sum(corner)) * below[index]
        return found > 0

    def _inside(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the numbers of the points in a box, in C order, those of one place as they were given.

        Points in C order lie side by side for each index of the leading axes. Axes lead as long as there are
        many points for each such index; on the others every point that is left is looked at.
        """
        places, numbers = self._in_order
        heads, inner = np.zeros(1, np.int64), math.prod(self.shape)
        box = Box(tuple(lo), tuple(hi)).intersect(self.box)
        sides = zip(box.lo, box.hi, self.box.lo, self.box.hi, strict=True)
        whole = [(a, b) == (first, stop) for a, b, first, stop in sides]
        for k, (a, b, n) in enumerate(zip(box.lo, box.hi, self.shape, strict=True)):
            inner //= n
            first = np.searchsorted(places, (heads * n + a) * inner)
            stop = np.searchsorted(places, (heads * n + b) * inner)
            some = stop > first
            heads, first, stop = heads[some], first[some], stop[some]
            counts = stop - first
            if all(whole[k + 1 :]) or len(heads) * (b - a) * _SEARCH > counts.sum():
                break
            heads = (heads[:, None] * n + np.arange(a, b)).reshape(-1)
        starts = first - (np.cumsum(counts) - counts)
        found = numbers[np.arange(counts.sum()) + np.repeat(starts, counts)]
        for j in range(k + 1, len(whole)):
            if not whole[j]:
                axis = self.coords[j, found]
                found = found[(axis >= box.lo[j]) & (axis < box.hi[j])]
        return np.asarray(found)

    def project(
        self, lo: Sequence[int], hi: Sequence[int]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return ``src, dst`` such that ``out[dst] = block[src]`` puts the points of one box in place.

        Examples
        --------
        >>> src, dst = PointSelection((9,), np.array([[8, 1, 7]]), (3,)).project((6,), (9,))
        >>> src[0].tolist(), dst[0].tolist()
        ([1, 2], [2, 0])
        """
        if not self.shape or self.is_empty:
            return (np.zeros(self.size, np.int64),) * len(self.shape), (np.arange(self.size),)
        near = self._inside(lo, hi)
        return tuple(self.coords[:, near] - np.asarray(lo)[:, None]), (near,)

    def finish(self, out: Array) -> Any:
        """Return the answer in its shape: a view of `out`, or a scalar."""
        out = out.reshape(self.result_shape)
        return out[()] if self.is_scalar else out

    def staged(self, answer: Array) -> Array | None:
        """Return the view of the answer that has `storage_shape`, None where no view can be."""
        return answer if answer.ndim == 1 else None
