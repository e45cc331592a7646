"""Slices of sparse tensors: what a key picks, found by bisection, and without a copy where that can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from tensorlake_spark.indexing import AnySelection, Points, PointSelection, Selection, locate, place
from tensorlake_spark.indexing.coords import check_shape, order, unravel
from tensorlake_spark.ops.elements import Elements

Array = np.ndarray[Any, Any]


def pick(x: Elements, selection: AnySelection) -> Any:
    """Return what a selection picks: elements, or a scalar where NumPy returns one. See `part`.

    Examples
    --------
    >>> from tensorlake_spark.indexing import select
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5.0, 7.0]), (3, 2))
    >>> pick(x, select((2, 0), x.shape))
    np.float64(7.0)
    """
    found = part(x, selection)
    if not selection.is_scalar:
        return found
    return found.values[0] if found.nnz else np.zeros((), x.dtype)[()]


def part(x: Elements, selection: AnySelection) -> Elements:
    """Return the elements that a selection picks.

    Elements lie in C order, so those between two bounds of the first axis are a run of them, and of these those
    between two bounds of the second if the first names one index: they are found by bisection. A slice of leading
    axes is such a run. It shares `values` with `x`. It shares `coords` too where one row of them is left and its
    numbers stay: ``x[:10]`` of a vector, ``x[5]`` of a matrix, ``x[5, 2]`` of a tensor of rank 3. If `x` has only
    places so far, so has its slice; they are shared where they stay, as in ``x[:10]``.

    Parameters
    ----------
    x : Elements
        What is sliced.
    selection : Selection, PointSelection or MixedSelection
        For the shape of `x`.

    Returns
    -------
    Elements
        Of the selection's result shape, `x` itself where that is all of it. Explicit zeros stay.

    Raises
    ------
    InvalidTensorError
        If index arrays ask for 2**63 elements or more.

    Examples
    --------
    >>> from tensorlake_spark.indexing import select
    >>> x = Elements._trusted(np.array([[0, 2, 2], [1, 0, 3]]), np.array([5.0, 7.0, 9.0]), (3, 4))
    >>> row = part(x, select(2, x.shape))
    >>> row.coords.tolist(), np.shares_memory(row.values, x.values)
    ([[0, 3]], True)
    """
    # Index arrays that repeat indices can ask for more elements than the tensor has.
    shape = check_shape(selection.result_shape)
    run, bounded = stretch(selection, x)
    values = x.values[run]
    is_run = _is_run(selection, bounded)
    if is_run and shape == x.shape:
        return x
    if is_run and x._coords is None:
        before = _place(selection.box.lo, x.shape)
        return Elements._trusted(
            None, values, shape, x.places[run] - before if before else x.places[run]
        )
    # Of coordinates that nobody knows yet, no more than the run's are computed.
    known = x._coords is not None or len(values) == x.nnz
    coords = x.coords[:, run] if known else unravel(x.places[run], x.shape)
    if _is_run(selection, bounded):
        return Elements._trusted(_placed(selection, coords), values, shape)
    places = x.places[run] if isinstance(selection, PointSelection) else None
    take, out = locate(selection, coords, places)
    values = values if out is coords else values[take]
    return Elements._trusted(*order(place(selection, out), values, shape), shape)


def stretch(selection: AnySelection, x: Elements) -> tuple[slice, int]:
    """Return the run of elements in C order that holds all that is picked, and how many axes bound it.

    Examples
    --------
    >>> from tensorlake_spark.indexing import select
    >>> x = Elements._trusted(np.array([[0, 2, 2], [1, 0, 3]]), np.array([5.0, 7.0, 9.0]), (3, 4))
    >>> stretch(select(np.s_[2, 1:], x.shape), x)
    (slice(2, 3, None), 2)
    """
    lo, hi = selection.box.lo, selection.box.hi
    several = (k for k in range(x.ndim) if hi[k] - lo[k] > 1)
    bounded = min(next(several, x.ndim) + 1, x.ndim)
    first, stop = 0, x.nnz
    if selection.is_empty:
        return slice(0, 0), bounded
    if x._coords is None:
        ends = _place(lo, x.shape), _place([n - 1 for n in hi], x.shape) + 1
        return slice(*np.searchsorted(x.places, ends).tolist()), bounded
    for k in range(bounded):
        if (lo[k], hi[k]) != (0, x.shape[k]):
            row = x.coords[k, first:stop]
            first, stop = (first + np.searchsorted(row, (lo[k], hi[k]))).tolist()
    return slice(first, stop), bounded


def _place(at: Sequence[int], shape: Sequence[int]) -> int:
    """Return the place of one element in C order."""
    place = 0
    for index, size in zip(at, shape, strict=True):
        place = place * size + index
    return place


def _is_run(selection: AnySelection, bounded: int) -> TypeGuard[Selection]:
    """Whether all elements of the run are picked, and stay in their order."""
    if not isinstance(selection, Selection):
        return False
    axes = selection.axes
    if any(isinstance(axis, Points) or axis.step > 1 for axis in axes):
        return False
    if selection.moved is not None or any(axes[k].count > 1 for k in selection.flips):
        return False
    rest = zip(axes[bounded:], selection.shape[bounded:], strict=True)
    return all(axis.count == size for axis, size in rest)


def _placed(selection: Selection, coords: Array) -> Array:
    """Return the coordinates in the answer for those of a run; a view of them where they stay side by side."""
    starts = [axis.bounds[0] for axis in selection.axes]
    kept = [k for k in range(len(coords)) if k not in selection.drops]
    moves = selection.newaxes or any(starts[k] for k in kept)
    if kept and not moves and len(kept) == kept[-1] - kept[0] + 1:
        return coords[kept[0] : kept[-1] + 1]
    rows = [coords[k] - starts[k] if starts[k] else coords[k] for k in kept]
    for position in selection.newaxes:
        rows.insert(position, np.zeros(coords.shape[1], np.int64))
    return np.stack(rows) if rows else coords[:0]
