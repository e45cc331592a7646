"""Loops over words of few bits that numba compiles: bins with the bits that follow them, and nibbles.

Every loop runs without the interpreter lock. Their other bodies, in NumPy, are the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]


def warm(loop: str, itemsize: int) -> None:
    """Have a loop compiled, or loaded from numba's cache, for words of so many bytes.

    Parameters
    ----------
    loop : {"put_bins", "pack", "join"}
        Which one.
    itemsize : int
        Bytes of a word; of 8 for ``pack``.
    """
    out = np.zeros(2, f"u{itemsize}")
    bits, widths = np.zeros(2, np.uint64), np.zeros(256, np.uint8)
    if loop == "put_bins":
        bins = np.zeros(2, np.uint8)
        count_bits(bins, widths)
        put_bins(bins, widths, np.zeros(256, out.dtype), bits, out)
    elif loop == "pack":
        pack(out, np.ones(2, np.uint64), bits)
    else:
        join(np.zeros((2 * itemsize, 1), np.uint8), out)


@compiled_loop
def count_bits(bins: Array, width_of: Array) -> Any:
    """Return how many bits follow some bins."""
    total = np.int64(0)
    for k in range(bins.size):
        total += np.int64(width_of[bins[k]])
    return total


@compiled_loop
def put_bins(bins: Array, width_of: Array, begin_of: Array, held: Array, out: Array) -> None:
    """Write the words of some bins.

    Parameters
    ----------
    bins : uint8 array
        The bin of each word.
    width_of, begin_of : uint8 array, array of words, both of length 256
        By bin: how many bits follow, at most 63, and where it begins.
    held : uint64 array
        The bits, and a word of zeros at least behind the last one that has some.
    out : array of words
        Where they go.
    """
    one, six, last = np.uint64(1), np.uint64(6), np.uint64(63)
    at = np.uint64(0)
    for k in range(out.size):
        width = np.uint64(width_of[bins[k]])
        place, offset = at >> six, at & last
        number = (held[place] >> offset) | ((held[place + one] << one) << (last - offset))
        out[k] = begin_of[bins[k]] + out.dtype.type(number & ((one << width) - one))
        at += width


@compiled_loop
def pack(numbers: Array, widths: Array, out: Array) -> None:
    """Add the bits of numbers, so many of each (at most 64), to zeros, one number after the other.

    Parameters
    ----------
    numbers, widths : uint64 arrays
        No number has more bits than its width.
    out : uint64 array
        Has room for all bits, and one word more.
    """
    one, six, last = np.uint64(1), np.uint64(6), np.uint64(63)
    at = np.uint64(0)
    for k in range(numbers.size):
        place, offset = at >> six, at & last
        out[place] |= numbers[k] << offset
        out[place + one] |= (numbers[k] >> one) >> (last - offset)
        at += widths[k]


@compiled_loop
def join(parts: Array, out: Array) -> None:
    """Write words from their nibbles.

    Parameters
    ----------
    parts : uint8 array, shape (2 * bytes of a word, (words + 1) // 2)
        For each byte of a word the lower halves, then the upper ones, two words to a byte.
    out : array of words
        Where they go.
    """
    pairs = out.size // 2
    four, low, high = np.uint8(4), np.uint8(15), np.uint8(240)
    for byte in range(out.itemsize):
        lower, upper, shift = parts[2 * byte], parts[2 * byte + 1], out.dtype.type(8 * byte)
        for k in range(pairs):
            first = (lower[k] & low) | np.uint8((upper[k] & low) << four)
            second = (lower[k] >> four) | (upper[k] & high)
            if byte:
                out[2 * k] |= out.dtype.type(first) << shift
                out[2 * k + 1] |= out.dtype.type(second) << shift
            else:
                out[2 * k] = first
                out[2 * k + 1] = second
        if out.size % 2:
            first = (lower[pairs] & low) | np.uint8((upper[pairs] & low) << four)
            before = out[2 * pairs] if byte else out.dtype.type(0)
            out[2 * pairs] = before | (out.dtype.type(first) << shift)
