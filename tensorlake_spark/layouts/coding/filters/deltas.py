"""The steps ``delta(-1)`` and ``delta(-2)``: differences along one axis, modulo the word, and their sums."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np

from tensorlake_spark.layouts.kernels.steps import BAND

Array = np.ndarray[Any, Any]

_FEW = 1 << 14  # bytes that are sooner added one by one

# Undoing a delta is many additions of microseconds, and NumPy lets go of the interpreter lock in each:
# two threads that do so at once spend their time handing the lock over (measured: 13.7 ms instead of
# 7.9 ms for forty chunks). One at a time is enough, because the other thread decompresses meanwhile.
ONE_AT_A_TIME = threading.Lock()


def subtract(block: Array, axis: int) -> Array:
    """Return the differences of a block of words; with axis -2 that axis comes first in what is returned.

    Examples
    --------
    >>> subtract(np.array([[1, 2], [4, 8]], np.uint8), -1).tolist()
    [[1, 1], [4, 4]]
    >>> subtract(np.array([[1, 2], [4, 8]], np.uint8), -2).tolist()
    [[1, 1], [3, 6]]
    """
    if axis == -2:
        block = np.moveaxis(block, -2, 0)
        coded = np.empty(block.shape, block.dtype)
        np.subtract(block[1:], block[:-1], out=coded[1:])
        starts = block[::BAND]
        coded[::BAND, ..., 0] = starts[..., 0]
        np.subtract(starts[..., 1:], starts[..., :-1], out=coded[::BAND, ..., 1:])
        return coded
    coded = np.empty_like(block)
    coded[..., 0] = block[..., 0]
    np.subtract(block[..., 1:], block[..., :-1], out=coded[..., 1:])
    return coded


def add(coded: Array, axis: int, src: tuple[slice, ...], out: Array) -> None:
    """Undo a delta along `axis` for the part `src` (steps of one), writing words into `out`."""
    if axis == -1:
        until = (*src[:-1], slice(0, src[-1].stop))
        part = coded[until]
        if src[-1].start == 0:
            np.add.accumulate(part, axis=-1, dtype=coded.dtype, out=out)
        else:
            out[...] = np.add.accumulate(part, axis=-1, dtype=coded.dtype)[..., src[-1].start :]
        return
    keep = (slice(None), *src[:-2])
    part = coded[keep]
    with ONE_AT_A_TIME:
        rows = add_rows(part, src[-2].start, src[-2].stop, src[-1])
    out[...] = rows.transpose(*range(1, rows.ndim - 1), 0, rows.ndim - 1)


def add_rows(coded: Array, first: int, stop: int, columns: slice) -> Array:
    """Undo ``delta(-2)`` in place for the rows ``first:stop`` and some columns, and return them.

    In place, because the buffer is contiguous and still in the cache: rows of the result may lie apart.
    """
    inside = coded[..., columns]
    rows = inside[first:stop]
    band = first - first % BAND
    inside[band:stop:BAND] = _band_starts(coded[band:stop:BAND], columns)
    if first > band:  # begins inside of a band: go through that one row by row
        end = min(stop, band + BAND)
        np.add.reduce(inside[band : first + 1], axis=0, dtype=coded.dtype, out=inside[first])
        for before, row in pairwise(inside[first:end]):
            np.add(row, before, out=row)
        first = end
    for j in range(1, min(BAND, stop - first)):
        here = inside[first + j : stop : BAND]
        np.add(here, inside[first + j - 1 : stop : BAND][: len(here)], out=here)
    return rows


def _band_starts(coded: Array, columns: slice) -> Array:
    """Return the first rows of bands, for some columns: a running sum along the last axis.

    In doubling steps (Hillis and Steele): a dozen vector additions take half the time of adding many bytes
    one by one.
    """
    sums: Array = coded[..., : columns.stop].copy()
    if sums.itemsize > 1 or sums.size <= _FEW:
        np.add.accumulate(sums, axis=-1, dtype=sums.dtype, out=sums)
        return np.asarray(sums[..., columns.start :])
    step = 1
    while step < sums.shape[-1]:
        sums[..., step:] += sums[..., :-step]  # NumPy copies where operands overlap
        step *= 2
    return np.asarray(sums[..., columns.start :])
