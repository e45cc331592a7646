"""Points on some axes, crossed with runs on the others: index arrays beside slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.box import Box
from tensorlake_spark.indexing.point_selection import PointSelection
from tensorlake_spark.indexing.selection import Selection

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class MixedSelection:
    """What NumPy's advanced indexing picks: every point of some axes with every index of the other axes.

    It is the product of the two other selections and has their members. Storage returns the points along
    one axis, where NumPy has it for a block: in the place of the first of `axes`, or first where slices
    lie between them.

    Attributes
    ----------
    shape : tuple of int
        The tensor's.
    axes : tuple of int
        Those of the points, ascending.
    points : PointSelection
        What is picked on `axes`; its result shape is that of the index arrays together.
    rest : Selection
        What is picked on the others: runs alone, no axis of which is dropped.
    target : int
        Where in the result of `rest` the axes of the points go.

    Raises
    ------
    InvalidKeyError
        If `points` and `rest` do not make up `shape`.

    Examples
    --------
    >>> from tensorlake_spark.indexing import select
    >>> two = select(([0, 2], slice(None), [1, 3]), (3, 9, 4))
    >>> two.storage_shape, two.hits(np.array([[0, 0, 0], [0, 0, 2]]), np.array([[1, 9, 2], [1, 9, 4]])).tolist()
    ((2, 9), [True, False])
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    points: PointSelection
    rest: Selection
    target: int

    def __post_init__(self) -> None:
        parts = [self.points.shape, self.rest.shape]
        wanted = [tuple(self.shape[k] for k in some) for some in (self.axes, self.others)]
        if parts != wanted or self.rest.drops:
            raise InvalidKeyError(
                f"points on axes {self.axes} of shape {parts[0]} and runs of shape {parts[1]} for a tensor "
                f"of shape {self.shape}"
            )

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The axes of `rest`."""
        return tuple(k for k in range(len(self.shape)) if k not in self.axes)

    @cached_property
    def place(self) -> int:
        """The axis of the points in `storage_shape`."""
        first, last = (self.axes[0], self.axes[-1]) if self.axes else (0, -1)
        return first if last - first + 1 == len(self.axes) else 0

    @cached_property
    def storage_shape(self) -> tuple[int, ...]:
        """Number of points, in its place among the picked indices of the other axes."""
        return _inserted(self.rest.storage_shape, self.place, (self.points.size,))

    @cached_property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of NumPy's answer."""
        return _inserted(self.rest.result_shape, self.target, self.points.result_shape)

    @property
    def size(self) -> int:
        """Number of picked elements."""
        return self.points.size * self.rest.size

    @property
    def is_empty(self) -> bool:
        """Whether nothing is picked."""
        return self.size == 0

    @property
    def is_scalar(self) -> bool:
        """Whether the answer is a scalar: never, for a slice is left."""
        return False

    @property
    def is_box(self) -> bool:
        """Points are never taken for a box."""
        return False

    @cached_property
    def box(self) -> Box:
        """The smallest box that holds everything picked."""
        sides = [(0, 0)] * len(self.shape)
        if not self.is_empty:
            for axes, box in ((self.axes, self.points.box), (self.others, self.rest.box)):
                for k, lo, hi in zip(axes, box.lo, box.hi, strict=True):
                    sides[k] = lo, hi
        return Box(tuple(lo for lo, _ in sides), tuple(hi for _, hi in sides))

    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """Return ``(axis, lo, hi)`` of `box` for every axis that it does not cover whole."""
        return self.box.ranges(self.shape)

    def hits(self, lo: Array, hi: Array) -> Array:
        """Return for each box whether it holds a picked element; exact, no loop over boxes.

        Parameters
        ----------
        lo, hi : int64 ndarray, shape (n, ndim)
            Corners of the boxes.

        Returns
        -------
        bool ndarray, shape (n,)
        """
        axes, others = list(self.axes), list(self.others)
        out = self.rest.hits(lo[:, others], hi[:, others])
        out[out] = self.points.hits(lo[out][:, axes], hi[out][:, axes])
        return out

    def project(
        self, lo: Sequence[int], hi: Sequence[int]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return ``src, dst`` such that ``out[dst] = block[src]`` puts one box in its place.

        Examples
        --------
        >>> from tensorlake_spark.indexing import select
        >>> src, dst = select(([8, 1], [0, 0], slice(2)), (9, 3, 5)).project((6, 0, 0), (9, 3, 5))
        >>> src[0].tolist(), src[2], dst[0].tolist(), dst[1]
        ([2], slice(0, 2, 1), [0], slice(0, 2, None))
        """
        index, number = self.points.project([lo[k] for k in self.axes], [hi[k] for k in self.axes])
        there, here = self.rest.project([lo[k] for k in self.others], [hi[k] for k in self.others])
        src = dict(zip((*self.axes, *self.others), (*index, *there), strict=True))
        return tuple(src[k] for k in sorted(src)), _inserted(here, self.place, number)

    def finish(self, out: Array) -> Array:
        """Return NumPy's answer from what storage returned (`storage_shape`), as a view."""
        out = np.moveaxis(self.rest.finish(np.moveaxis(out, self.place, -1)), -1, self.target)
        return out.reshape(self.result_shape)

    def staged(self, answer: Array) -> Array | None:
        """Return the view of NumPy's answer that has `storage_shape`, None where no view can be."""
        if len(self.points.result_shape) != 1:
            return None
        out = self.rest.staged(np.moveaxis(answer, self.target, -1))
        return None if out is None else np.moveaxis(out, -1, self.place)


AnySelection: TypeAlias = Selection | PointSelection | MixedSelection
"""The normal form of any key."""


def _inserted(items: tuple[Any, ...], place: int, new: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*items[:place], *new, *items[place:])
