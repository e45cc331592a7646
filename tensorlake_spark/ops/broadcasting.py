"""NumPy's broadcasting of sparse operands: axes that are missing in front or have length 1 are repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing.coords import check_shape, sort_places
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.lookup import look_up

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that shapes broadcast to, as `numpy.broadcast_shapes` does, for shapes of any size.

    Raises
    ------
    InvalidTensorError
        If they do not broadcast, or if they do to 2**63 elements or more.

    Examples
    --------
    >>> broadcast_shapes((3, 1), (4,), ())
    (3, 4)
    """
    ndim = max(map(len, shapes), default=0)
    out: list[int] = []
    for lengths in zip(*[(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]):
        long = {n for n in lengths if n != 1} or {1}
        if len(long) > 1:
            raise InvalidTensorError(
                f"shapes {', '.join(map(str, shapes))} do not broadcast: axis {len(out) - ndim} has lengths "
                f"{', '.join(map(str, sorted(long)))}; they are equal, or 1"
            )
        out += long
    return check_shape(out)


def broadcast_to(x: Elements, shape: Sequence[int]) -> Elements:
    """Return sparse elements repeated along the axes that they lack, or along which they have length 1.

    Raises
    ------
    InvalidTensorError
        If the shape of `x` does not broadcast to `shape`.

    Examples
    --------
    >>> row = Elements._trusted(np.array([[1]]), np.array([5]), (3,))
    >>> broadcast_to(row, (2, 3)).coords.tolist()
    [[0, 1], [1, 1]]
    """
    shape = check_shape(shape)
    if broadcast_shapes(x.shape, shape) != shape:
        raise InvalidTensorError(f"shape {x.shape} does not broadcast to {shape}")
    if x.shape == shape:
        return x
    fresh = len(shape) - x.ndim
    if shape[fresh:] == x.shape:  # only new axes in front: the whole comes again and again
        again = math.prod(shape[:fresh])
        places = (np.arange(again)[:, None] * x.size + x.places).reshape(-1)
        return Elements._trusted(None, np.tile(x.values, again), shape, places)
    places, by = sort_places(repeated(x, shape))
    if x.nnz:
        by = by // max(1, len(places) // x.nnz)
    return Elements._trusted(None, x.values[by], shape, places)


def repeated(x: Elements, shape: Shape) -> Array:
    """Return the places in a larger shape of every element's repetitions, which come one after the other."""
    if not x.nnz:
        return np.zeros(0, np.int64)
    strides, own = _strides(shape), _own_axes(x, shape)
    first = _places(x, own, strides)
    more = np.zeros(1, np.int64)
    for axis in sorted(set(range(len(shape))) - own.keys()):
        more = (more[:, None] + np.arange(shape[axis]) * strides[axis]).reshape(-1)
    return np.asarray((first[:, None] + more).reshape(-1))


def matches(a: Elements, b: Elements, shape: Shape) -> tuple[Array, Array, Array]:
    """Return where repetitions of two tensors' elements meet in the shape that both broadcast to.

    Returns
    -------
    of_a, of_b : int64 ndarrays, shape (n,)
        Numbers of the elements that meet.
    places : int64 ndarray, shape (n,)
        Where, in C order of `shape`, but in any order.
    """
    strides, own_a, own_b = _strides(shape), _own_axes(a, shape), _own_axes(b, shape)
    both = own_a.keys() & own_b.keys()
    key_a = _places(a, {axis: own_a[axis] for axis in both}, strides)
    key_b, by = sort_places(_places(b, {axis: own_b[axis] for axis in both}, strides))
    keys, starts, counts = np.unique(key_b, return_index=True, return_counts=True)
    group = np.searchsorted(keys, key_a)
    group[group == len(keys)] = 0
    of_a = np.flatnonzero(keys[group] == key_a) if len(keys) else group[:0]
    of_b = starts[group[of_a]]
    if len(keys) < len(key_b):  # several elements of b meet one of a
        repeats = counts[group[of_a]]
        within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        of_a, of_b = np.repeat(of_a, repeats), np.repeat(of_b, repeats) + within
    of_b = by[of_b]
    places = _places(a, own_a, strides)[of_a]
    only_b = {axis: own_b[axis] for axis in own_b.keys() - both}
    if only_b:
        places += _places(b, only_b, strides)[of_b]
    return of_a, of_b, places


def values_at(dense: Array, x: Elements, shape: Shape) -> Array:
    """Return the values of a dense array, repeated to a shape, at the elements of a sparse tensor of that shape.

    Examples
    --------
    >>> some = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5.0, 7.0]), (3, 2))
    >>> values_at(np.array([10, 20]), some, (3, 2)).tolist()
    [20, 10]
    """
    if dense.size == 1:
        return dense.reshape(1)
    if dense.shape == shape and dense.flags.c_contiguous:
        return np.asarray(dense.reshape(-1)[x.places])
    return np.asarray(look_up(dense, x.coords))


def _own_axes(x: Elements, shape: Shape) -> dict[int, Array]:
    """Return the axes of a larger shape along which a tensor is not repeated, with its coordinates there."""
    missing = len(shape) - x.ndim
    return {
        axis + missing: x.coords[axis]
        for axis in range(x.ndim)
        if x.shape[axis] == shape[axis + missing]
    }


def _strides(shape: Shape) -> list[int]:
    """Return how far apart in C order neighbours along each axis are."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _places(x: Elements, rows: dict[int, Array], strides: list[int]) -> Array:
    """Return places in C order of elements, of which only some coordinates count."""
    out = np.zeros(x.nnz, np.int64)
    for axis, row in rows.items():
        out += row * strides[axis]
    return out
