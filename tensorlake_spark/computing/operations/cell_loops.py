"""Loops that put elements into the cells of an answer, which numba compiles. Begin with `add`.

What NumPy does with tables of cells one after the other, they do in three passes over all elements. The first one marks
cells that have elements, each by a bit, so that they can be numbered. The second one deals elements to ranges of cells.
The third one does the work, range by range, on what is in the cache. Every loop runs without the interpreter lock, and
of many elements each thread takes a share.
Their other bodies are `cell_tables`, `reduction_kernels` and `index_searches`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.layouts.result_memory import scratch
from tensorlake_spark.loop_compiler import compiled_loop
from tensorlake_spark.ops.element_loops import fixed
from tensorlake_spark.threads import THREADS, at_once

Array = np.ndarray[Any, Any]
Parts = Sequence[tuple[Array, ...]]

_BITS = 16
"""A range has 2**_BITS cells, so that what is known of them stays in the cache."""

_ALONE = 1 << 17  # so few elements are not worth a second thread
_U = np.uint64
_PLACE, _DOUBLE = np.dtype(np.int64), np.dtype(np.float64)


class _Dealt(NamedTuple):
    """Elements range by range, and the cells that have some.

    Attributes
    ----------
    at : int32 or int64 ndarray
        Cells within the range, and above their bits the numbers of elements, if there are some.
    values : ndarray
        Values of elements.
    edges : int64 ndarray
        Where in these each range begins, and the end.
    marks : uint64 ndarray
        A bit for each cell, which is 1 if it has elements.
    before : int32 ndarray
        How many cells have elements before those of each word of marks.
    """

    at: Array
    values: Array
    edges: Array
    marks: Array
    before: Array


def warm(loop: str, kind: str) -> None:
    """Have a loop compiled, or loaded from numba's cache.

    Parameters
    ----------
    loop : {"group", "add", "add_squares", "add_moments", "add_zeros", "best"}
        Which one.
    kind : str
        ``dtype.char`` of the values; for "group" of unsigned words as long as they are.
    """
    one, values = np.zeros(1, np.int64), np.ones(1, kind)
    if loop == "group":
        group([(one, values)], 1)
        group([(one, one, values)], 1)
    elif loop == "add_zeros":
        add_zeros(values, values, values, one)
    elif loop == "best":
        best([(one, one, values)], 1, values[0], True)
    else:
        globals()[loop]([(one, values)], 1)


def group(parts: Parts, cells: int) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return the cells that have elements, how many each has, and of all elements what `cell_tables.tables` yields.

    Parameters
    ----------
    parts : sequence of tuple of ndarray
        Cells as int64, in any order; a number for each element as int64, from 0 up to 2**46, or none; and
        values of 1, 2, 4 or 8 bytes. There are fewer than 2**31 elements.
    cells : int
        All are below.

    Examples
    --------
    >>> found, counts, (of, values) = group([(np.array([4, 1, 4]), np.array([5.0, 7.0, 9.0]))], 6)
    >>> found, counts, of, values
    (array([1, 4]), array([1, 2]), array([1, 0, 1], dtype=int32), array([5., 7., 9.]))
    """
    found, dealt = _dealt(parts, cells)
    counts, of = scratch(found.shape, _PLACE, 0), scratch(dealt.at.shape, np.dtype(np.int32))
    # Without the values, which may be halves, of which numba has no arrays.
    _each_range(_group, dealt._replace(values=of), counts)
    numbers = (dealt.at >> _BITS,) if len(parts[0]) > 2 else ()
    return found, counts, (of, *numbers, dealt.values)


def add(parts: Parts, cells: int) -> tuple[Array, Array, Array]:
    """Return the cells that have elements, how many each has, and the sums of their values, in double width.

    Examples
    --------
    >>> add([(np.array([4, 1, 4]), np.array([5.0, 7.0, 9.0]))], 6)
    (array([1, 4]), array([1, 2]), array([ 7., 14.]))
    """
    return _sums(parts, cells, False)


def add_squares(parts: Parts, cells: int) -> tuple[Array, Array, Array]:
    """Return the cells that have elements, how many each has, and the sums of squares of their values; see `add`."""
    return _sums(parts, cells, True)


def _sums(parts: Parts, cells: int, squared: bool) -> tuple[Array, Array, Array]:
    found, dealt = _dealt(parts, cells)
    counts, sums = scratch(found.shape, _PLACE, 0), scratch(found.shape, _DOUBLE, 0)
    _each_range(_add, dealt, counts, sums, squared)
    return found, counts, sums


def add_moments(parts: Parts, cells: int) -> tuple[Array, Array, Array, Array]:
    """Return the cells that have elements, how many each has, their means, and the sums of squares apart from these.

    Examples
    --------
    >>> add_moments([(np.array([4, 1, 4]), np.array([5.0, 7.0, 9.0]))], 6)
    (array([1, 4]), array([1, 2]), array([7., 7.]), array([0., 8.]))
    """
    found, dealt = _dealt(parts, cells)
    counts, means = scratch(found.shape, _PLACE, 0), scratch(found.shape, _DOUBLE, 0)
    squares = scratch(found.shape, _DOUBLE, 0)
    _each_range(_add_moments, dealt, counts, means, squares)
    return found, counts, means, squares


def add_zeros(
    counts: Array, means: Array, squares: Array, missing: Array
) -> tuple[Array, Array, Array]:
    """Return the counts, means and sums of squares of cells after so many zeros.

    Examples
    --------
    >>> add_zeros(np.array([2.0]), np.array([6.0]), np.array([0.0]), np.array([1]))
    (array([3.]), array([4.]), array([24.]))
    """
    shape = counts.shape
    out = scratch(shape, _DOUBLE), scratch(shape, _DOUBLE), scratch(shape, _DOUBLE)
    _add_zeros(fixed(counts), fixed(means), fixed(squares), fixed(missing), *out)
    return out


def best(parts: Parts, cells: int, worst: Any, largest: bool) -> tuple[Array, Array, Array]:
    """Return the cells that have elements, the number of the best one of each, and its value.

    NaN is better than numbers, and of equal values the one of the least number.

    Parameters
    ----------
    parts, cells
        As for `group`, with numbers.
    worst : scalar
        No value is worse.
    largest : bool
        Whether the largest values are the best.

    Examples
    --------
    >>> best([(np.array([4, 1, 4]), np.array([3, 0, 1]), np.array([5.0, 7.0, 5.0]))], 6, -np.inf, True)
    (array([1, 4]), array([0, 1]), array([7., 5.]))
    """
    found, dealt = _dealt(parts, cells)
    first = scratch(found.shape, _PLACE, np.iinfo(np.int64).max)
    value = scratch(found.shape, dealt.values.dtype, worst)
    _each_range(_best, dealt, first, value, largest)
    return found, first, value


def _dealt(parts: Parts, cells: int) -> tuple[Array, _Dealt]:
    """Return the cells that have elements, and the elements range by range."""
    ranges = (max(cells, 1) - 1 >> _BITS) + 1
    edges = np.cumsum([0, *(len(part[0]) for part in parts)])
    shares = [parts[first:stop] for first, stop in _spans(edges)]

    def tallied(share: Parts) -> tuple[Array, Array]:
        sizes, marks = np.zeros(ranges, np.int64), scratch((-(-cells // 64),), np.dtype(_U), 0)
        for part in share:
            _tally(fixed(part[0]), _BITS, sizes, marks)
        return sizes, marks

    tallies = at_once(tallied, shares)
    marks = tallies[0][1]
    for _, others in tallies[1:]:
        np.bitwise_or(marks, others, out=marks)
    before = scratch(marks.shape, np.dtype(np.int32))
    found = scratch((_rank(marks, before),), _PLACE)
    _name(marks, found)
    sizes = np.stack([sizes for sizes, _ in tallies])
    edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes.sum(axis=0))))
    nexts, count = edges[:-1] + np.cumsum(sizes, axis=0) - sizes, int(edges[-1])
    dtype, has_numbers = parts[0][-1].dtype, len(parts[0]) > 2
    place = np.dtype(np.int64 if has_numbers else np.int32)
    memory = scratch((count * (place.itemsize + dtype.itemsize),), np.dtype("u1"))
    at, values = memory[: count * place.itemsize].view(place), memory[count * place.itemsize :]
    word, none = np.dtype(f"u{dtype.itemsize}"), np.zeros(0, np.int64)

    def deal(number: int) -> None:
        for some, *more, mine in shares[number]:
            numbers, words = fixed(more[0] if more else none), fixed(mine).view(word)
            _deal(fixed(some), numbers, words, _BITS, nexts[number], at, values.view(word))

    at_once(deal, range(len(shares)))
    return found, _Dealt(at, values.view(dtype), edges, marks, before)


def _each_range(loop: Callable[..., None], dealt: _Dealt, *more: Any) -> None:
    """Have a loop do its work on the ranges of cells: each thread takes some."""
    at_once(lambda span: loop(*dealt, _BITS, *span, *more), _spans(dealt.edges))


def _spans(edges: Array) -> list[tuple[int, int]]:
    """Return which groups of elements each thread takes, about as many elements each: one thread, if there are few.

    Parameters
    ----------
    edges : int64 ndarray
        Where each group begins, and the end.

    Examples
    --------
    >>> _spans(np.array([0, 5, 9]))
    [(0, 2)]
    """
    threads = THREADS if edges[-1] >= _ALONE else 1
    cuts = np.searchsorted(edges, edges[-1] * np.arange(1, threads) // threads)
    at = [0, *cuts.tolist(), len(edges) - 1]
    return [span for span in pairwise(at) if span[0] < span[1]]


@compiled_loop
def _tally(cells: Array, bits: int, sizes: Array, marks: Array) -> None:
    """Count the elements of each range of cells, and mark the cells that have some."""
    for k in range(cells.size):
        cell = _U(cells[k])
        sizes[cell >> _U(bits)] += 1
        marks[cell >> _U(6)] |= _U(1) << (cell & _U(63))


@compiled_loop
def _ones(word: Any) -> int:
    """Return how many bits of a word are set: numba makes one instruction of it."""
    count = 0
    while word:
        word &= word - _U(1)
        count += 1
    return count


@compiled_loop
def _rank(marks: Array, before: Array) -> int:
    """Write how many cells are marked before each word; return how many there are."""
    n = 0
    for w in range(marks.size):
        before[w] = n
        n += _ones(marks[w])
    return n


@compiled_loop
def _name(marks: Array, found: Array) -> None:
    """Write the marked cells."""
    n = 0
    for w in range(marks.size):
        word = marks[w]
        while word:
            rest = word & (word - _U(1))
            found[n] = (w << 6) + _ones((word ^ rest) - _U(1))
            word = rest
            n += 1


@compiled_loop
def _range(r: int, at: Array, edges: Array, marks: Array, before: Array, bits: int) -> Any:
    """Return what belongs to a range: where its elements are, their cells, the marks of these, and what is before."""
    first, stop = edges[r], edges[r + 1]
    words = slice(r << (bits - 6), (r + 1) << (bits - 6))
    return at[first:stop], marks[words], before[words]


@compiled_loop
def _number(at: int, mask: Any, marks: Array, before: Array) -> Any:
    """Return the number of a cell of a range."""
    cell = _U(at) & mask
    word = cell >> _U(6)
    return _U(before[word]) + _U(_ones(marks[word] & ((_U(1) << (cell & _U(63))) - _U(1))))


@compiled_loop
def _deal(
    cells: Array, numbers: Array, values: Array, bits: int, nexts: Array, at: Array, words: Array
) -> None:
    """Put elements where the next ones of their range go."""
    mask = (1 << bits) - 1
    k = 0
    while k < cells.size:
        # Neighbours are mostly in one range: where its next one goes stays in a register.
        r = cells[k] >> bits
        to = nexts[r]
        while k < cells.size and cells[k] >> bits == r:
            at[to] = cells[k] & mask
            if numbers.size:
                at[to] |= numbers[k] << bits
            words[to] = values[k]
            to += 1
            k += 1
        nexts[r] = to


@compiled_loop
def _group(
    at: Array, of: Array, edges: Array, marks: Array, before: Array, bits: int,
    first: int, stop: int, counts: Array,
) -> None:  # fmt: skip
    """Write the number of each element's cell, and how many elements each cell has."""
    mask = _U((1 << bits) - 1)
    for r in range(first, stop):
        some, words, base = _range(r, at, edges, marks, before, bits)
        mine = of[edges[r] : edges[r + 1]]
        for k in range(some.size):
            number = _number(some[k], mask, words, base)
            mine[k] = number
            counts[number] += 1


@compiled_loop
def _add(
    at: Array, values: Array, edges: Array, marks: Array, before: Array, bits: int,
    first: int, stop: int, counts: Array, sums: Array, squared: bool,
) -> None:  # fmt: skip
    """Count the elements of each cell, and add their values, or the squares of these."""
    mask = _U((1 << bits) - 1)
    for r in range(first, stop):
        some, words, base = _range(r, at, edges, marks, before, bits)
        mine = values[edges[r] : edges[r + 1]]
        for k in range(some.size):
            number = _number(some[k], mask, words, base)
            counts[number] += 1
            sums[number] += mine[k] * mine[k] if squared else mine[k]


@compiled_loop
def _add_moments(
    at: Array, values: Array, edges: Array, marks: Array, before: Array, bits: int,
    first: int, stop: int, counts: Array, means: Array, squares: Array,
) -> None:  # fmt: skip
    """Count the elements of each cell, and find their mean and the sum of squares of what is apart from it."""
    mask, word = _U((1 << bits) - 1), stop << (bits - 6)
    n, end = before[first << (bits - 6)], before[word] if word < before.size else counts.size
    for r in range(first, stop):
        some, words, base = _range(r, at, edges, marks, before, bits)
        mine = values[edges[r] : edges[r + 1]]
        for k in range(some.size):
            number = _number(some[k], mask, words, base)
            some[k] = number  # for the second look
            counts[number] += 1
            means[number] += mine[k]
        while n < end and counts[n]:  # cells of later ranges have no elements yet
            means[n] /= counts[n]
            n += 1
        for k in range(some.size):
            number = _U(some[k])
            apart = mine[k] - means[number]
            squares[number] += apart * apart


@compiled_loop
def _add_zeros(
    counts: Array, means: Array, squares: Array, missing: Array, all_: Array, middles: Array, sums: Array
) -> None:  # fmt: skip
    """Put zeros into counts, means and sums of squares."""
    for k in range(counts.size):
        all_[k] = counts[k] + missing[k]
        total = max(all_[k], 1.0)
        share = counts[k] * missing[k] / total
        middles[k] = means[k] * (counts[k] / total)
        # Of no zeros nothing is added, even if a square is infinite.
        sums[k] = squares[k] + (means[k] * means[k] * share if share else 0.0)


@compiled_loop
def _best(
    at: Array, values: Array, edges: Array, marks: Array, before: Array, bits: int,
    begin: int, stop: int, first: Array, best_: Array, largest: bool,
) -> None:  # fmt: skip
    """Take the better values of cells, NaN before numbers, and of equal ones the least number."""
    mask = _U((1 << bits) - 1)
    for r in range(begin, stop):
        some, words, base = _range(r, at, edges, marks, before, bits)
        mine = values[edges[r] : edges[r + 1]]
        missing = 0
        for k in range(some.size):
            missing += mine[k] != mine[k]
        # Without a branch, as nobody can tell which one is better.
        if missing:
            for k in range(some.size):
                number = _number(some[k], mask, words, base)
                new, here, old, least = mine[k], some[k] >> bits, best_[number], first[number]
                is_nan, was_nan = new != new, old != old
                take = ((new > old) if largest else (new < old)) | (is_nan & (not was_nan))
                take |= ((new == old) | (is_nan & was_nan)) & (here < least)
                best_[number] = new if take else old
                first[number] = here if take else least
        else:
            for k in range(some.size):
                number = _number(some[k], mask, words, base)
                new, here, old, least = mine[k], some[k] >> bits, best_[number], first[number]
                take = ((new > old) if largest else (new < old)) | ((new == old) & (here < least))
                best_[number] = new if take else old
                first[number] = here if take else least
