"""The normal form of a key: what is picked on every axis, and how the answer is shaped from it.

Storage returns a tensor of `Selection.storage_shape`: every axis kept, every progression ascending.
`Selection.finish` turns that into NumPy's answer. Nothing here knows negative numbers or Ellipsis;
`tensorlake_spark.indexing.keys.key` is the one place that does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.box import Box

Array = np.ndarray[Any, Any]

_WHOLE = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Run:
    """An ascending arithmetic progression of indices: ``range(start, stop, step)``.

    No index is ``Run(0, 0, 1)``, and one index has step 1, so that a step is never longer than its axis:
    ``x[::2**70]`` is a key that NumPy takes, and a step that int64 does not hold.

    Raises
    ------
    InvalidKeyError
        If it starts below 0, or its step is below 1.

    Examples
    --------
    >>> Run(1, 8, 3).count, Run(5, 9, 100)
    (3, Run(start=5, stop=6, step=1))
    """

    start: int
    stop: int
    step: int = 1
    count: int = field(init=False, repr=False, compare=False)
    """Number of indices."""
    bounds: tuple[int, int] = field(init=False, repr=False, compare=False)
    """Half-open range from the first to the last index."""

    def __post_init__(self) -> None:
        start, stop, step = self.start, self.stop, self.step
        if stop <= start:
            start, stop, step = 0, 0, 1
        elif start < 0 or step < 1:
            raise InvalidKeyError(
                f"{start}:{stop}:{step} is not a run of ascending indices from 0 on"
            )
        elif stop - start <= step:
            stop, step = start + 1, 1
        count = len(range(start, stop, step))  # kept, for a read asks tens of times
        bounds = (start, start + (count - 1) * step + 1) if count else (0, 0)
        found = {"start": start, "stop": stop, "step": step, "count": count, "bounds": bounds}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def hits(self, lo: Array, hi: Array) -> Array:
        """Return for each range ``[lo, hi)`` whether it holds an index."""
        first, stop = self.bounds
        a, b = np.maximum(lo, first), np.minimum(hi, stop)
        if self.step > 1:
            a = first + -(-(a - first) // self.step) * self.step
        return np.asarray(a < b)

    def within(self, lo: int, hi: int) -> tuple[slice, slice]:
        """Return the picked part of ``[lo, hi)``: where it is there, and where it goes."""
        first, stop = self.bounds
        if self.step == 1:  # most keys, and a read asks for each axis of each row
            begin = max(lo, first)
            end = max(begin, min(hi, stop))
            return slice(begin - lo, end - lo, 1), slice(begin - first, end - first)
        begin = max(0, -(-(lo - first) // self.step))
        end = max(begin, min(self.count, -(-(min(hi, stop) - first) // self.step)))
        at = first + begin * self.step - lo
        return slice(
            at, at + (end - begin - 1) * self.step + 1 if end > begin else at, self.step
        ), slice(begin, end)


@dataclass(frozen=True, eq=False)
class Points:
    """Indices in the caller's order, with repetitions.

    Attributes
    ----------
    indices : int64 ndarray, shape (count,)
        Non-negative.

    Raises
    ------
    InvalidKeyError
        If the indices are of another rank or dtype, or one of them is negative.

    Examples
    --------
    >>> Points(np.array([7, 2, 7])).bounds
    (2, 8)
    """

    indices: Array

    def __post_init__(self) -> None:
        indices = self.indices
        if indices.ndim != 1 or indices.dtype != np.int64 or indices.min(initial=0) < 0:
            raise InvalidKeyError(
                f"points are int64 indices of rank 1, from 0 on; these are {indices.dtype} of rank "
                f"{indices.ndim}, the least is {indices.min(initial=0)}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return Points, (self.indices,)  # what is cached would triple what executors are sent

    @property
    def count(self) -> int:
        """Number of indices."""
        return len(self.indices)

    @property
    def bounds(self) -> tuple[int, int]:
        """Half-open range from the least to the greatest index."""
        if not self.count:
            return 0, 0
        return int(self.indices.min()), int(self.indices.max()) + 1

    @cached_property
    def _ascending(self) -> tuple[Array, Array]:
        """The indices in ascending order, and their places; a read asks for one part per row."""
        # Stable: of an index that is given twice, the later one still comes last, and so is what an
        # assignment leaves there.
        order = np.argsort(self.indices, kind="stable")
        return self.indices[order], order

    def hits(self, lo: Array, hi: Array) -> Array:
        """Return for each range ``[lo, hi)`` whether it holds an index."""
        ascending, _ = self._ascending
        return np.asarray(np.searchsorted(ascending, hi) > np.searchsorted(ascending, lo))

    def within(self, lo: int, hi: int) -> tuple[Array, Array]:
        """Return the picked part of ``[lo, hi)``: where it is there, and where it goes."""
        ascending, order = self._ascending
        first, stop = np.searchsorted(ascending, (lo, hi))
        return ascending[first:stop] - lo, order[first:stop]


@dataclass(frozen=True)
class Selection:
    """A key in normal form: one pick for every axis.

    Attributes
    ----------
    shape : tuple of int
        The tensor's.
    axes : tuple of Run or Points
        What is picked on every axis.
    flips : tuple of int
        Axes that the key walks backwards.
    drops : tuple of int
        Axes that the key names by an integer.
    newaxes : tuple of int
        Positions of new axes in the result.
    moved : tuple of int, or None
        Where the axes of an index array come from and go to, ``(from, to)``, counted in the result
        before `newaxes`; NumPy puts them first when integers stand apart from the array.
    points_shape : tuple of int, or None
        Shape of the index array where it is not of rank 1.
    is_scalar : bool
        Whether NumPy answers with a scalar: integers for all axes, and no Ellipsis.

    Raises
    ------
    InvalidKeyError
        If `axes` are not one pick for every axis, within its length.
    """

    shape: tuple[int, ...]
    axes: tuple[Run | Points, ...]
    flips: tuple[int, ...] = ()
    drops: tuple[int, ...] = ()
    newaxes: tuple[int, ...] = ()
    moved: tuple[int, int] | None = None
    points_shape: tuple[int, ...] | None = None
    is_scalar: bool = False

    def __post_init__(self) -> None:
        if len(self.axes) != len(self.shape):
            raise InvalidKeyError(f"{len(self.axes)} picks for a tensor of shape {self.shape}")
        for k, (axis, size) in enumerate(zip(self.axes, self.shape, strict=True)):
            last = axis.bounds[1] - 1
            if last >= size:
                raise InvalidKeyError(
                    f"index {last} is out of bounds for axis {k} with size {size}"
                )

    @cached_property
    def storage_shape(self) -> tuple[int, ...]:
        """Picked indices of every axis: the shape that rows are decoded into."""
        return tuple(axis.count for axis in self.axes)

    @cached_property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of NumPy's answer."""
        # Counted, not tried out: an array of a sparse tensor's shape may be more than NumPy can make.
        shape = [n for k, n in enumerate(self.storage_shape) if k not in self.drops]
        if self.moved is not None:
            source, target = self.moved
            count = shape.pop(source)
            shape[target:target] = (count,) if self.points_shape is None else self.points_shape
        for position in self.newaxes:
            shape.insert(position, 1)
        return tuple(shape)

    @cached_property
    def size(self) -> int:
        """Number of picked elements."""
        return math.prod(self.storage_shape)

    @cached_property
    def _is_paired(self) -> bool:
        """Whether there are so many index arrays that NumPy would pair them."""
        return sum(isinstance(axis, Points) for axis in self.axes) > 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing is picked."""
        return self.size == 0

    @property
    def is_box(self) -> bool:
        """Whether the picked elements form a box without gaps."""
        return all(isinstance(a, Run) and a.step == 1 for a in self.axes)

    @cached_property
    def box(self) -> Box:
        """The smallest box that holds everything picked."""
        if self.is_empty:
            return Box((0,) * len(self.shape), (0,) * len(self.shape))
        bounds = [axis.bounds for axis in self.axes]
        return Box(tuple(a for a, _ in bounds), tuple(b for _, b in bounds))

    @cached_property
    def _limits(self) -> tuple[Array, Array] | None:
        """The corners of a box that is picked, as far as int64 goes on an axis that is picked whole; else None."""
        if self.is_empty or not self.is_box:
            return None
        sides = zip(self.axes, self.shape, strict=True)
        ends = [_WHOLE if axis.count == size else axis.bounds for axis, size in sides]
        first, stop = np.array(ends, np.int64).reshape(-1, 2).T
        return first, stop

    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """Return ``(axis, lo, hi)`` of `box` for every axis that it does not cover whole.

        Examples
        --------
        >>> Selection((9, 4), (Run(1, 8, 3), Run(0, 4))).ranges()
        ((0, 1, 8),)
        """
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

        Examples
        --------
        >>> every_third = Selection((9,), (Run(0, 9, 3),))
        >>> every_third.hits(np.array([[1], [2]]), np.array([[3], [4]])).tolist()
        [False, True]
        """
        if self._limits is not None:
            first, stop = self._limits
            return np.asarray((np.maximum(lo, first) < np.minimum(hi, stop)).all(axis=1))
        out: Array = np.asarray(np.all(hi > lo, axis=1))
        for k, axis in enumerate(self.axes):
            if axis.count < self.shape[k] or isinstance(axis, Points):
                out &= axis.hits(lo[:, k], hi[:, k])
        return out & (not self.is_empty)

    def project(
        self, lo: Sequence[int], hi: Sequence[int]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return ``src, dst`` such that ``out[dst] = block[src]`` puts one box in its place.

        Slices where every axis is a `Run`, so that both sides are views. A single index array stands
        among slices, which NumPy copies many elements at a time; two or more become index arrays for
        all axes, because NumPy would pair them.

        Examples
        --------
        >>> Selection((9, 4), (Run(1, 8, 3), Run(0, 4))).project((3, 0), (6, 2))
        ((slice(1, 2, 3), slice(0, 2, 1)), (slice(1, 2, None), slice(0, 2, None)))
        """
        src, dst = [], []
        for axis, a, b in zip(self.axes, lo, hi, strict=True):
            there, here = axis.within(int(a), int(b))
            src.append(there)
            dst.append(here)
        if not self._is_paired:
            return tuple(src), tuple(dst)
        return np.ix_(*map(_explicit, src)), np.ix_(*map(_explicit, dst))

    def finish(self, out: Array) -> Any:
        """Return NumPy's answer from what storage returned (`storage_shape`), a view of it or a scalar.

        Examples
        --------
        >>> Selection((4, 3), (Run(0, 4, 2), Run(1, 2)), flips=(0,), drops=(1,)).finish(
        ...     np.array([[1], [7]])
        ... ).tolist()
        [7, 1]
        """
        if self.flips:
            out = out[
                tuple(
                    slice(None, None, -1) if k in self.flips else slice(None)
                    for k in range(out.ndim)
                )
            ]
        if self.is_scalar:
            return out[(0,) * out.ndim]
        kept = (*(0 if k in self.drops else slice(None) for k in range(out.ndim)), ...)
        out = out[kept]
        if self.moved is not None:
            source, target = self.moved
            out = np.moveaxis(out, source, target)
            if self.points_shape is not None:
                out = out.reshape(out.shape[:target] + self.points_shape + out.shape[target + 1 :])
        for position in self.newaxes:
            out = np.expand_dims(out, position)
        return out

    def staged(self, answer: Array) -> Array | None:
        """Return the view of NumPy's answer that has `storage_shape`: the way back of `finish`.

        What is decoded into it is in its place in the answer. None where no view can be: for an index
        array of another rank than 1.

        Examples
        --------
        >>> answer = np.zeros(2, int)
        >>> backwards = Selection((4, 3), (Run(0, 4, 2), Run(1, 2)), flips=(0,), drops=(1,))
        >>> backwards.staged(answer)[...] = [[1], [7]]
        >>> answer.tolist()
        [7, 1]
        """
        if self.points_shape is not None:
            return None
        kept = (*(0 if k in self.newaxes else slice(None) for k in range(answer.ndim)), ...)
        out = answer[kept]
        if self.moved is not None:
            source, target = self.moved
            out = np.moveaxis(out, target, source)
        for axis in self.drops:
            out = np.expand_dims(out, axis)
        return np.flip(out, self.flips) if self.flips else out


def box_selection(shape: Sequence[int], box: Box) -> Selection:
    """Return the selection of all elements of a box.

    Examples
    --------
    >>> box_selection((9, 4), Box((3, 0), (5, 4))).axes
    (Run(start=3, stop=5, step=1), Run(start=0, stop=4, step=1))
    """
    return Selection(tuple(shape), tuple(Run(a, b) for a, b in zip(box.lo, box.hi, strict=True)))


def _explicit(index: slice | Array) -> Array:
    if isinstance(index, slice):
        return np.arange(index.start, index.stop, index.step or 1)
    return index
