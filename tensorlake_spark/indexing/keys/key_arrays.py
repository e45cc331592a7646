"""The index arrays of a key together: masks become numbers, all of them broadcast, and their axes find a place.

An integer beside an index array counts as an index array of rank 0, as in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.coords import ravel, unravel
from tensorlake_spark.indexing.keys.key_parts import (
    indices_of,
    integer,
    is_array,
    is_mask,
    with_axes,
)

Array = np.ndarray[Any, Any]

Points = tuple[tuple[int, ...], Array, tuple[int, ...]]
"""The axes that index arrays stand for, coordinates of shape (axes, points), and the shape of the points."""


def points_of(items: Sequence[Any], shape: tuple[int, ...]) -> Points:
    """Return the points that the index arrays of a key name, paired as NumPy does.

    Parameters
    ----------
    items : sequence
        Parts of a key, as `tensorlake_spark.indexing.keys.key_parts.expand` returns them.
    shape : tuple of int
        The tensor's.

    Raises
    ------
    InvalidKeyError
        If an index is out of bounds, a mask has another shape than its axes, or the arrays do not broadcast.

    Examples
    --------
    >>> axes, coords, points_shape = points_of([np.array([[0], [2]]), slice(None), np.array([3, 1])], (3, 9, 4))
    >>> axes, coords.tolist(), points_shape
    ((0, 2), [[0, 0, 2, 2], [3, 1, 3, 1]], (2, 2))
    """
    axes: list[int] = []
    arrays: list[Array] = []
    counts: list[Array] = []  # masks without axes pair with the others, and stand for no axis
    for axis, item in with_axes(items):
        if isinstance(item, slice):
            continue
        if not is_array(item):
            arrays.append(np.array(integer(item, axis, shape[axis])))
        elif not is_mask(item):
            arrays.append(item)
        elif item.ndim:
            arrays += true_places(item, shape, axis)
        else:
            counts.append(np.zeros(int(item), np.int64))
        axes += range(axis, axis + len(arrays) - len(axes))
    points_shape = broadcast([*arrays, *counts])
    coords = np.empty((len(arrays), math.prod(points_shape)), np.int64)
    for row, axis, array in zip(coords, axes, arrays, strict=True):
        if row.size:  # NumPy does not look at indices of which no point is left
            row.reshape(points_shape)[...] = indices_of(array, axis, shape[axis])
    return tuple(axes), coords, points_shape


def broadcast(arrays: Sequence[Array]) -> tuple[int, ...]:
    """Return the shape that index arrays have together.

    Raises
    ------
    InvalidKeyError
        If there is none.

    Examples
    --------
    >>> broadcast([np.zeros((2, 1)), np.zeros(3)])
    (2, 3)
    """
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = " ".join(str(array.shape) for array in arrays)
        raise InvalidKeyError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}; each axis "
            "on its own is what oindex takes"
        ) from None


def true_places(mask: Any, shape: Sequence[int], axis: int = 0) -> tuple[Array, ...]:
    """Return where a mask is true, in C order: for each of its axes an int64 array.

    Parameters
    ----------
    mask : bool ndarray, or a sparse array that has ``nonzero``
        Of rank 1 or more.
    shape : sequence of int
        The tensor's.
    axis : int
        The first of the tensor's axes that the mask stands for.

    Raises
    ------
    InvalidKeyError
        If the mask is not as long as the tensor on one of its axes.

    Examples
    --------
    >>> [axis.tolist() for axis in true_places(np.array([[False, True], [True, True]]), (2, 2))]
    [[0, 1, 1], [1, 0, 1]]
    """
    for k, (count, size) in enumerate(zip(mask.shape, shape[axis:], strict=False), axis):
        if count != size:
            raise InvalidKeyError(
                f"boolean index did not match indexed array along axis {k}; size of axis is {size} but size "
                f"of corresponding boolean axis is {count}"
            )
    sides = mask.shape
    if isinstance(mask, np.ndarray):
        return tuple(unravel(np.flatnonzero(mask), sides))  # NumPy is quick along one axis alone
    # What is sparse may have its elements in any order, and some packages some of them twice.
    found = np.array(mask.nonzero(), np.int64).reshape(len(sides), -1)
    return tuple(unravel(np.unique(ravel(found, sides)), sides))


def place_of_arrays(items: Sequence[Any]) -> int:
    """Return where in the result the axes of the index arrays begin.

    Where all of them, integers too, stand together their axes take that place in the result, else they
    come first.

    Examples
    --------
    >>> place_of_arrays([slice(None), 2, np.array([0])]), place_of_arrays([slice(None), 2, None, np.array([0])])
    (1, 0)
    """
    places = [
        place
        for place, item in enumerate(items)
        if not (item is None or item is Ellipsis or isinstance(item, slice))
    ]
    together = places == list(range(places[0], places[-1] + 1))
    return kept(items[: places[0]]) if together else 0


def kept(items: Sequence[Any]) -> int:
    """Return how many axes of the result come from slices and from ``None``."""
    return sum(item is None or isinstance(item, slice) for item in items)
