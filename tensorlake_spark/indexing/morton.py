"""Morton order: boxes that are near each other on several axes stay near each other in a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def morton_order(places: Array) -> Array:
    """Return in which sequence points follow the Z-order curve.

    The bits of a point's coordinates are interleaved, lowest with lowest, so that every aligned cube of
    2**k places a side is one run of the sequence. Points that lie at one place keep their order.

    Parameters
    ----------
    places : int64 ndarray of shape (points, axes)
        Not negative.

    Returns
    -------
    int64 ndarray of shape (points,)
        Numbers of the points; ``places[morton_order(places)]`` is sorted.

    Notes
    -----
    G. M. Morton, *A computer oriented geodetic data base and a new technique in file sequencing*, IBM, 1966.

    Examples
    --------
    >>> places = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    >>> morton_order(places).tolist()
    [0, 1, 3, 4, 2, 5]
    """
    count, axes = places.shape
    bits = int(places.max()).bit_length() if places.size else 0
    words = []
    word, filled = np.zeros(count, np.uint64), 0
    for bit in range(bits):
        for axis in reversed(range(axes)):
            taken = (places[:, axis].astype(np.uint64) >> np.uint64(bit)) & np.uint64(1)
            word |= taken << np.uint64(filled)
            filled += 1
            if filled == 64:
                words.append(word)
                word, filled = np.zeros(count, np.uint64), 0
    words.append(word)
    return np.lexsort(words)  # the last word has the highest bits, and counts first
