"""The step ``lorenzo``: the difference along every axis of a block.

What is left of an element is its distance from what its neighbours before it, on all axes and diagonals,
predict: on a plane ``x[i, j] - x[i - 1, j] - x[i, j - 1] + x[i - 1, j - 1]``. Where values are smooth on all
axes it is much smaller than a difference along one.

Words are taken modulo the word. Floats go by their order: their bits become integers that ascend as the
floats do. Both are exact, so that NaN payloads and signed zeros survive.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_SHORT_ROW = 64  # below so many words, a call for a row costs more than NumPy's own running sum


def has_order(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype's words go by the order of floats: floats of every kind, and the parts of complex numbers.

    Examples
    --------
    >>> has_order(np.dtype("f4")), has_order(np.dtype("c8")), has_order(np.dtype("M8[s]"))
    (True, True, False)
    """
    return dtype.kind in "fcV"  # ml_dtypes gives some of its floats the kind V


def turn(words: Array) -> None:
    """Exchange the bits of floats and integers of the same order, in place; its own inverse.

    The words, read as signed integers, ascend as the floats do: below zero all bits but the sign are turned.

    Examples
    --------
    >>> words = np.array([-2.0, -1.0, -0.0, 0.0, 1.0]).view(np.uint64)
    >>> turn(words)
    >>> bool((np.diff(words.view(np.int64)) > 0).all())
    True
    """
    signs = words.view(f"i{words.itemsize}") >> (8 * words.itemsize - 1)
    mask = signs.view(words.dtype)
    mask >>= words.dtype.type(1)
    words ^= mask


def subtract(words: Array) -> Array:
    """Return the differences along all axes of a block of words.

    Examples
    --------
    >>> subtract(np.array([[1, 2, 3], [2, 3, 5]], np.uint8)).tolist()
    [[1, 1, 1], [1, 0, 1]]
    """
    for axis in range(words.ndim):
        lines = np.moveaxis(words, axis, 0)
        less = np.empty_like(words)
        out = np.moveaxis(less, axis, 0)
        out[:1] = lines[:1]
        np.subtract(lines[1:], lines[:-1], out=out[1:])
        words = less
    return words


def add(words: Array, first: int = 0) -> None:
    """Undo `subtract` in place along the axes from `first` on, but the last one.

    Parameters
    ----------
    words : unsigned integer ndarray
        Whole blocks from their corner on; axes before `first` count blocks.
    first : int
        The first axis of a block.
    """
    for axis in range(first, words.ndim - 1):
        lines = np.moveaxis(words, axis, 0)
        if len(lines) > 1 and lines[0].size < _SHORT_ROW:
            np.add.accumulate(words, axis=axis, dtype=words.dtype, out=words)
            continue
        for before, line in pairwise(lines):
            np.add(line, before, out=line)


def add_last(words: Array, out: Array) -> None:
    """Undo `subtract` along the last axis, into an array of the same shape, which may be the same one.

    Examples
    --------
    >>> words = np.array([[1, 1, 1], [1, 0, 1]], np.uint8)
    >>> add(words)
    >>> add_last(words, words)
    >>> words.tolist()
    [[1, 2, 3], [2, 3, 5]]
    """
    np.add.accumulate(words, axis=-1, dtype=words.dtype, out=out)
