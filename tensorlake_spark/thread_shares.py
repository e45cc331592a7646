"""How threads share the elements of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tensorlake_spark.threads import THREADS, at_once

Array = np.ndarray[Any, Any]
Parts = Sequence[tuple[Array, ...]]

PART = 1 << 17
"""Entries that are worked on at a time: arrays of them fit into the cache, and threads seldom wait for each other."""

_ALONE = 1 << 17  # so few elements are not worth a second thread


def by_parts(work: Callable[[slice], None], count: int, part: int) -> None:
    """Do work on parts of so many entries, which are as long as `part` and begin at multiples of it.

    What NumPy does about floating-point errors is what the caller has said.

    Examples
    --------
    >>> by_parts(print, 5, 4)
    slice(0, 4, None)
    slice(4, 5, None)
    """
    firsts, errors = range(0, count, part), np.geterr()
    share = -(-len(firsts) // THREADS)

    def some(mine: range) -> None:
        with np.errstate(**errors):
            for first in mine:
                work(slice(first, min(first + part, count)))

    at_once(some, [firsts[k : k + share] for k in range(0, len(firsts), max(1, share))])


def filled(
    work: Callable[[slice], Array], shape: Sequence[int], dtype: np.dtype[Any], part: int = PART
) -> Array:
    """Return an array of which work computes parts, in C order; see `by_parts`.

    Examples
    --------
    >>> filled(lambda here: np.arange(here.start, here.stop), (2, 3), np.dtype("i8"), 4)
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    out: Array = np.empty(math.prod(shape), dtype)

    def some(here: slice) -> None:
        out[here] = work(here)

    by_parts(some, out.size, part)
    return out.reshape(shape)


def shares_of(parts: Parts) -> list[Parts]:
    """Return what each thread takes of elements: as many of them, but one thread all if there are few.

    Parameters
    ----------
    parts : sequence of tuple of ndarray
        What belongs to each element, some elements at a time.

    Examples
    --------
    >>> shares_of([(np.arange(4),), (np.arange(2),)])
    [[(array([0, 1, 2, 3]),), (array([0, 1]),)]]
    """
    total = sum(len(part[0]) for part in parts)
    threads = THREADS if total >= _ALONE else 1
    out: list[Parts] = []
    for lo, hi in pairwise(total * number // threads for number in range(threads + 1)):
        share, begin = [], 0
        for part in parts:
            first, stop = max(lo - begin, 0), min(hi - begin, len(part[0]))
            if first < stop:
                share.append(tuple(array[first:stop] for array in part))
            begin += len(part[0])
        out.append(share)
    return out


def spans(edges: Array, most: int | None = None) -> list[tuple[int, int]]:
    """Return which groups of elements each thread takes, about as many elements each: one thread, if there are few.

    Parameters
    ----------
    edges : int32 or int64 ndarray
        Where each group begins, and the end.
    most : int, optional
        Threads that take some, if they are fewer than there are.

    Examples
    --------
    >>> spans(np.array([0, 5, 9]))
    [(0, 2)]
    """
    total = int(edges[-1])
    threads = min(THREADS, most or THREADS) if total >= _ALONE else 1
    wanted = total * np.arange(1, threads) // threads
    cuts = np.searchsorted(
        edges, wanted.astype(edges.dtype)
    )  # of another dtype NumPy copies all edges
    at = [0, *cuts.tolist(), len(edges) - 1]
    return [span for span in pairwise(at) if span[0] < span[1]]
