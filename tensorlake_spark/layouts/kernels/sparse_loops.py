"""Loops over the elements of sparse rows that numba compiles: offsets to keys, keys to coordinates.

Every loop runs without the interpreter lock. Their other bodies, in NumPy, are the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]

DESCENDS, LEAVES, OUTSIDE = 1, 2, 4
"""What is wrong with offsets: they do not ascend, are none of their block, or lie outside of their box."""

SLICED = 8
"""So many keys of one plane are worth vectors."""


@compiled_loop
def _offsets(flat: Array, begin: int, width: int, word: int, out: Array) -> int:
    """Undo byte planes and differences of one row; return what is wrong."""
    count = out.size
    for k in range(count):
        out[k] = flat[begin + k] if width else 0
    for byte in range(1, width):
        plane, shift = flat[begin + byte * count : begin + (byte + 1) * count], np.uint64(8 * byte)
        for k in range(count):
            out[k] |= np.uint64(plane[k]) << shift
    wrong, mask, before = 0, np.uint64(word), out[0] & np.uint64(word)
    out[0] = before
    for k in range(1, count):
        number = (before + out[k]) & mask
        wrong |= DESCENDS * (number <= before)
        out[k] = before = number
    return wrong


@compiled_loop
def pick(
    flat: Array, begins: Array, widths: Array, counts: Array, word: int, total: int,
    shifts: Array, masks: Array, lo: Array, sides: Array,
    starts: Array, stops: Array, steps: Array, strides: Array, searched: int, above: int, tested: Array,
    keys: Array, take: Array, kept: Array,
) -> int:  # fmt: skip
    """Write the keys of the elements that ranges pick, their places among all, and how many each row has.

    Parameters
    ----------
    flat, begins, widths, counts
        Bytes of all rows; where each row's begin, how many byte planes it has, how many elements.
    word, total
        The greatest number of the word that offsets are summed up in; bits of an offset.
    shifts, masks : int64, uint64 arrays, shape (axes,)
        Where in an offset a coordinate is.
    lo, sides : int64 arrays, shape (rows, axes)
        Lower corners and lengths of the rows' boxes.
    starts, stops, steps, strides : int64 arrays, shape (axes,)
        The ranges, and what a coordinate counts in a key.
    searched, above : int
        An axis on which a box may pass its range, and how many bits of an offset are above its own: elements in the
        range lie side by side where these bits are the same. -1 for no axis.
    tested : int64 array
        The other axes on which a box may pass its range.

    Returns
    -------
    int
        What is wrong, together.
    """
    longest = 0
    for r in range(counts.size):
        longest = max(longest, counts[r])
    offsets, keep = np.empty(longest, np.uint64), np.empty(longest, np.bool_)
    wrong = found = first = 0
    for r in range(counts.size):
        count = counts[r]
        some = offsets[:count]
        wrong |= _offsets(flat, begins[r], widths[r], word, some)
        wrong |= LEAVES * ((some[count - 1] >> np.uint64(total)) > 0)
        before = found
        if searched >= 0:
            count = _search(
                some, shifts[searched], masks[searched], above, starts[searched] - lo[r, searched],
                stops[searched] - lo[r, searched], first, take[found:],
            )  # fmt: skip
            some = some[:count]
        if tested.size:
            keep[:] = True
            for axis in tested:
                _test(
                    some, shifts[axis], masks[axis], starts[axis] - lo[r, axis],
                    stops[axis] - starts[axis], steps[axis], keep,
                )  # fmt: skip
            # Without a branch: an element that goes is overwritten by the next one.
            for k in range(count):
                take[found] = take[before + k] if searched >= 0 else first + k
                some[found - before] = some[k]
                found += keep[k]
            some = some[: found - before]
        else:
            found += count
        first += counts[r]
        kept[r] = some.size
        row = keys[found - some.size : found]
        row[:] = 0
        for axis in range(lo.shape[1]):
            base = lo[r, axis] - starts[axis]
            most = _add(
                some, shifts[axis], masks[axis], base, steps[axis], strides[axis], row
            )  # fmt: skip
            wrong |= OUTSIDE * (most >= sides[r, axis])
    return wrong


@compiled_loop
def _search(
    some: Array, shift: int, mask: int, above: int, start: int, stop: int, first: int, take: Array
) -> int:  # fmt: skip
    """Move the elements in a range on one axis to the front, and write their places; return how many they are."""
    bits, length = np.uint64(shift), np.uint64(mask) + np.uint64(1)
    low = min(np.uint64(max(start, 0)), length)
    high = min(np.uint64(max(stop, 0)), length)
    found = end = 0
    for head in range(1 << above):
        base = np.uint64(head) * length
        begin = _place(some, end, (base + low) << bits)
        end = _place(some, begin, (base + high) << bits)
        for k in range(begin, end):
            take[found] = first + k
            some[found] = some[k]
            found += 1
    return found


@compiled_loop
def _place(some: Array, begin: int, least: int) -> int:
    """Return the place, from a place on, of the first number that is not below another one."""
    low, high, wanted = begin, some.size, np.uint64(least)
    while low < high:
        middle = (low + high) >> 1
        if some[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_loop
def _test(
    some: Array, shift: int, mask: int, start: int, length: int, step: int, keep: Array
) -> None:
    """Let go what a range does not pick, whose start is counted from the row's box."""
    bits, field = np.uint64(shift), np.uint64(mask)
    for k in range(some.size):
        at = np.int64((some[k] >> bits) & field) - start
        keep[k] &= (at >= 0) & (at < length)
    if step > 1:
        for k in range(some.size):
            keep[k] &= (np.int64((some[k] >> bits) & field) - start) % step == 0


@compiled_loop
def _add(some: Array, shift: int, mask: int, base: int, step: int, stride: int, row: Array) -> Any:
    """Add what the coordinates on an axis count in keys; return the greatest of them, in the row's box."""
    bits, field, most = np.uint64(shift), np.uint64(mask), np.int64(-1)
    if step > 1:
        for k in range(some.size):
            at = np.int64((some[k] >> bits) & field)
            most = max(most, at)
            row[k] += (at + base) // step * stride
    else:
        for k in range(some.size):
            at = np.int64((some[k] >> bits) & field)
            most = max(most, at)
            row[k] += (at + base) * stride
    return most


@compiled_loop
def unravel(keys: Array, shape: Array, out: Array, first: int) -> None:
    """Write the coordinates of keys in C order from place `first` on; quick where they ascend.

    There are at least two axes, the last two with fewer than 2**52 cells. Keys of one plane of these two are taken
    together, without a branch, so that vectors do the work.
    """
    axes = shape.size
    lines, columns = out[axes - 2, first:], out[axes - 1, first:]
    length = shape[axes - 1]
    plane, inverse = shape[axes - 2] * length, 1.0 / length
    head = np.zeros(axes, np.int64)
    begin = -plane
    k = 0
    while k < keys.size:
        rest = keys[k] - begin
        if rest < 0 or rest >= plane:
            number = keys[k] // plane
            begin = number * plane
            rest = keys[k] - begin
            for axis in range(axes - 3, -1, -1):
                head[axis] = number % shape[axis]
                number //= shape[axis]
            if k + SLICED < keys.size and 0 <= keys[k + SLICED] - begin < plane:
                end = k + 1
                while end < keys.size and 0 <= keys[end] - begin < plane:
                    end += 1
                for axis in range(axes - 2):
                    out[axis, first + k : first + end] = head[axis]
                some, line, column = keys[k:end], lines[k:end], columns[k:end]
                for at in range(some.size):
                    line[at], column[at] = _divided(some[at] - begin, length, inverse)
                k = end
                continue
        for axis in range(axes - 2):
            out[axis, first + k] = head[axis]
        lines[k], columns[k] = _divided(rest, length, inverse)
        k += 1


@compiled_loop
def _divided(rest: int, length: int, inverse: float) -> Any:
    """Return the line in which a place of a plane lies, and the place in the line."""
    # The product is off by one at the most: a division takes several times as long.
    line = np.int64(np.float64(rest) * inverse)
    column = rest - line * length
    step = np.int64(column >= length) - np.int64(column < 0)
    return line + step, column - step * length


@compiled_loop
def divide(keys: Array, by: int, quotients: Array, rests: Array) -> None:
    """Write quotients, unless there is no place for them, and rests of keys that are below 2**52."""
    inverse = 1.0 / by
    if quotients.size:
        for k in range(keys.size):
            quotients[k], rests[k] = _divided(keys[k], by, inverse)
    else:
        for k in range(keys.size):
            _, rests[k] = _divided(keys[k], by, inverse)


@compiled_loop
def survey(keys: Array) -> Any:
    """Return the least and the greatest of some keys, and how many of them are below the one before."""
    least = most = keys[0]
    falls = 0
    for k in range(1, keys.size):
        least, most = min(least, keys[k]), max(most, keys[k])
        falls += keys[k] < keys[k - 1]
    return least, most, falls


@compiled_loop
def pack_places(keys: Array, least: int, bits: int) -> None:
    """Put the place of each key into its low bits, below what it is above the least."""
    for k in range(keys.size):
        keys[k] = ((keys[k] - least) << bits) | k


@compiled_loop
def unpack_places(keys: Array, least: int, bits: int, words: Array, out: Array) -> None:
    """Undo `pack_places`, and write the words from the places that the keys had."""
    mask = (1 << bits) - 1
    for k in range(keys.size):
        out[k] = words[keys[k] & mask]
        keys[k] = (keys[k] >> bits) + least
