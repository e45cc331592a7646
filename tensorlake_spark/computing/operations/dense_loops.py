"""Loops that numba compiles, to reduce a dense block into a state in one pass; `accumulation` calls them.

An answer is a number of lines, each as long as `length`, at ``places`` in its flat state. The same lines of a flat
block begin at ``lines``, and what is reduced into them is ``steps`` further on. `add_runs` and its like have one
element of the answer for a line, and reduce the line itself. Every loop runs without the interpreter lock.

Their other bodies, in NumPy, are in `reduction_kernels` and `index_searches`, and are the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]

_PART = 2048
"""Elements of a line that are done at a time, so that their states stay in the cache."""

_LOOK = 64
"""Elements that are looked through at once."""


def warm(loop: str, char: str, states: str) -> None:
    """Have a loop compiled, or loaded from numba's cache, by a block of one element.

    Parameters
    ----------
    loop : str
        Its name.
    char, states : str
        ``dtype.char`` of the block, and of each array of the state.
    """
    one = np.zeros(1, np.int64)
    if loop == "variances":
        variances(np.zeros(1, char), np.zeros(1, states), 1, 1.0, False, np.zeros(1))
        return
    found = [np.zeros(1, of) for of in states]
    globals()[loop](np.zeros(1, char), one, one, 1, one, *found, *_EXTRA.get(loop, ()))


_EXTRA: dict[str, tuple[Any, ...]] = {"best": (0, True), "best_runs": (0, True)}


@compiled_loop
def _four(block: Array, begin: int, steps: Array, count: int) -> tuple[Array, Array, Array, Array]:
    """Return four rows: what is done to them together loads and stores their state once."""
    a, b, c, d = begin + steps[0], begin + steps[1], begin + steps[2], begin + steps[3]
    return block[a : a + count], block[b : b + count], block[c : c + count], block[d : d + count]


@compiled_loop
def add(block: Array, lines: Array, steps: Array, length: int, places: Array, sums: Array) -> None:
    """Add lines to sums."""
    fours = steps.size - steps.size % 4
    for n in range(lines.size):
        for at in range(0, length, _PART):
            count = min(_PART, length - at)
            total = sums[places[n] + at : places[n] + at + count]
            for r in range(0, fours, 4):
                a, b, c, d = _four(block, lines[n] + at, steps[r : r + 4], count)
                for k in range(count):
                    one, two = total.dtype.type(a[k]), total.dtype.type(b[k])
                    three, four = total.dtype.type(c[k]), total.dtype.type(d[k])
                    total[k] = total[k] + one + two + three + four
            for r in range(fours, steps.size):
                begin = lines[n] + steps[r] + at
                row = block[begin : begin + count]
                for k in range(count):
                    total[k] += total.dtype.type(row[k])


@compiled_loop
def add_squares(
    block: Array, lines: Array, steps: Array, length: int, places: Array, squares: Array
) -> None:
    """Add the squares of lines to sums of squares."""
    fours = steps.size - steps.size % 4
    for n in range(lines.size):
        for at in range(0, length, _PART):
            count = min(_PART, length - at)
            total = squares[places[n] + at : places[n] + at + count]
            for r in range(0, fours, 4):
                a, b, c, d = _four(block, lines[n] + at, steps[r : r + 4], count)
                for k in range(count):
                    one, two = total.dtype.type(a[k]), total.dtype.type(b[k])
                    three, four = total.dtype.type(c[k]), total.dtype.type(d[k])
                    total[k] = total[k] + one * one + two * two + three * three + four * four
            for r in range(fours, steps.size):
                begin = lines[n] + steps[r] + at
                row = block[begin : begin + count]
                for k in range(count):
                    value = total.dtype.type(row[k])
                    total[k] += value * value


@compiled_loop
def add_moments(
    block: Array, lines: Array, steps: Array, length: int, places: Array, sums: Array, squares: Array
) -> None:  # fmt: skip
    """Add lines to sums, and their squares to sums of squares."""
    fours = steps.size - steps.size % 4
    for n in range(lines.size):
        for at in range(0, length, _PART):
            count = min(_PART, length - at)
            total = sums[places[n] + at : places[n] + at + count]
            square = squares[places[n] + at : places[n] + at + count]
            for r in range(0, fours, 4):
                a, b, c, d = _four(block, lines[n] + at, steps[r : r + 4], count)
                for k in range(count):
                    one, two = total.dtype.type(a[k]), total.dtype.type(b[k])
                    three, four = total.dtype.type(c[k]), total.dtype.type(d[k])
                    total[k] = total[k] + one + two + three + four
                for k in range(count):
                    one, two = square.dtype.type(a[k]), square.dtype.type(b[k])
                    three, four = square.dtype.type(c[k]), square.dtype.type(d[k])
                    square[k] = square[k] + one * one + two * two + three * three + four * four
            for r in range(fours, steps.size):
                begin = lines[n] + steps[r] + at
                row = block[begin : begin + count]
                for k in range(count):
                    total[k] += total.dtype.type(row[k])
                for k in range(count):
                    value = square.dtype.type(row[k])
                    square[k] += value * value


@compiled_loop
def add_variance(
    block: Array, lines: Array, steps: Array, length: int, places: Array,
    counts: Array, means: Array, squares: Array,
) -> None:  # fmt: skip
    """Put lines into counts, means and sums of squares of what is apart from them, by Chan's update."""
    mean, square = np.empty(_PART), np.empty(_PART)
    many = float(steps.size)
    for n in range(lines.size):
        for at in range(0, length, _PART):
            count = min(_PART, length - at)
            mean[:count] = 0.0
            square[:count] = 0.0
            for r in range(steps.size):
                begin = lines[n] + steps[r] + at
                row = block[begin : begin + count]
                for k in range(count):
                    mean[k] += row[k]
            for k in range(count):
                mean[k] /= many
            for r in range(steps.size):
                begin = lines[n] + steps[r] + at
                row = block[begin : begin + count]
                for k in range(count):
                    apart = row[k] - mean[k]
                    square[k] += apart * apart
            first = places[n] + at
            old, middle, sums = (
                counts[first : first + count],
                means[first : first + count],
                squares[first : first + count],
            )
            for k in range(count):
                if old[k] == 0.0:
                    middle[k] = mean[k]
                    sums[k] = square[k]
                else:
                    apart = mean[k] - middle[k]
                    share = many / (old[k] + many)
                    sums[k] += square[k] + apart * apart * (old[k] * share)
                    middle[k] += apart * share
                old[k] += many


@compiled_loop
def best(
    block: Array, lines: Array, steps: Array, length: int, places: Array,
    values: Array, at_: Array, first: int, largest: bool,
) -> None:  # fmt: skip
    """Take the better elements of lines, and of equal ones those that come first. The first line is number `first`."""
    for n in range(lines.size):
        for at in range(0, length, _PART):
            count = min(_PART, length - at)
            value = values[places[n] + at : places[n] + at + count]
            place = at_[places[n] + at : places[n] + at + count]
            for r in range(steps.size):
                begin = lines[n] + steps[r] + at
                row = block[begin : begin + count]
                here = place.dtype.type(first + r)
                if largest:
                    for k in range(count):
                        new, old = row[k], value[k]
                        is_nan = new != new
                        take = (new > old) | (is_nan & (old == old))
                        equal = (new == old) | (is_nan & (old != old))
                        take |= equal & (here < place[k])
                        value[k] = new if take else old
                        place[k] = here if take else place[k]
                else:
                    for k in range(count):
                        new, old = row[k], value[k]
                        is_nan = new != new
                        take = (new < old) | (is_nan & (old == old))
                        equal = (new == old) | (is_nan & (old != old))
                        take |= equal & (here < place[k])
                        value[k] = new if take else old
                        place[k] = here if take else place[k]


@compiled_loop
def add_runs(
    block: Array, lines: Array, steps: Array, length: int, places: Array, sums: Array
) -> None:
    """Add the elements of each line, short integers, to the sum that it has."""
    for n in range(lines.size):
        total = np.int64(0)
        for r in range(steps.size):
            row = block[lines[n] + steps[r] : lines[n] + steps[r] + length]
            for k in range(length):
                total += np.int64(row[k])
        sums[places[n]] += sums.dtype.type(total)


@compiled_loop
def add_squares_runs(
    block: Array, lines: Array, steps: Array, length: int, places: Array, squares: Array
) -> None:
    """Add the squares of the elements of each line to the sum that it has."""
    for n in range(lines.size):
        square = squares.dtype.type(0)
        for r in range(steps.size):
            row = block[lines[n] + steps[r] : lines[n] + steps[r] + length]
            for k in range(length):
                value = squares.dtype.type(row[k])
                square += value * value
        squares[places[n]] += square


@compiled_loop
def add_moments_runs(
    block: Array, lines: Array, steps: Array, length: int, places: Array, sums: Array, squares: Array
) -> None:  # fmt: skip
    """Add the elements of each line, and their squares, to the two sums that it has."""
    for n in range(lines.size):
        total, square = sums.dtype.type(0), squares.dtype.type(0)
        for r in range(steps.size):
            row = block[lines[n] + steps[r] : lines[n] + steps[r] + length]
            for k in range(length):
                total += sums.dtype.type(row[k])
                value = squares.dtype.type(row[k])
                square += value * value
        sums[places[n]] += total
        squares[places[n]] += square


@compiled_loop
def best_runs(
    block: Array, lines: Array, steps: Array, length: int, places: Array,
    values: Array, at_: Array, first: int, largest: bool,
) -> None:  # fmt: skip
    """Take the best element of each line, of integers, if it is better than what there is, or as good and before it.

    The first element is number `first`.
    """
    for n in range(lines.size):
        for r in range(steps.size):
            row = block[lines[n] + steps[r] : lines[n] + steps[r] + length]
            best_ = row[0]
            if largest:
                for k in range(length):
                    best_ = max(best_, row[k])
            else:
                for k in range(length):
                    best_ = min(best_, row[k])
            old = values[places[n]]
            if (best_ < old) if largest else (best_ > old):
                continue
            k = 0
            while k + _LOOK <= length:
                count = 0
                for j in range(_LOOK):
                    count += row[k + j] == best_
                if count:
                    break
                k += _LOOK
            while row[k] != best_:
                k += 1
            place = at_.dtype.type(first + steps[r] + k)
            if best_ != old or place < at_[places[n]]:
                values[places[n]] = best_
                at_[places[n]] = place


@compiled_loop
def variances(
    sums: Array, squares: Array, count: int, left: float, is_root: bool, out: Array
) -> None:
    """Put the variances of integers, or their roots, into `out`, as `IntegerMoments` computes them."""
    many = float(max(1, count))
    for k in range(sums.size):
        total = np.int64(sums[k])
        apart = np.int64(squares[k]) * count - total * total
        found = apart / many / left
        out[k] = np.sqrt(found) if is_root else found
