"""Which of many boxes meet, without holding each of them against each other one."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LEAF = 64  # so few boxes are held against each other at once
_STRIP = 1 << 22  # pairs that are looked at together
_WORTH = 0.9  # a cut that leaves more than this on one side is none


def meeting(lo: Array, hi: Array, most: int = 16) -> list[tuple[int, int]]:
    """Return pairs of boxes that have an element in common, ``most`` of them or a few more.

    Space is cut in two, again and again, until few boxes are left in a part, so boxes that tile a tensor
    take O(n log n).

    Parameters
    ----------
    lo, hi : int64 ndarray, shape (n, ndim)
        Corners of the boxes, none of them empty.
    most : int
        When to stop.

    Returns
    -------
    list of (int, int)
        Places of the boxes, the smaller first, in order.

    Examples
    --------
    >>> meeting(np.array([[0], [4], [7]]), np.array([[4], [8], [9]]))
    [(1, 2)]
    """
    found: set[tuple[int, int]] = set()
    parts = [np.arange(len(lo))] if len(lo) > 1 else []
    while parts and len(found) < most:
        part = parts.pop()
        halves = _cut(lo[part], hi[part]) if len(part) > _LEAF else None
        if halves is not None:
            parts += [part[half] for half in halves]
            continue
        step = max(1, _STRIP // max(1, len(part)))
        for first in range(0, len(part), step):
            some = part[first : first + step]
            meets = np.ones((len(some), len(part)), bool)
            for k in range(lo.shape[1]):
                meets &= lo[some, k, None] < hi[None, part, k]
                meets &= hi[some, k, None] > lo[None, part, k]
            a, b = np.nonzero(meets)
            pairs = np.stack([some[a], part[b]], axis=1)
            pairs = pairs[pairs[:, 0] < pairs[:, 1]][: max(1, most)]
            found.update((int(i), int(j)) for i, j in pairs)
            if len(found) >= most:
                break
    return sorted(found)


def _cut(lo: Array, hi: Array) -> tuple[Array, Array] | None:
    """Return the boxes on the two sides of the best cut, those that it cuts on both; None for no cut."""
    best: tuple[Array, Array] | None = None
    least = _WORTH * len(lo)
    for k in range(lo.shape[1]):
        starts = np.unique(lo[:, k])
        if len(starts) < 2:
            continue
        cut = starts[len(starts) // 2]
        left, right = lo[:, k] < cut, hi[:, k] > cut
        larger = max(int(left.sum()), int(right.sum()))
        if larger < least:
            least, best = larger, (left, right)
    return best
