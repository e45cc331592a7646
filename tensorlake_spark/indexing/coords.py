"""Coordinates of sparse elements: their places in C order, sorted, combined, and back again."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, did_you_mean

Array = np.ndarray[Any, Any]

DUPLICATES = ("error", "sum", "last")
"""What may become of a coordinate that is given twice."""

LONG_RUN = 64
"""Runs of so many elements, on average, are merged sooner than they are sorted."""

_AT_ONCE = 1 << 15  # places that are unravelled at a time, so that they stay in the cache


def ravel(coords: Array, shape: Sequence[int]) -> Array:
    """Return places in C order; int64 holds them, for a tensor has fewer than 2**63 elements.

    Examples
    --------
    >>> ravel(np.array([[0, 2], [1, 0]]), (3, 2))
    array([1, 4])
    """
    out = np.zeros(coords.shape[1], np.int64)
    for row, size in zip(coords, shape, strict=True):
        out *= size
        out += row
    return out


def unravel(places: Array, shape: Sequence[int], out: Array | None = None) -> Array:
    """Return coordinates, shape (len(shape), n), of places in C order, which lie within the shape.

    Parameters
    ----------
    places : int64 ndarray, shape (n,)
        As `ravel` returns them.
    shape : sequence of int
        Fewer than 2**63 elements.
    out : int64 ndarray, optional
        Where they are written.

    Examples
    --------
    >>> unravel(np.array([1, 4]), (3, 2)).tolist()
    [[0, 2], [1, 0]]
    """
    if out is None:
        out = np.empty((len(shape), len(places)), np.int64)
    if not len(shape):
        return out
    for first in range(0, len(places), _AT_ONCE):
        _divide(places[first : first + _AT_ONCE], shape, out[:, first : first + _AT_ONCE])
    return out


def _divide(places: Array, shape: Sequence[int], out: Array) -> None:
    """Write the coordinates of places in C order."""
    for k in range(len(shape) - 1, 0, -1):
        # Division takes the time, and that of unsigned words of 32 bits is the fastest.
        word = np.uint32 if math.prod(shape[: k + 1]) < 1 << 32 else np.uint64
        rest, size = places.astype(word, copy=False), word(max(1, shape[k]))
        places = rest // size
        np.subtract(rest, places * size, out=out[k], casting="unsafe")
    out[0] = places


def sort_places(places: Array) -> tuple[Array, Array]:
    """Return places in ascending order, and the stable order that sorts them.

    The number of an element is put into the low bits of its place where they are free: NumPy sorts plain
    integers several times faster than it finds an order. Elements that come in long runs, as those of blocks do, are
    merged. That takes a quarter of the time of a sort by vector instructions if the runs lie apart, and a tenth on
    processors where these are slow (AMD's Zen 4).

    Examples
    --------
    >>> sort_places(np.array([7, 2, 7]))
    (array([2, 7, 7]), array([1, 0, 2]))
    """
    count = len(places)
    bits = max(0, count - 1).bit_length()
    least = int(places.min(initial=2**62)) if count else 0
    if count and (int(places.max()) - least).bit_length() + bits <= 63:
        packed = places - least
        packed <<= bits
        packed |= np.arange(count)
        falls = np.count_nonzero(places[1:] < places[:-1])
        packed.sort(kind="stable" if falls < count // LONG_RUN else None)
        by = packed & ((1 << bits) - 1)
        packed >>= bits
        packed += least
        return packed, by
    by = np.argsort(places, kind="stable")
    return places[by], by


def check_rule(duplicates: str, dtype: np.dtype[Any] | None = None) -> None:
    """Raise InvalidOptionError unless elements, of a dtype if it is given, can be combined by a rule.

    Examples
    --------
    >>> check_rule("last", np.dtype("datetime64[s]"))
    """
    if duplicates not in DUPLICATES:
        raise InvalidOptionError(
            f"unknown duplicates {duplicates!r}{did_you_mean(str(duplicates), DUPLICATES)}; known are "
            f"{', '.join(DUPLICATES)}"
        )
    if duplicates == "sum" and dtype is not None and dtype.kind == "M":
        raise InvalidOptionError(
            f"values of dtype {dtype} have no sum; duplicates='last' keeps the last of those that share a place"
        )


def combine(values: Array, starts: Array, duplicates: str) -> Array:
    """Return one value for each run of elements that share a coordinate: their sum, or the last of them.

    Raises
    ------
    InvalidTensorError
        If the values do not add up.

    Examples
    --------
    >>> combine(np.array([2, 3, 5]), np.array([0, 2]), "sum")
    array([5, 5])
    """
    if duplicates == "last":
        return np.asarray(values[np.append(starts[1:], len(values)) - 1])
    if values.dtype.kind == "M":
        raise InvalidTensorError(f"values of dtype {values.dtype} cannot be summed")
    # NumPy would sum in wider integers; of a timedelta64 it knows the dtype, and takes none.
    dtype = None if values.dtype.kind == "m" else values.dtype
    return np.asarray(np.add.reduceat(values, starts, dtype=dtype))


def order(
    coords: Array, values: Array, shape: Sequence[int], duplicates: str = "error"
) -> tuple[Array, Array]:
    """Return coordinates and values in C order, each coordinate once; themselves where that is so.

    Parameters
    ----------
    coords : int64 ndarray, shape (ndim, n)
        Within `shape`, in any order.
    values : ndarray, shape (n,)
        What belongs to them.
    shape : sequence of int
        Fewer than 2**63 elements.
    duplicates : {"error", "sum", "last"}
        What becomes of a coordinate that is given twice. A sum keeps the dtype of `values`.

    Raises
    ------
    InvalidTensorError
        For duplicates with ``"error"``, and where ``"sum"`` meets values that do not add up.
    InvalidOptionError
        If `duplicates` is none of the three.

    Examples
    --------
    >>> order(np.array([[4, 1, 4]]), np.array([5, 3, 2]), (9,), "sum")
    (array([[1, 4]]), array([3, 7]))
    """
    check_rule(duplicates)
    places = ravel(coords, shape)
    if (places[1:] > places[:-1]).all():
        return coords, values
    places, by = sort_places(places)
    coords, values = coords[:, by], values[by]
    fresh = np.concatenate(([True], places[1:] != places[:-1]))
    if fresh.all():
        return coords, values
    first = np.flatnonzero(fresh)
    if duplicates != "error":
        return coords[:, first], combine(values, first, duplicates)
    at = tuple(coords[:, np.argmin(fresh)].tolist())
    raise InvalidTensorError(
        f"elements that repeat a coordinate: {len(fresh) - len(first)}, the first of them {at}; "
        "duplicates='sum' or duplicates='last' combines them"
    )


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of a tensor's axes as ints if int64 can count its elements.

    Raises
    ------
    InvalidTensorError
        If it is not a sequence of integers from 0 on, or a shape of 2**63 elements or more.

    Examples
    --------
    >>> check_shape(np.array([3, 2]))
    (3, 2)
    """
    try:
        lengths = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise InvalidTensorError(f"shape {shape!r} is not a sequence of integers") from None
    for axis, n in enumerate(lengths):
        if n < 0:
            raise InvalidTensorError(f"axis {axis} has length {n}; lengths are 0 or more")
    if math.prod(lengths) >= 2**63:
        raise InvalidTensorError(
            f"shape {lengths} has {math.prod(lengths)} elements; fewer than 2**63 can be counted"
        )
    return lengths


def check_coords(coords: Any, shape: Sequence[int]) -> Array:
    """Return coordinates as int64, the row of every axis contiguous, if they lie within `shape`.

    Raises
    ------
    InvalidTensorError
        If they are not integers, have not one row for every axis, or lie outside; the message names
        axis, value and bound.

    Examples
    --------
    >>> check_coords([[0, 2], [1, 0]], (3, 2)).dtype
    dtype('int64')
    """
    try:
        array = np.asarray(coords)
    except ValueError:
        raise InvalidTensorError("the coordinates of the axes differ in number") from None
    if not array.size and not isinstance(coords, np.ndarray):
        array = array.astype(np.int64)  # NumPy makes floats of an empty list
    if array.dtype.kind not in "iu":
        raise InvalidTensorError(f"coordinates are integers, not {array.dtype}")
    if array.ndim != 2 or len(array) != len(shape):
        raise InvalidTensorError(
            f"coordinates of shape {array.shape} for a tensor of shape {tuple(shape)}; they have shape "
            f"({len(shape)}, nnz), one row for every axis"
        )
    for axis, (row, size) in enumerate(zip(array, shape, strict=True)):
        for value in (int(row.min()), int(row.max())) if row.size else ():
            if not 0 <= value < size:
                raise InvalidTensorError(
                    f"coordinate {value} is out of bounds for axis {axis} with size {size}"
                )
    return np.ascontiguousarray(array, np.int64)
