"""The step ``nibbles``: the lowest four bits of all words, then the next four, two words to a byte.

Words that are nearly all below 16, such as differences of quantised values, are half a byte each before they are
compressed. That is nearer to their entropy than a byte each: the compressor sees pairs of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding.filters.bin_coding import BITS, SHORT

Array = np.ndarray[Any, Any]


def part(words: Array) -> Array:
    """Return words as nibbles: for each byte of a word, from the lowest, its lower halves, then its upper ones.

    Parameters
    ----------
    words : unsigned integer ndarray
        Any shape; C order counts.

    Returns
    -------
    uint8 ndarray, shape (2 * itemsize, (words + 1) // 2)
        The first word of a pair is in the lower half of its byte. A last one without a partner is paired with 0.

    Examples
    --------
    >>> part(np.array([1, 2, 0x30], np.uint8)).tolist()
    [[33, 0], [0, 3]]
    """
    flat = np.ascontiguousarray(words).reshape(-1)
    count, size = flat.size, flat.itemsize
    planes = np.zeros((size, count + count % 2), np.uint8)
    planes[:, :count] = flat.view(np.uint8).reshape(count, size).T
    first, second = planes[:, 0::2], planes[:, 1::2]
    out = np.empty((size, 2, first.shape[1]), np.uint8)
    np.bitwise_or(first & 15, second << 4, out=out[:, 0])
    np.bitwise_or(first >> 4, second & 0xF0, out=out[:, 1])
    return out.reshape(2 * size, -1)


def size_of(count: int, word: np.dtype[Any]) -> int:
    """Return how many bytes `part` makes of so many words."""
    return 2 * word.itemsize * ((count + 1) // 2)


def join(parts: Array, count: int, word: np.dtype[Any]) -> Array:
    """Return the words that `part` parted.

    Examples
    --------
    >>> join(part(np.array([1, 2, 0x30], np.uint8)), 3, np.dtype("u1")).tolist()
    [1, 2, 48]
    """
    size = word.itemsize
    if count * size > SHORT:
        loops = compiled(BITS, "join", size, nbytes=count * size)
        if loops is not None:
            words = np.empty(count, word)
            loops.join(parts.reshape(2 * size, -1), words)
            return words
    lower, upper = np.moveaxis(parts.reshape(size, 2, -1), 1, 0)
    planes = np.empty((size, lower.shape[1], 2), np.uint8)
    np.bitwise_or(lower & 15, upper << 4, out=planes[:, :, 0])
    np.bitwise_or(lower >> 4, upper & 0xF0, out=planes[:, :, 1])
    out = np.empty((count, size), np.uint8)
    for k in range(size):  # a third of the time of NumPy's transpose
        out[:, k] = planes[k].reshape(-1)[:count]
    return out.reshape(-1).view(word)
