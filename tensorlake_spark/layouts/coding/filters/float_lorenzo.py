"""The step ``lorenzo(float)``: the distance of floats from a prediction that is made in floats.

`lorenzo` takes differences of integers that ascend as floats do. They are small only while neighbours have the same
exponent. Here the neighbours on the axes before the last are added as floats, which is exact but for one rounding:
``(behind - corner) + above``, as the predictor of Ibarria et al. (2003) and fpzip do. The words of element and
prediction are subtracted then, and along the last axis each difference from the one before it. So along a line nothing
waits for a float that was just computed, and a line is added up as integers.

The sums are the same on every machine: they have no products, floats of `fits` neither overflow in them nor become
subnormal, and IEEE 754 says how they are rounded. Floats beyond these bounds are left to `lorenzo`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorlake_spark.layouts.kernels.steps import PREDICTED

Array = np.ndarray[Any, Any]


def takes(dtype: np.dtype[Any]) -> bool:
    """Whether floats of a dtype can be predicted: those that every machine adds alike.

    Examples
    --------
    >>> takes(np.dtype("f4")), takes(np.dtype("f2")), takes(np.dtype("c8"))
    (True, False, False)
    """
    return dtype.kind == "f" and dtype.itemsize in PREDICTED


def fits(words: Array) -> bool:
    """Whether all floats of a block are zero or have magnitudes that are predicted alike everywhere.

    Examples
    --------
    >>> fits(np.array([0.0, -1.5], "f4").view("u4")), fits(np.array([np.nan], "f4").view("u4"))
    (True, False)
    """
    low, high = PREDICTED[words.itemsize]
    one = words.dtype.type(1)
    magnitudes = words << one
    magnitudes >>= one
    if int(magnitudes.max(initial=0)) > high:
        return False
    magnitudes -= one  # zeros become the greatest words
    return int(magnitudes.min(initial=low)) >= low - 1


def subtract(words: Array) -> Array:
    """Return the differences of a block of the words of floats.

    Parameters
    ----------
    words : uint32 or uint64 ndarray, rank 1 at least
        C-contiguous; see `fits`.

    Examples
    --------
    >>> x = np.array([[1, 2, 3], [1, 2, 3]], "f4")
    >>> subtract(x.view("u4"))[1].tolist()
    [0, 0, 0]
    """
    block = _blocks(words)
    values = block.view(f"f{words.itemsize}")
    guess = np.zeros_like(values)
    guess[:, 0, 1:] = values[:, 0, :-1]
    guess[:, 1:, 0] = values[:, :-1, 0]
    inner = guess[:, 1:, 1:]
    np.subtract(values[:, :-1, 1:], values[:, :-1, :-1], out=inner)
    inner += values[:, 1:, :-1]
    less: Array = block - guess.view(words.dtype)
    out: Array = less.copy()
    out[..., 1:] -= less[..., :-1]
    whole: Array = out.reshape(words.shape)
    return whole


def add(words: Array, first: int = 0) -> None:
    """Undo `subtract` in place.

    Parameters
    ----------
    words : uint32 or uint64 ndarray
        C-contiguous: whole blocks from their corner on; axes before `first` count blocks.
    first : int
        The first axis of a block.

    Examples
    --------
    >>> x = np.array([[1, 2, 3], [2, 3, 4]], "f4")
    >>> less = subtract(x.view("u4"))
    >>> add(less)
    >>> less.view("f4").tolist()
    [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    """
    if not words.size:
        return
    block = _blocks(words, first)
    np.add.accumulate(block, axis=-1, dtype=block.dtype, out=block)
    for edge in (block[:, 0], block[:, :, 0]):
        np.add.accumulate(edge, axis=1, dtype=block.dtype, out=edge)
    blocks, planes, lines, columns = block.shape
    if planes == 1 or lines == 1:
        return
    kind = np.dtype(f"f{words.itemsize}")
    line = columns * words.itemsize
    plane = lines * line
    strides = (planes * plane, plane - line, words.itemsize)
    # Lines of one diagonal, whose plane and number have one sum, need only those of the two diagonals before.
    with np.errstate(all="ignore"):  # of a damaged row
        for total in range(2, planes + lines - 1):
            i = max(1, total - lines + 1)
            shape = (blocks, min(planes - 1, total - 1) - i + 1, columns)
            at = i * plane + (total - i) * line
            behind = np.ndarray(shape, kind, block, at - plane, strides)
            corner = np.ndarray(shape, kind, block, at - plane - line, strides)
            guess = behind - corner
            guess += np.ndarray(shape, kind, block, at - line, strides)
            here = np.ndarray(shape, words.dtype, block, at, strides)
            here += guess.view(words.dtype)


def _blocks(words: Array, first: int = 0) -> Array:
    """Return a view of shape (blocks, planes, lines, columns): axes of length 1 do not count as planes or lines."""
    long = [n for n in words.shape[first:-1] if n > 1]
    planes, lines = [1, 1, *long][-2:]
    blocks = math.prod(words.shape[:first]) * math.prod(long[:-2])
    return words.reshape(blocks, planes, lines, words.shape[-1])
