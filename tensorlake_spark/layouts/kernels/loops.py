"""Loops over the words of one dense block that numba compiles: from decompressed bytes to the result, and back.

A line is sliced before a loop goes over it: an index that might be negative keeps numba from using vectors.
Every loop runs without the interpreter lock. ``flat`` are the bytes of coded words, ``plain`` the same memory as
words. With ``shuffled``, byte k of all words comes before byte k + 1 of any. An array ``out`` is memory of the
result from its first element on, and ``places`` say where in it a line begins, so that lines may lie apart.

FORMAT.md says what the steps do. Their other bodies, in NumPy, are the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.layouts.kernels.packing import MORE, unpack_line
from tensorlake_spark.layouts.kernels.steps import BAND, GROUP
from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]


@compiled_loop
def _load(flat: Array, plain: Array, shuffled: bool, zigzag: bool, at: int, row: Array) -> None:
    """Put the coded words from number `at` on into a row, zigzag undone."""
    count = plain.size
    if shuffled:
        lowest = flat[at : at + row.size]
        for k in range(row.size):
            row[k] = lowest[k]
        for byte in range(1, row.itemsize):
            start, shift = byte * count + at, row.dtype.type(8 * byte)
            some = flat[start : start + row.size]
            for k in range(row.size):
                row[k] |= row.dtype.type(some[k]) << shift
    else:
        words = plain[at : at + row.size]
        for k in range(row.size):
            row[k] = words[k]
    if zigzag:
        _unfold(row)


@compiled_loop
def _unfold(row: Array) -> None:
    """Undo zigzag."""
    one, zero = row.dtype.type(1), row.dtype.type(0)
    for k in range(row.size):
        row[k] = (row[k] >> one) ^ (zero - (row[k] & one))


@compiled_loop
def _sum(row: Array) -> None:
    total = row.dtype.type(0)
    for k in range(row.size):
        total = row.dtype.type(total + row[k])
        row[k] = total


@compiled_loop
def _turn(row: Array) -> None:
    """Turn the order of integers into that of floats, and back: below zero all bits but the sign."""
    one, zero, top = row.dtype.type(1), row.dtype.type(0), row.dtype.type(8 * row.itemsize - 1)
    for k in range(row.size):
        # numba computes in 64 bits: the mask is cut to a word before it is moved.
        row[k] ^= row.dtype.type(zero - (row[k] >> top)) >> one


@compiled_loop
def put_plain(flat: Array, plain: Array, shuffled: bool, zigzag: bool, out: Array) -> None:
    """Undo shuffle and zigzag."""
    step = 4096
    for at in range(0, out.size, step):
        _load(flat, plain, shuffled, zigzag, at, out[at : at + step])


@compiled_loop
def put_lines(
    flat: Array, plain: Array, shuffled: bool, zigzag: bool, columns: int,
    lines: Array, stop: int, out: Array, places: Array,
) -> None:  # fmt: skip
    """Undo delta(-1) for some lines, each to `stop`."""
    for n in range(lines.size):
        row = out[places[n] : places[n] + stop]
        _load(flat, plain, shuffled, zigzag, lines[n] * columns, row)
        _sum(row)


@compiled_loop
def put_rows(
    flat: Array, plain: Array, shuffled: bool, zigzag: bool, others: int, columns: int,
    wanted: Array, first: int, last: int, stop: int, out: Array, places: Array, step: int,
) -> None:  # fmt: skip
    """Undo delta(-2) for the rows first:last of some lines, each to `stop`; `first` begins a band."""
    is_plain = not shuffled and not zigzag
    for n in range(wanted.size):
        for r in range(first, last):
            begin = places[n] + (r - first) * step
            row = out[begin : begin + stop]
            at = (r * others + wanted[n]) * columns
            if is_plain and r % BAND:
                before, words = out[begin - step : begin - step + stop], plain[at : at + stop]
                for k in range(stop):
                    row[k] = words[k] + before[k]
                continue
            _load(flat, plain, shuffled, zigzag, at, row)
            if r % BAND == 0:
                _sum(row)
            else:
                before = out[begin - step : begin - step + stop]
                for k in range(stop):
                    row[k] += before[k]


@compiled_loop
def put_lorenzo(
    flat: Array, plain: Array, shuffled: bool, zigzag: bool, ordered: bool,
    rows: int, columns: int, planes: int, lines: int, stop: int, out: Array, step: int, leap: int,
) -> None:  # fmt: skip
    """Undo lorenzo from the corner of a block on: so many planes of so many lines, each to `stop`.

    Lines of the result are `step` words apart, and planes `leap`.
    """
    for i in range(planes):
        for j in range(lines):
            begin = i * leap + j * step
            row = out[begin : begin + stop]
            _load(flat, plain, shuffled, zigzag, (i * rows + j) * columns, row)
            _sum(row)
            if i and j:
                above = out[begin - step : begin - step + stop]
                behind = out[begin - leap : begin - leap + stop]
                corner = out[begin - leap - step : begin - leap - step + stop]
                for k in range(stop):
                    row[k] += above[k] + behind[k] - corner[k]
            elif i or j:
                less = step if j else leap
                near = out[begin - less : begin - less + stop]
                for k in range(stop):
                    row[k] += near[k]
        if ordered and i:
            for j in range(lines):
                _turn(out[(i - 1) * leap + j * step : (i - 1) * leap + j * step + stop])
    if ordered:
        for j in range(lines):
            begin = (planes - 1) * leap + j * step
            _turn(out[begin : begin + stop])


@compiled_loop
def put_float_lorenzo(
    flat: Array, plain: Array, shuffled: bool, zigzag: bool,
    rows: int, columns: int, planes: int, lines: int, stop: int,
    out: Array, values: Array, guess: Array, guessed: Array, step: int, leap: int,
) -> None:  # fmt: skip
    """Undo lorenzo(float) as `put_lorenzo` does.

    `values` are the memory of `out` as floats, and `guessed` that of `guess` as words.
    """
    for i in range(planes):
        for j in range(lines):
            begin = i * leap + j * step
            row = out[begin : begin + stop]
            _load(flat, plain, shuffled, zigzag, (i * rows + j) * columns, row)
            _sum(row)
            _add_guess(i, j, begin, stop, out, values, guess, guessed, step, leap)


@compiled_loop
def put_packed_floats(
    data: Array, tail: Array, widths: Array, zigzag: bool, line: Array,
    rows: int, columns: int, planes: int, lines: int, stop: int,
    out: Array, values: Array, guess: Array, guessed: Array, step: int, leap: int,
) -> None:  # fmt: skip
    """Do `put_float_lorenzo` for packed words, line by line, while a line is in the cache; see `packing.unpack`.

    `line` has room for the beginning of a line. Its last words are the `stop` that go to the result: no prediction
    needs those before them.
    """
    place = (0, np.uint64(0))
    before = line.size - stop
    for i in range(planes):
        for j in range(lines):
            begin = i * leap + j * step
            row = out[begin : begin + stop]
            words = line if before else row
            place = unpack_line(data, tail, widths, place, (i * rows + j) * columns, words)
            if zigzag:
                _unfold(words)
            _sum(words)
            if before:
                row[:] = line[before:]
            _add_guess(i, j, begin, stop, out, values, guess, guessed, step, leap)


@compiled_loop
def put_packed_blocks(
    held: Array, begins: Array, sizes: Array, zigzag: bool, groups: int, rows: int, columns: int,
    starts: Array, stops: Array, places: Array, out: Array, values: Array, step: int, leap: int,
    scratch: Array, scratch_values: Array, line: Array, guess: Array, guessed: Array, tail: Array,
) -> int:  # fmt: skip
    """Do `put_packed_floats` for a part of each of some blocks; return which payload is damaged, -1 if none is.

    Payload `n` lies in `held` from `begins[n]` on. The part is `starts[n]` to `stops[n]`, counted in planes, lines and
    words, and goes to `places[n]`. Where it does not begin at the first line, all before it is put into `scratch`.
    `line`, `guess` and `tail` have room for a whole line of the block.
    """
    for n in range(begins.size):
        payload = held[begins[n] : begins[n] + sizes[n]]
        if payload.size < groups:
            return n
        widths, data = payload[:groups], payload[groups:]
        most, bits = 0, 0
        for g in range(groups):
            most = max(most, np.int64(widths[g]))
            bits += np.int64(widths[g])
        if most > 8 * out.itemsize or bits * GROUP // 8 != data.size:
            return n
        planes, lines, stop = stops[n, 0], stops[n, 1], stops[n, 2] - starts[n, 2]
        words = line[: stops[n, 2]]
        ending = tail[: words.size * words.itemsize + MORE + 16]
        rest = data[max(0, data.size - words.size * words.itemsize - MORE) :]
        ending[: rest.size] = rest
        ending[rest.size :] = 0
        above, before = starts[n, 0], starts[n, 1]
        if above == 0 and before == 0:
            put_packed_floats(
                data, ending, widths, zigzag, words, rows, columns, planes, lines, stop,
                out[places[n] :], values[places[n] :], guess, guessed, step, leap,
            )  # fmt: skip
            continue
        put_packed_floats(
            data, ending, widths, zigzag, words, rows, columns, planes, lines, stop,
            scratch, scratch_values, guess, guessed, stop, stop * lines,
        )  # fmt: skip
        for i in range(above, planes):
            for j in range(before, lines):
                begin = places[n] + (i - above) * leap + (j - before) * step
                at = (i * lines + j) * stop
                out[begin : begin + stop] = scratch[at : at + stop]
    return -1


@compiled_loop
def _add_guess(
    i: int, j: int, begin: int, stop: int,
    out: Array, values: Array, guess: Array, guessed: Array, step: int, leap: int,
) -> None:  # fmt: skip
    """Add what neighbours of line `j` of plane `i` predict."""
    row = out[begin : begin + stop]
    if i and j:
        above = values[begin - step : begin - step + stop]
        behind = values[begin - leap : begin - leap + stop]
        corner = values[begin - leap - step : begin - leap - step + stop]
        for k in range(stop):
            guess[k] = (behind[k] - corner[k]) + above[k]
        for k in range(stop):
            row[k] += guessed[k]
    elif i or j:
        less = step if j else leap
        near = out[begin - less : begin - less + stop]
        for k in range(stop):
            row[k] += near[k]


@compiled_loop
def lie_between(words: Array, low: Any, high: Any) -> bool:
    """Return whether all magnitudes of floats, as words, are zero or in a range, both ends included."""
    one = words.dtype.type(1)
    greatest, least, zero = words.dtype.type(0), words.dtype.type(high), words.dtype.type(0)
    for k in range(words.size):
        size = words.dtype.type(words[k] << one) >> one
        greatest = max(greatest, size)
        least = min(least, words.dtype.type(high) if size == zero else size)
    return bool(greatest <= high and least >= low)


@compiled_loop
def _store(row: Array, zigzag: bool, shuffled: bool, at: int, flat: Array, plain: Array) -> None:
    """Put a row, which is spent by it, to the coded words from number `at` on."""
    if zigzag:
        one, zero, top = row.dtype.type(1), row.dtype.type(0), row.dtype.type(8 * row.itemsize - 1)
        for k in range(row.size):
            row[k] = (row[k] << one) ^ (zero - (row[k] >> top))
    if shuffled:
        count = plain.size
        for byte in range(row.itemsize):
            start, shift = byte * count + at, row.dtype.type(8 * byte)
            some = flat[start : start + row.size]
            for k in range(row.size):
                some[k] = np.uint8(row[k] >> shift)
    else:
        words = plain[at : at + row.size]
        for k in range(row.size):
            words[k] = row[k]


@compiled_loop
def _differ(row: Array) -> None:
    for k in range(row.size - 1, 0, -1):
        row[k] -= row[k - 1]


@compiled_loop
def take_plain(words: Array, zigzag: bool, shuffled: bool, flat: Array, plain: Array) -> None:
    """Do zigzag and shuffle."""
    step = 4096
    row = np.empty(step, words.dtype)
    for at in range(0, words.size, step):
        part = words[at : at + step]
        row[: part.size] = part
        _store(row[: part.size], zigzag, shuffled, at, flat, plain)


@compiled_loop
def take_lines(words: Array, zigzag: bool, shuffled: bool, flat: Array, plain: Array) -> None:
    """Do delta(-1) for words of shape (lines, columns)."""
    lines, columns = words.shape
    row = np.empty(columns, words.dtype)
    for n in range(lines):
        row[:] = words[n]
        _differ(row)
        _store(row, zigzag, shuffled, n * columns, flat, plain)


@compiled_loop
def take_rows(words: Array, zigzag: bool, shuffled: bool, flat: Array, plain: Array) -> None:
    """Do delta(-2) for words of shape (others, rows, columns)."""
    others, rows, columns = words.shape
    row = np.empty(columns, words.dtype)
    for r in range(rows):
        for o in range(others):
            row[:] = words[o, r]
            if r % BAND == 0:
                _differ(row)
            else:
                for k in range(columns):
                    row[k] -= words[o, r - 1, k]
            _store(row, zigzag, shuffled, (r * others + o) * columns, flat, plain)


@compiled_loop
def take_lorenzo(
    words: Array, ordered: bool, zigzag: bool, shuffled: bool, flat: Array, plain: Array
) -> None:
    """Do lorenzo for words of shape (planes, rows, columns)."""
    planes, rows, columns = words.shape
    turned = np.empty((2, rows, columns), words.dtype)
    row = np.empty(columns, words.dtype)
    for i in range(planes):
        for j in range(rows):
            here = turned[i % 2, j]
            here[:] = words[i, j]
            if ordered:
                _turn(here)
            above, behind, corner = (
                turned[i % 2, j - 1],
                turned[1 - i % 2, j],
                turned[1 - i % 2, j - 1],
            )
            if i and j:
                for k in range(columns):
                    row[k] = here[k] - above[k] - behind[k] + corner[k]
            elif i or j:
                near = above if j else behind
                for k in range(columns):
                    row[k] = here[k] - near[k]
            else:
                row[:] = here
            _differ(row)
            _store(row, zigzag, shuffled, (i * rows + j) * columns, flat, plain)


@compiled_loop
def take_float_lorenzo(
    words: Array, values: Array, guess: Array, guessed: Array, zigzag: bool, shuffled: bool, flat: Array, plain: Array
) -> None:  # fmt: skip
    """Do lorenzo(float) for words of shape (planes, rows, columns), which are `values` as floats."""
    planes, rows, columns = words.shape
    row = np.empty(columns, words.dtype)
    for i in range(planes):
        for j in range(rows):
            here = words[i, j]
            if i and j:
                above, behind, corner = values[i, j - 1], values[i - 1, j], values[i - 1, j - 1]
                for k in range(columns):
                    guess[k] = (behind[k] - corner[k]) + above[k]
                for k in range(columns):
                    row[k] = here[k] - guessed[k]
            elif i or j:
                near = words[i, j - 1] if j else words[i - 1, j]
                for k in range(columns):
                    row[k] = here[k] - near[k]
            else:
                row[:] = here
            _differ(row)
            _store(row, zigzag, shuffled, (i * rows + j) * columns, flat, plain)
