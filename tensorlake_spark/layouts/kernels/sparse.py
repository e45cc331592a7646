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
    planes : list of uint8 ndarray
        For each row the bytes of the differences, the lowest of all first.
    widths, counts : sequence of int
        Byte planes and elements of each row.
    bits, shifts : sequence of int
        Of each axis: bits of a coordinate in an offset, and those below it.
    lo, hi : int64 ndarray, shape (rows, ndim)
        The rows' boxes.
    """

    planes: list[Array]
    widths: Sequence[int]
    counts: Sequence[int]
    bits: Sequence[int]
    shifts: Sequence[int]
    lo: Array
    hi: Array


def warm(loop: str) -> None:
    """Have a loop compiled, or loaded from numba's cache."""
    if loop == "unravel":
        unravel(np.array([3]), (2, 2), np.empty((2, 1), np.int64), 0)
    else:
        box = np.zeros((1, 1), np.int64)
        packed = Packed([np.zeros(1, np.uint8)], [1], [1], [1], [0], box, box + 1)
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
    # The most selective first.
    tested = tested[np.argsort((stops - starts)[tested] / hi.max(axis=0)[tested], kind="stable")]
    total = int(counts.sum())
    keys, kept = np.empty(total, np.int64), np.empty(len(counts), np.int64)
    take = np.empty(total if len(tested) else 0, np.int64)
    is_long = sum(bits) > 31 or max(packed.widths) > 4
    wrong = loops.pick(
        np.concatenate(packed.planes), begins, widths, counts,
        np.uint64((1 << (64 if is_long else 32)) - 1), sum(bits),
        np.array(packed.shifts, np.int64), np.array([(1 << n) - 1 for n in bits], np.uint64),
        np.ascontiguousarray(lo), hi - lo,
        starts, stops, steps, np.array(strides, np.int64), tested, keys, take, kept,
    )  # fmt: skip
    if wrong:
        raise CorruptDataError(_SAID[next(bit for bit in _SAID if wrong & bit)])
    found = int(kept.sum())
    return keys[:found], take[:found] if len(tested) else None, kept


_SAID = {
    loops.DESCENDS: "the numbers of a run do not ascend",
    loops.LEAVES: "an offset leaves its block",
    loops.OUTSIDE: "an element of a block lies outside of its box",
}


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
