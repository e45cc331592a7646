"""The step ``zigzag``: small differences of either sign become small unsigned words.

A difference of -1 is a word of all ones. As ``2 * 1 - 1`` it is a word with zeros in its upper bytes, which
compress to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def fold(words: Array) -> Array:
    """Return words, read as signed, as unsigned ones: 0, -1, 1, -2 as 0, 1, 2, 3; exact for every word.

    Parameters
    ----------
    words : unsigned integer ndarray
        Left as they are.

    Examples
    --------
    >>> fold(np.array([0, -1, 1, -2], np.int8).view(np.uint8)).tolist()
    [0, 1, 2, 3]
    """
    word = words.dtype.type
    signs = words >> word(8 * words.itemsize - 1)
    np.negative(signs, out=signs)
    signs ^= words << word(1)
    return np.asarray(signs)


def unfold(folded: Array) -> None:
    """Undo `fold` in place.

    Examples
    --------
    >>> words = np.array([0, 1, 2, 3], np.uint8)
    >>> unfold(words)
    >>> words.view(np.int8).tolist()
    [0, -1, 1, -2]
    """
    word = folded.dtype.type
    halves = folded >> word(1)
    folded &= word(1)
    np.negative(folded, out=folded)
    folded ^= halves
