"""Elements of sparse rows laid out for the compiled loops: offsets of blocks, keys, coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.kernels import sparse_loops as loops

Array = np.ndarray[Any, Any]


class Packed(NamedTuple):
    """Offsets of the elements of some rows as they are stored.

    Attributes
    ----------
    planes : uint8 ndarray
        Of each row after the other the bytes of the differences, the lowest of all first.
    widths, counts : sequence of int
        Byte planes and elements of each row.
    bits, shifts : sequence of int
        Of each axis: bits of a coordinate in an offset, and those below it.
    lo, hi : int64 ndarray, shape (rows, ndim)
        The rows' boxes.
    """

    planes: Array
    widths: Sequence[int]
    counts: Sequence[int]
    bits: Sequence[int]
    shifts: Sequence[int]
    lo: Array
    hi: Array


_EACH = 32
"""So many elements a row has for each place that is searched, or all of them are tested."""


def warm(loop: str, itemsize: int = 8) -> None:
    """Have a loop compiled, or loaded from numba's cache; ``sort`` for values of so many bytes."""
    if loop == "unravel":
        unravel(np.array([3]), (2, 2), np.empty((2, 1), np.int64), 0)
    elif loop == "divide":
        for integers in (np.int32, np.int64):
            divide(np.array([3]), 2, np.empty(1, integers), np.empty(1, integers))
    elif loop == "sort":
        sort(np.array([3, 2]), np.zeros(2, f"u{itemsize}"), 1)
    else:
        box = np.zeros((1, 1), np.int64)
        packed = Packed(np.zeros(1, np.uint8), [1], [1], [1], [0], box, box + 1)
        pick(packed, [(0, 1, 1)], [1])


def pick(
    packed: Packed, ranges: Sequence[tuple[int, int, int]], strides: Sequence[int]
) -> tuple[Array, Array | None, Array]:
    """Return what ranges pick of rows that store offsets.

    Parameters
    ----------
    packed : Packed
        At least one row.
    ranges : sequence of (int, int, int)
        For each axis the first index, the one after the last, and the step.
    strides : sequence of int
        What a step on each axis counts in a key.

    Returns
    -------
    keys : int64 ndarray
        Row by row.
    take : int64 ndarray or None
        Places of the elements among all of the rows; None for all.
    kept : int64 ndarray, shape (rows,)
        How many are of each row.

    Raises
    ------
    CorruptDataError
        If the offsets of a row do not ascend, or an element lies outside of its box.
    """
    lo, hi, bits = packed.lo, packed.hi, packed.bits
    counts, widths = np.array(packed.counts, np.int64), np.array(packed.widths, np.int64)
    begins = np.cumsum(counts * widths) - counts * widths
    starts, stops, steps = np.array(ranges, np.int64).reshape(-1, 3).T.copy()
    passes = (steps > 1) | (lo.min(axis=0) < starts) | (hi.max(axis=0) > stops)
    tested = np.flatnonzero(passes)
    total = int(counts.sum())
    above = sum(bits) - np.array(packed.shifts, np.int64) - np.array(bits, np.int64)
    reach = (total // (_EACH * len(counts))).bit_length() - 1
    near = tested[(steps[tested] == 1) & (above[tested] <= reach)]
    searched = int(near[np.argmin(above[near])]) if len(near) else -1
    tested = tested[tested != searched]
    # The most selective first.
    tested = tested[np.argsort((stops - starts)[tested] / hi.max(axis=0)[tested], kind="stable")]
    is_part = len(tested) > 0 or searched >= 0
    keys, kept = np.empty(total, np.int64), np.empty(len(counts), np.int64)
    take = np.empty(total if is_part else 0, np.int64)
    is_long = sum(bits) > 31 or max(packed.widths) > 4
    wrong = loops.pick(
        packed.planes, begins, widths, counts,
        np.uint64((1 << (64 if is_long else 32)) - 1), sum(bits),
        np.array(packed.shifts, np.int64), np.array([(1 << n) - 1 for n in bits], np.uint64),
        np.ascontiguousarray(lo), hi - lo,
        starts, stops, steps, np.array(strides, np.int64),
        searched, int(above[searched]), tested, keys, take, kept,
    )  # fmt: skip
    if wrong:
        raise CorruptDataError(_SAID[next(bit for bit in _SAID if wrong & bit)])
    found = int(kept.sum())
    return keys[:found], take[:found] if is_part else None, kept


_SAID = {
    loops.DESCENDS: "the numbers of a run do not ascend",
    loops.LEAVES: "an offset leaves its block",
    loops.OUTSIDE: "an element of a block lies outside of its box",
}


def sort(keys: Array, values: Array, long: int) -> tuple[Array, Array] | None:
    """Return keys in ascending order, with their values; stable.

    Parameters
    ----------
    keys : int64 ndarray
        Not negative, at least one; their memory is used.
    values : ndarray
        As many, of 1, 2, 4 or 8 bytes each.
    long : int
        Runs of so many keys, on average, are merged sooner than they are sorted.

    Returns
    -------
    keys, values : ndarray, or None
        None if keys and places do not fit into 63 bits.
    """
    least, most, falls = (int(number) for number in loops.survey(keys))
    if not falls:
        return keys, values
    bits = (len(keys) - 1).bit_length()
    if (most - least).bit_length() + bits > 63:
        return None
    loops.pack_places(keys, least, bits)
    keys.sort(kind="stable" if falls < len(keys) // long else None)
    words = values.view(f"u{values.itemsize}")
    out = np.empty_like(words)
    loops.unpack_places(keys, least, bits, words, out)
    return keys, out.view(values.dtype)


def unravel(keys: Array, shape: Sequence[int], out: Array, first: int) -> None:
    """Write the coordinates of int64 keys in C order, which best ascend.

    Parameters
    ----------
    keys : int64 ndarray
        Within the shape.
    shape : sequence of int
        At least two axes, the last two with fewer than 2**52 cells.
    out : int64 ndarray, shape (axes, n)
        Where the coordinates go, C-contiguous.
    first : int
        Where in it those of the first key go.
    """
    loops.unravel(keys, np.array(shape, np.int64), out, first)


def divide(keys: Array, by: int, quotients: Array, rests: Array) -> None:
    """Write the quotients and the rests of a division of int64 keys, of at least 0 and below 2**52.

    Parameters
    ----------
    keys : int64 ndarray, shape (n,)
        What is divided.
    by : int
        At least 1.
    quotients, rests : int32 or int64 ndarray, shape (n,)
        Where they go, both of one dtype; of quotients that nobody wants, an array without elements.

    Examples
    --------
    >>> quotients, rests = np.empty(2, np.int64), np.empty(2, np.int64)
    >>> divide(np.array([3, 17]), 5, quotients, rests)
    >>> quotients, rests
    (array([0, 3]), array([3, 2]))
    """
    known = np.ascontiguousarray(keys).view()
    known.flags.writeable = False
    loops.divide(known, by, quotients, rests)
