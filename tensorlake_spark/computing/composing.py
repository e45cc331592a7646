"""A key of what another key picked, as one selection of the tensor: NumPy's ``x[a][b]`` without ``x[a]``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import Points, PointSelection, Run, Selection, select
from tensorlake_spark.layouts import AnySelection

Array = np.ndarray[Any, Any]

MOST_POINTS = 1 << 24
"""Elements that a selection may have where it is kept as single elements, with a coordinate for every axis."""


def compose(outer: AnySelection, key: Any) -> AnySelection:
    """Return the selection of a tensor that is what a key picks of a selection.

    Keys of integers, slices, Ellipsis and newaxis compose as they are, and so does an index array of rank 1 on either
    side. What else there is becomes a selection of single elements.

    Raises
    ------
    InvalidKeyError
        If the key does not fit what `outer` picks, or single elements are more than `MOST_POINTS`.

    Examples
    --------
    >>> outer = select((slice(2, 9, 2), 1), (9, 4))
    >>> compose(outer, slice(None, None, -1)).axes
    (Run(start=2, stop=9, step=2), Run(start=1, stop=2, step=1))
    """
    inner = select(key, outer.result_shape)
    if (
        isinstance(outer, Selection)
        and isinstance(inner, Selection)
        and _is_plain(outer)
        and _is_plain(inner)
    ):
        found = _composed(outer, inner)
        if found is not None:
            return found
    return _points(outer, inner)


def axes_of(selection: Selection) -> list[int | None]:
    """Return for each axis of the answer the tensor's axis that it is; None for a new one.

    Examples
    --------
    >>> axes_of(select((3, None, slice(2), slice(5)), (9, 4, 7)))
    [None, 1, 2]
    """
    out: list[int | None] = [k for k in range(len(selection.axes)) if k not in selection.drops]
    if selection.moved is not None:
        source, target = selection.moved
        out.insert(target, out.pop(source))
    for position in selection.newaxes:
        out.insert(position, None)
    return out


def _is_plain(selection: Any) -> bool:
    """Whether every axis of the answer is one of the tensor, or new."""
    return type(selection) is Selection and selection.points_shape is None


def _composed(outer: Selection, inner: Selection) -> Selection | None:
    """Return the composition, None where a selection of the tensor's axes in their order cannot say it."""
    axes, flips, drops = list(outer.axes), set(outer.flips), set(outer.drops)
    order: list[int | None] = []
    for place, axis in enumerate(axes_of(outer)):
        pick = inner.axes[place]
        if place not in inner.drops:
            order.append(axis)
        if axis is None:
            if pick.count != 1:
                return None
            continue
        axes[axis], turned = _picked(axes[axis], axis in flips, pick, place in inner.flips)
        flips = (flips | {axis}) if turned else (flips - {axis})
        if place in inner.drops:
            drops.add(axis)
    if inner.moved is not None:
        source, target = inner.moved
        order.insert(target, order.pop(source))
    for position in inner.newaxes:
        order.insert(position, None)
    kept = [axis for axis in order if axis is not None]
    ordered = sorted(kept)
    moved = None
    if kept != ordered:
        moved = _one_move(ordered, kept)
        if moved is None:
            return None
    newaxes = tuple(place for place, axis in enumerate(order) if axis is None)
    is_scalar = not order and inner.is_scalar
    return Selection(
        outer.shape, tuple(axes), tuple(sorted(flips)), tuple(sorted(drops)), newaxes, moved,
        is_scalar=is_scalar,
    )  # fmt: skip


def _picked(
    outer: Run | Points, flipped: bool, inner: Run | Points, turned: bool
) -> tuple[Run | Points, bool]:
    """Return what is picked of an axis by a pick of a pick, and whether it is walked backwards."""
    if isinstance(outer, Run) and isinstance(inner, Run):
        start, step = inner.start, inner.step
        if not inner.count:
            return Run(0, 0), False
        if flipped:
            start = outer.count - 1 - (inner.start + (inner.count - 1) * inner.step)
        first, stride = outer.start + start * outer.step, outer.step * step
        return Run(first, first + (inner.count - 1) * stride + 1, stride), flipped != turned
    # What is picked of a run is computed: the axis may be longer than the memory.
    places = _indices(inner)
    places = outer.count - 1 - places if flipped else places
    found = (
        outer.indices[places] if isinstance(outer, Points) else outer.start + places * outer.step
    )
    return Points(np.ascontiguousarray(found[::-1] if turned else found)), False


def _indices(axis: Run | Points) -> Array:
    if isinstance(axis, Points):
        return axis.indices
    return np.arange(axis.start, axis.stop, axis.step)


def _one_move(ordered: list[int], kept: list[int]) -> tuple[int, int] | None:
    """Return the move of one axis that makes `kept` of `ordered`, None if it takes more than one."""
    for source in range(len(ordered)):
        rest = [*ordered[:source], *ordered[source + 1 :]]
        target = kept.index(ordered[source])
        if [*rest[:target], ordered[source], *rest[target:]] == kept:
            return source, target
    return None


def _points(outer: AnySelection, inner: AnySelection) -> PointSelection:
    """Return the composition as single elements, in the order of the answer."""
    size = math.prod(inner.result_shape)
    if size > MOST_POINTS:
        raise InvalidKeyError(
            f"this key of a view that has index arrays picks {size} elements of shape {inner.result_shape}; at most "
            f"{MOST_POINTS} can be picked so: read the view, or give one key to ref.view[...]"
        )
    coords = _within(
        inner, np.indices(inner.result_shape, np.int64).reshape(len(inner.result_shape), size)
    )
    return PointSelection(outer.shape, _within(outer, coords), inner.result_shape)


def _within(selection: Any, coords: Array) -> Array:
    """Return where elements of an answer lie in the tensor, one for one."""
    if hasattr(selection, "rest"):  # points of some axes with every index of the others
        first, count = selection.target, len(selection.points.result_shape)
        out = np.empty((len(selection.shape), coords.shape[1]), np.int64)
        out[list(selection.axes)] = _within(selection.points, coords[first : first + count])
        rest = np.delete(coords, slice(first, first + count), axis=0)
        out[list(selection.others)] = _within(selection.rest, rest)
        return out
    if isinstance(selection, PointSelection):
        shape = selection.result_shape
        places = np.ravel_multi_index(tuple(coords), shape) if shape else np.zeros(1, np.int64)
        return np.asarray(selection.coords[:, places])
    rows = [row for k, row in enumerate(coords) if k not in selection.newaxes]
    if selection.moved is not None:
        source, target = selection.moved
        points = selection.points_shape
        span = slice(target, target + (1 if points is None else len(points)))
        some = rows[span]
        rows[span] = []
        flat = some[0] if points is None else np.ravel_multi_index(tuple(some), points)
        rows.insert(source, np.asarray(flat))
    waiting = iter(rows)
    out = np.zeros((len(selection.axes), coords.shape[1]), np.int64)
    for k, axis in enumerate(selection.axes):
        if k in selection.drops:
            out[k] = axis.bounds[0]
            continue
        row = next(waiting)
        row = axis.count - 1 - row if k in selection.flips else row
        out[k] = axis.indices[row] if isinstance(axis, Points) else axis.start + row * axis.step
    return out
