"""Loops that numba compiles to resize images of uint8: the same numbers as Pillow gives, one axis at a time.

Pillow's rules: weights of a triangle around the middle of each new pixel, as whole numbers of 22 bits, and a sum that
is rounded after each axis. The edges of the box are float32. Every loop runs without the interpreter lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]

BITS = 22
_SHIFT, _HALF = np.uint32(BITS), np.uint32(1 << (BITS - 1))


@compiled_loop
def weights(length: int, low: float, high: float, count: int) -> tuple[Array, Array, Array]:
    """Return which old pixels make each new one: the first, how many, and their weights.

    Parameters
    ----------
    length : int
        Old pixels of an axis.
    low, high : float
        The part of them that is wanted.
    count : int
        New pixels.
    """
    begin = np.float64(np.float32(low))
    step = np.float64(np.float32(high) - np.float32(low)) / count
    reach = max(step, 1.0)
    most = int(np.ceil(reach)) * 2 + 1
    inverse = 1.0 / reach
    firsts, counts = np.empty(count, np.uint64), np.empty(count, np.uint64)
    words, parts = np.zeros((count, most), np.uint32), np.empty(most, np.float64)
    for i in range(count):
        center = begin + (i + 0.5) * step
        first = max(0, int(center - reach + 0.5))
        last = min(length, int(center + reach + 0.5))
        total = 0.0
        for k in range(last - first):
            part = 1.0 - abs((k + first - center + 0.5) * inverse)
            parts[k] = max(part, 0.0)
            total += parts[k]
        skipped, used = 0, 0
        for k in range(last - first):
            word = np.uint32(int(0.5 + parts[k] / total * (1 << BITS)))
            if word or used:
                words[i, used] = word
                used += 1
            else:
                skipped += 1
        firsts[i], counts[i] = first + skipped, used
    return firsts, counts, words


@compiled_loop
def _across(
    row: Array, firsts: Array, counts: Array, words: Array, channels: int, out: Array
) -> None:
    """Resize one row of pixels."""
    # Numbers without a sign: numba looks for negative indices otherwise.
    one, two, step = np.uint64(1), np.uint64(2), np.uint64(channels)
    place = np.uint64(0)
    for i in range(firsts.size):
        start, count, own = firsts[i] * step, counts[i], words[i]
        if channels == 3:
            a, b, c = _HALF, _HALF, _HALF
            for k in range(count):
                word = own[k]
                a += np.uint32(row[start]) * word
                b += np.uint32(row[start + one]) * word
                c += np.uint32(row[start + two]) * word
                start += step
            out[place], out[place + one], out[place + two] = a >> _SHIFT, b >> _SHIFT, c >> _SHIFT
        else:
            a = _HALF
            for k in range(count):
                a += np.uint32(row[start]) * own[k]
                start += step
            out[place] = a >> _SHIFT
        place += step


@compiled_loop
def _down(rows: Array, first: int, words: Array, count: int, sums: Array, out: Array) -> None:
    """Make one row of several."""
    sums[:] = _HALF
    for k in range(count):
        row, word = rows[first + k], words[k]
        for i in range(sums.size):
            sums[i] += np.uint32(row[i]) * word
    for i in range(sums.size):
        out[i] = sums[i] >> _SHIFT


@compiled_loop
def resize(
    image: Array, first: int, start: int, rows: int, columns: int,
    top: float, left: float, bottom: float, right: float, flip: bool, out: Array,
) -> None:  # fmt: skip
    """Resize a part of an image.

    Parameters
    ----------
    image : uint8 ndarray, shape (height, width, channels)
        C-contiguous, with 1 or 3 channels.
    first, start, rows, columns : int
        The part of it that is looked at.
    top, left, bottom, right : float
        The box that is resized, from that part's corner on.
    flip : bool
        Whether left and right change places.
    out : uint8 ndarray, shape (height, width, channels)
        C-contiguous: the result.
    """
    channels = image.shape[2]
    height, width = out.shape[0], out.shape[1]
    lines, new = image.reshape(image.shape[0], -1), out.reshape(height, -1)
    some = lines[first : first + rows, start * channels : (start + columns) * channels]
    xs, x_counts, x_words = weights(columns, left, right, width)
    ys, y_counts, y_words = weights(rows, top, bottom, height)
    if flip:
        xs, x_counts, x_words = xs[::-1].copy(), x_counts[::-1].copy(), x_words[::-1].copy()
    if bottom - top > height:
        sums = np.empty(columns * channels, np.uint32)
        line = np.empty(columns * channels, np.uint8)
        for y in range(height):
            _down(some, int(ys[y]), y_words[y], int(y_counts[y]), sums, line)
            _across(line, xs, x_counts, x_words, channels, new[y])
        return
    low, high = int(ys[0]), int(ys[height - 1] + y_counts[height - 1])
    sums = np.empty(width * channels, np.uint32)
    between = np.empty((high - low, width * channels), np.uint8)
    for y in range(low, high):
        _across(some[y], xs, x_counts, x_words, channels, between[y - low])
    for y in range(height):
        _down(between, int(ys[y]) - low, y_words[y], int(y_counts[y]), sums, new[y])


def warm(loop: str) -> None:
    """Have the loop `resize` compiled, or loaded from numba's cache."""
    image = np.zeros((4, 4, 3), np.uint8)
    image.flags.writeable = False
    resize(image, 0, 0, 4, 4, 0.0, 0.0, 4.0, 4.0, False, np.empty((2, 2, 3), np.uint8))
