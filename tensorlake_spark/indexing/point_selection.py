"""Single elements as a selection: what ``vindex`` picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.box import Box

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 20  # pairs of a box and a point that are held against each other at a time


@dataclass(frozen=True, eq=False)
class PointSelection:
    """Single elements, each named by one index for every axis (Zarr's ``vindex``).

    It has the members of `tensorlake_spark.indexing.selection.Selection`. Rows are many and points are
    many, so a row is held only against the points of its range on one axis, the axis with the fewest.

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
    def _ascending(self) -> tuple[tuple[Array, Array], ...]:
        """For every axis its coordinates in ascending order, and the points that they belong to."""
        # Stable: of a point that is given twice, the later one still comes last, and so is what an
        # assignment leaves there.
        orders = [np.argsort(axis, kind="stable") for axis in self.coords]
        return tuple((axis[o], o) for axis, o in zip(self.coords, orders, strict=True))

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
        if not self.shape or not len(lo):
            return np.full(len(lo), not self.is_empty)
        sides = [axis for axis, _ in self._ascending]
        first = np.stack([np.searchsorted(a, lo[:, k]) for k, a in enumerate(sides)])
        stop = np.stack([np.searchsorted(a, hi[:, k]) for k, a in enumerate(sides)])
        nearest = (stop - first).argmin(axis=0)
        out = np.zeros(len(lo), bool)
        for k, (_, order) in enumerate(self._ascending):
            rows = np.flatnonzero((nearest == k) & (stop[k] > first[k]))
            ends = np.cumsum(stop[k, rows] - first[k, rows])
            for begin in range(0, int(ends[-1]) if len(rows) else 0, _BLOCK):
                pairs = np.arange(begin, min(begin + _BLOCK, int(ends[-1])))
                place = np.searchsorted(ends, pairs, side="right")
                row = rows[place]
                point = self.coords[:, order[stop[k, row] - (ends[place] - pairs)]]
                inside = (point >= lo[row].T) & (point < hi[row].T)
                out[row[inside.all(axis=0)]] = True
        return out

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
        near: Array = np.arange(self.size)
        for (axis, order), a, b in zip(self._ascending, lo, hi, strict=True):
            first, stop = np.searchsorted(axis, (a, b))
            if stop - first < len(near):
                near = order[first:stop]
        begin, end = np.asarray(lo)[:, None], np.asarray(hi)[:, None]
        points = self.coords[:, near]
        inside = ((points >= begin) & (points < end)).all(axis=0)
        return tuple(points[:, inside] - begin), (near[inside],)

    def finish(self, out: Array) -> Any:
        """Return the answer in its shape: a view of `out`, or a scalar."""
        out = out.reshape(self.result_shape)
        return out[()] if self.is_scalar else out

    def staged(self, answer: Array) -> Array | None:
        """Return the view of the answer that has `storage_shape`, None where no view can be."""
        return answer if answer.ndim == 1 else None
