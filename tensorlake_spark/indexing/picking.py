"""Coordinates of stored elements: which of them a selection picks, where in the answer they go, their order.

`locate` and `place` are the sparse counterparts of `Selection.project` and `Selection.finish`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.indexing.coords import ravel, unravel
from tensorlake_spark.indexing.mixed_selection import AnySelection, MixedSelection
from tensorlake_spark.indexing.point_selection import PointSelection
from tensorlake_spark.indexing.selection import Points, Run, Selection

Array = np.ndarray[Any, Any]


def locate(
    selection: AnySelection, coords: Array, places: Array | None = None
) -> tuple[Array, Array]:
    """Return which of the stored elements are picked, and where storage puts them.

    Axes that pick the smallest share go first, and each looks only at what those before it left over;
    an axis that is picked whole is not looked at.

    Parameters
    ----------
    selection : Selection, PointSelection or MixedSelection
        What is picked.
    coords : int64 ndarray, shape (ndim, n)
        Coordinates of the stored elements, within the tensor's shape, in any order. Fastest where the
        coordinates of one axis lie side by side (C order).
    places : int64 ndarray, shape (n,), optional
        Their places in C order, ascending and each once: points are searched among them.

    Returns
    -------
    take : int64 ndarray, shape (m,)
        The picked ones of the `n` elements, ascending; repeated where an index array repeats an index.
    out : int64 ndarray, shape (len(selection.storage_shape), m)
        Their coordinates in ``selection.storage_shape``. It is `coords` itself where everything is picked.

    Examples
    --------
    >>> every_third = Selection((9, 4), (Run(1, 8, 3), Run(0, 4)))
    >>> take, out = locate(every_third, np.array([[1, 2, 4, 8], [3, 0, 2, 1]]))
    >>> take.tolist(), out.tolist()
    ([0, 2], [[0, 1], [3, 2]])
    """
    if selection.is_empty or not coords.shape[1]:
        return np.zeros(0, np.int64), np.zeros((len(selection.storage_shape), 0), np.int64)
    if isinstance(selection, MixedSelection):
        return _locate_mixed(selection, coords)
    if isinstance(selection, PointSelection):
        if places is not None:
            return _search_points(selection, places)
        return _locate_points(selection, coords)
    take = None
    for k in _narrowing(selection):
        take = _narrow(selection.axes[k], coords[k], take)
    if take is None and not any(isinstance(axis, Points) for axis in selection.axes):
        return np.arange(coords.shape[1]), coords
    take = np.arange(coords.shape[1]) if take is None else take
    joined: dict[int, Array] = {}
    for k, axis in enumerate(selection.axes):
        if isinstance(axis, Points):
            again, joined[k] = _join(*axis._ascending, coords[k][take])
            take = take[again]
            joined.update({j: joined[j][again] for j in joined if j < k})
    out = np.empty((len(selection.axes), len(take)), np.int64)
    for k, axis in enumerate(selection.axes):
        if isinstance(axis, Points):
            out[k] = joined[k]
            continue
        np.take(coords[k], take, out=out[k], mode="clip")  # "raise" would go through a buffer
        if axis.start:
            out[k] -= axis.start
        if axis.step > 1:
            out[k] //= axis.step
    return take, out


def place(selection: AnySelection, out: Array) -> Array:
    """Return coordinates in the answer for those in storage: `Selection.finish` for sparse elements.

    Parameters
    ----------
    selection : Selection, PointSelection or MixedSelection
        What is picked.
    out : int64 ndarray, shape (len(selection.storage_shape), m)
        Coordinates in ``selection.storage_shape``, as `locate` returns them.

    Returns
    -------
    int64 ndarray, shape (len(selection.result_shape), m)
        Coordinates in ``selection.result_shape``, in the same order; they need not ascend. It is `out`
        itself where the answer is what storage returned.

    Examples
    --------
    >>> backwards = Selection((4, 3), (Run(0, 4, 2), Run(1, 2)), flips=(0,), drops=(1,), newaxes=(0,))
    >>> place(backwards, np.array([[0, 1], [0, 0]])).tolist()
    [[0, 0], [1, 0]]
    """
    if isinstance(selection, PointSelection):
        return unravel(out[0], selection.result_shape)
    if isinstance(selection, MixedSelection):
        rest = place(selection.rest, np.delete(out, selection.place, axis=0))
        number = unravel(out[selection.place], selection.points.result_shape)
        return np.insert(rest, [selection.target] * len(number), number, axis=0)
    if not (selection.flips or selection.drops or selection.moved or selection.newaxes):
        return out
    sizes = selection.storage_shape
    rows = [
        sizes[k] - 1 - row if k in selection.flips else row
        for k, row in enumerate(out)
        if k not in selection.drops
    ]
    if selection.moved is not None:
        source, target = selection.moved
        row, shape = rows.pop(source), selection.points_shape
        rows[target:target] = [row] if shape is None else [*unravel(row, shape)]
    for position in selection.newaxes:
        rows.insert(position, np.zeros(out.shape[1], np.int64))
    return _stack(rows, out.shape[1])


def lift(selection: AnySelection, coords: Array) -> tuple[Array, Array]:
    """Return where elements of the answer lie in the tensor: the way back of `locate` and `place`.

    Of elements that an index array puts in one place, the last one is kept, as an assignment does.

    Parameters
    ----------
    selection : Selection, PointSelection or MixedSelection
        What was picked.
    coords : int64 ndarray, shape (len(selection.result_shape), m)
        Coordinates in ``selection.result_shape``.

    Returns
    -------
    take : int64 ndarray, shape (n,)
        Which of the elements are kept.
    out : int64 ndarray, shape (ndim, n)
        Their coordinates in the tensor.

    Examples
    --------
    >>> backwards = Selection((4, 3), (Run(0, 4, 2), Run(1, 2)), flips=(0,), drops=(1,))
    >>> lift(backwards, np.array([[0, 1]]))[1].tolist()
    [[2, 0], [1, 1]]
    """
    if isinstance(selection, PointSelection):
        places = ravel(coords, selection.result_shape)
        last = _last(ravel(selection.coords, selection.shape))
        take = np.flatnonzero(last[places])
        return take, selection.coords[:, places[take]]
    if isinstance(selection, MixedSelection):
        return _lift_mixed(selection, coords)
    rows = [row for k, row in enumerate(coords) if k not in selection.newaxes]
    if selection.moved is not None:
        source, target = selection.moved
        shape = (-1,) if selection.points_shape is None else selection.points_shape
        span = slice(target, target + len(shape))
        rows[span] = [
            rows[target]
            if selection.points_shape is None
            else ravel(_stack(rows[span], coords.shape[1]), shape)
        ]
        rows.insert(source, rows.pop(target))
    kept = np.ones(coords.shape[1], bool)
    out = np.empty((len(selection.axes), coords.shape[1]), np.int64)
    waiting = iter(rows)
    for k, axis in enumerate(selection.axes):
        row = np.zeros(coords.shape[1], np.int64) if k in selection.drops else next(waiting)
        if k in selection.flips:
            row = axis.count - 1 - row
        if isinstance(axis, Points):
            out[k] = axis.indices[row]
            kept &= _last(axis.indices)[row]
        else:
            out[k] = axis.start + row * axis.step
    take = np.flatnonzero(kept)
    return take, out[:, take]


def _lift_mixed(selection: MixedSelection, coords: Array) -> tuple[Array, Array]:
    """Take the axes of the points and the others back on their own."""
    span = selection.target, selection.target + len(selection.points.result_shape)
    take, points = lift(selection.points, coords[slice(*span)])
    _, rest = lift(selection.rest, np.delete(coords[:, take], slice(*span), axis=0))
    out = np.empty((len(selection.shape), len(take)), np.int64)
    out[list(selection.axes)] = points
    out[list(selection.others)] = rest
    return take, out


def _last(values: Array) -> Array:
    """Return for each value whether no later one equals it."""
    _, first = np.unique(values[::-1], return_index=True)
    out = np.zeros(len(values), bool)
    out[len(values) - 1 - first] = True
    return out


def _narrowing(selection: Selection) -> list[int]:
    """The axes that leave something out, the one that leaves the least over first."""
    share = []
    for axis, size in zip(selection.axes, selection.shape, strict=True):
        lo, hi = axis.bounds
        share.append(min(axis.count, hi - lo) / size)
    partial = [
        k
        for k, (axis, size) in enumerate(zip(selection.axes, selection.shape))
        if isinstance(axis, Points) or axis.count < size
    ]
    return sorted(partial, key=share.__getitem__)


def _narrow(axis: Run | Points, column: Array, take: Array | None) -> Array:
    """Return the elements of `take` (None: all) whose coordinate on one axis is picked."""
    take = _inside(axis.bounds, column, take)
    if isinstance(axis, Run):
        if axis.step == 1:
            return take
        offsets = column[take] - axis.start
        picked = offsets // axis.step * axis.step == offsets  # sooner than a remainder
        return np.asarray(take[np.flatnonzero(picked)])
    values, (lo, hi) = column[take], axis.bounds
    if hi - lo > len(values):
        return np.asarray(take[_is_in(axis._ascending[0], values)])
    picked = np.zeros(
        hi - lo, bool
    )  # one look instead of a search, where that costs no more memory
    picked[axis.indices - lo] = True
    return np.asarray(take[picked[values - lo]])


def _inside(bounds: tuple[int, int], column: Array, take: Array | None) -> Array:
    """Return the elements of `take` (None: all) whose coordinate lies in a half-open range."""
    lo, hi = bounds
    values = column if take is None else column[take]
    if hi - lo == 1:
        mask = values == lo
    else:
        mask = values >= lo
        mask &= values < hi
    found = np.flatnonzero(mask)
    return found if take is None else np.asarray(take[found])


def _is_in(ascending: Array, values: Array) -> Array:
    """Whether each of `values`, none of them above the last of `ascending`, is one of `ascending`."""
    return np.asarray(ascending[np.searchsorted(ascending, values)] == values)


def _join(ascending: Array, order: Array, values: Array) -> tuple[Array, Array]:
    """Pair each of `values`, all of which occur in `ascending`, with every one equal to it.

    Returns the pairs' places in `values`, ascending, and those that `order` has for the other side.
    """
    first = np.searchsorted(ascending, values)
    counts = np.searchsorted(ascending, values, side="right") - first
    again = np.repeat(np.arange(len(values)), counts)
    # A running number within each group: 0, 1, .. for the pairs of one value.
    within = np.arange(len(again)) - np.repeat(np.cumsum(counts) - counts, counts)
    return again, order[first[again] + within]


def _locate_points(selection: PointSelection, coords: Array) -> tuple[Array, Array]:
    """Join elements and points by their place in C order; what lies outside of their box has none."""
    take: Array = np.arange(coords.shape[1])
    sides = sorted(
        selection.ranges(), key=lambda side: (side[2] - side[1]) / selection.shape[side[0]]
    )
    for at, (k, lo, hi) in enumerate(sides):
        take = _inside((lo, hi), coords[k], take if at else None)
    points, order = selection._in_order
    values = ravel(coords[:, take], selection.shape)
    kept = values <= points[-1]
    kept[kept] = _is_in(points, values[kept])
    again, places = _join(points, order, values[kept])
    return take[kept][again], places[None]


def _search_points(selection: PointSelection, places: Array) -> tuple[Array, Array]:
    """Search each point among elements in C order."""
    points, order = selection._in_order
    take = np.searchsorted(places, points)
    found = np.flatnonzero(places[np.minimum(take, len(places) - 1)] == points)
    return take[found], order[found][None]


def _locate_mixed(selection: MixedSelection, coords: Array) -> tuple[Array, Array]:
    """Runs first, which give no element twice; then the points among what they leave."""
    take, rest = locate(selection.rest, coords[list(selection.others)])
    again, number = locate(selection.points, coords[list(selection.axes)][:, take])
    return take[again], np.insert(rest[:, again], selection.place, number, axis=0)


def _stack(rows: list[Array], count: int) -> Array:
    return np.stack(rows) if rows else np.zeros((0, count), np.int64)
