"""Squares and sums of values, exact where they are integers, as the kernels of reductions take them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LONG_RUN = 16


def square_of(values: Array) -> Array:
    """Return the squares of absolute values, of integers exactly where they are short, else as floats.

    Examples
    --------
    >>> square_of(np.array([200, 3], np.uint8)), square_of(np.array([3j]))
    (array([40000,     9], dtype=uint16), array([9.]))
    """
    if values.dtype.kind in "VmM" or (values.dtype.kind in "iub" and values.dtype.itemsize > 2):
        values = values.astype(np.float64)  # V: bfloat16, whose squares are cut; times have none
    return square(values)


def square(values: Array, beside: Array | None = None) -> Array:
    """Return the squares of absolute values, short integers in twice their width, and what stands beside them added.

    Examples
    --------
    >>> square(np.array([200], np.uint8)), square(np.array([2.0]), np.array([1.0]))
    (array([40000], dtype=uint16), array([5.]))
    """
    if beside is not None:
        return square(values) + beside
    if values.dtype.kind == "c":
        return np.asarray(values.real**2 + values.imag**2)
    if values.dtype.kind in "iub" and values.dtype.itemsize <= 2:
        values = values.view(np.uint8) if values.dtype.kind == "b" else values
        # An array even if there is one value without axes, which may be a scalar of NumPy.
        wide = np.asarray(values, f"{values.dtype.kind}{2 * values.dtype.itemsize}")
        return np.asarray(np.multiply(wide, wide, out=wide))
    return np.multiply(values, values)


def times(squares: Array, counts: Array) -> Array:
    """Return squares so many times. Of none nothing is left, even if they are infinite, as those of 1e200 are.

    Examples
    --------
    >>> times(np.array([9.0, 4.0]), np.array([0, 3]))
    array([ 0., 12.])
    """
    return np.where(counts == 0, 0, squares * counts)


def run_sums(values: Array, starts: Array, of: Array | None = None) -> Array:
    """Return the sum of each run. Short runs of doubles are counted sooner than they are reduced.

    The run of each value may be given.

    Examples
    --------
    >>> run_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 2]))
    array([3., 4.])
    """
    if values.dtype != np.float64 or len(starts) * _LONG_RUN < len(values):
        dtype = None if values.dtype.kind in "mM" else values.dtype
        return np.asarray(np.add.reduceat(values, starts, dtype=dtype))
    if of is None:
        of = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    return np.bincount(of, values, len(starts))


def sum_of(values: Array, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return sums of integers over axes. What has one element only is not added up.

    Examples
    --------
    >>> sum_of(np.array([[1, 2], [3, 4]]), (0,), np.dtype("i8"))
    array([4, 6])
    """
    if math.prod(values.shape[k] for k in axes) == 1:
        return values.squeeze(axes).astype(dtype)
    return np.asarray(np.add.reduce(values, axis=axes, dtype=dtype))
