"""Sequences of integers made small for a buffer, and some buffers made one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.buffers import check_ints, unpack_ints

Array = np.ndarray[Any, Any]


def gaps(ids: Array, starts: Array) -> Array:
    """Return the differences between neighbours; at every start the number itself.

    Examples
    --------
    >>> gaps(np.array([3, 4, 9, 2, 7]), np.array([0, 3])).tolist()
    [3, 1, 5, 2, 5]
    """
    out = np.diff(ids, prepend=0)
    out[starts] = ids[starts]
    return out


def ascending(differences: Array, counts: Array) -> Array:
    """Return what `gaps` was made of, for runs of so many numbers each, none of them empty.

    Parameters
    ----------
    differences : uint32 or uint64 ndarray
        Overwritten. Its word holds all numbers.
    counts : int64 ndarray, shape (runs,)
        Numbers of each run.

    Raises
    ------
    CorruptDataError
        If the numbers of a run do not ascend.

    Examples
    --------
    >>> ascending(np.array([3, 1, 5, 2, 5], np.uint32), np.array([3, 2])).tolist()
    [3, 4, 9, 2, 7]
    """
    starts = np.cumsum(counts) - counts
    # One running sum over all runs: what a run sums up to is taken away where the next one begins.
    word = differences.dtype
    differences[starts[1:]] -= np.add.reduceat(differences, starts, dtype=word)[:-1]
    numbers: Array = np.cumsum(differences, dtype=word, out=differences)
    # A sum that passed the end of its word would be below the one before it.
    rises = numbers[1:] > numbers[:-1]
    rises[starts[1:] - 1] = True
    if not rises.all():
        raise CorruptDataError("the numbers of a run do not ascend")
    return numbers


def unpack_ascending(buffer: Any, counts: Array, length: int) -> Array:
    """Return ids that were stored as `gaps`, in runs that ascend.

    Parameters
    ----------
    buffer : bytes-like
        As `pack_ints` made it.
    counts : int64 ndarray, shape (runs,)
        Ids of each run, at least 1.
    length : int
        What they all are below.

    Returns
    -------
    uint32 or uint64 ndarray, shape (counts.sum(),)

    Raises
    ------
    CorruptDataError
        If the buffer does not hold just so many, if ids of a run do not ascend, or one is out of bounds.

    Examples
    --------
    >>> from tensorlake_spark.layouts.coding.buffers import pack_ints
    >>> packed = pack_ints(gaps(np.array([3, 4, 9, 2, 7]), np.array([0, 3])))
    >>> unpack_ascending(packed, np.array([3, 2]), 10).tolist()
    [3, 4, 9, 2, 7]
    """
    total = int(counts.sum())
    check_ints([buffer], [total], least=int(total > len(counts)))
    differences = unpack_ints([buffer], [total])
    if length > 1 << 32:
        differences = differences.astype(np.uint64, copy=False)
    ids = ascending(differences, counts)
    if int(ids.max()) >= length:
        raise CorruptDataError("an element of a run lies outside of its box")
    return ids


def check_inside(ids: Array, length: int) -> None:
    """Raise CorruptDataError unless all of some int64 indices are at least 0 and below a length."""
    if int(ids.view(np.uint64).max()) >= length:
        raise CorruptDataError("an element of a run lies outside of its box")


def fold(numbers: Array) -> Array:
    """Return integers of either sign as non-negative ones, small as small: 0, -1, 1, -2 as 0, 1, 2, 3.

    Examples
    --------
    >>> unfold(fold(np.array([0, -1, 1, -2]))).tolist()
    [0, -1, 1, -2]
    """
    return np.asarray((numbers << 1) ^ (numbers >> 63))


def unfold(folded: Array) -> Array:
    """Return the int64 integers that `fold` made non-negative."""
    wide = folded.astype(np.uint64)
    sign: Array = -(wide & np.uint64(1)).view(np.int64)
    return np.asarray((wide >> np.uint64(1)).view(np.int64) ^ sign)


def join(parts: Sequence[bytes]) -> bytes:
    """Return some buffers as one: each with its length before it (uint32, little endian).

    Examples
    --------
    >>> [bytes(part) for part in split(join([b"ab", b""]), 2)]
    [b'ab', b'']
    """
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def split(buffer: Any, count: int) -> list[memoryview]:
    """Return the `count` buffers that `join` made one of.

    Raises
    ------
    CorruptDataError
        If they do not fill the buffer.
    """
    view = memoryview(buffer).cast("B")
    out, at = [], 0
    for _ in range(count):
        if at + 4 > len(view):
            raise CorruptDataError("the index of a row ends too early")
        (length,) = struct.unpack_from("<I", view, at)
        if at + 4 + length > len(view):
            raise CorruptDataError("the index of a row ends too early")
        out.append(view[at + 4 : at + 4 + length])
        at += 4 + length
    if at != len(view):
        raise CorruptDataError("the index of a row is longer than its parts")
    return out
