"""Loops that put elements into the cells of an answer, which numba compiles. Begin with `add`.

What NumPy does with tables of cells one after the other, they do in three passes over all elements. The first one marks
cells that have elements, each by a bit, so that they can be numbered. The second one deals elements to ranges of cells.
The third one does the work, range by range, on what is in the cache. Every loop runs without the interpreter lock, and
of many elements each thread takes a share.
Their other bodies are `cell_tables`, `reduction_kernels` and `index_searches`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.layouts.result_memory import scratch
from tensorlake_spark.loop_compiler import compiled_loop
from tensorlake_spark.ops.element_loops import fixed
from tensorlake_spark.thread_shares import shares_of, spans
from tensorlake_spark.threads import at_once

Array = np.ndarray[Any, Any]
Parts = Sequence[tuple[Array, ...]]

_BITS = 16
"""A range has 2**_BITS cells, so that what is known of them stays in the cache."""

_NUMBERS = 1 << 46  # of elements are below, so that they have room beside cells
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
    loop : {"group", "add", "add_squares", "add_moments", "variances", "best"}
        Which one.
    kind : str
        ``dtype.char`` of the values; for "group" of unsigned words as long as they are.
    """
    one, values = np.zeros(1, np.int64), np.ones(1, kind)
    if loop == "group":
        group([(one, values)], 1)
        group([(one, one, values)], 1)
    elif loop == "variances":
        variances(one, values, values, 1, 1.0, False)
    elif loop == "best":
        best([(one, one, values)], 1, 1, values[0], True)
    else:
        globals()[loop]([(one, values)], 1)


def group(parts: Parts, cells: int) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return the cells that have elements, how many each has, and of all elements what `cell_tables.tables` yields.

    Parameters
    ----------
    parts : sequence of tuple of ndarray
        Cells as integers, in any order; a number for each element, from 0 up to 2**46, or none; and values of 1, 2,
        4 or 8 bytes. There are fewer than 2**31 elements.
    cells : int
        All are below.

    Examples
    --------
    >>> found, counts, (of, values) = group([(np.array([4, 1, 4]), np.array([5.0, 7.0, 9.0]))], 6)
    >>> found, counts, of, values
    (array([1, 4]), array([1, 2]), array([1, 0, 1], dtype=int32), array([5., 7., 9.]))
    """
    found, dealt = _dealt(parts, cells)
    counts, of = scratch(found.shape, _PLACE), scratch(dealt.at.shape, np.dtype(np.int32))
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
    counts, sums = scratch(found.shape, _PLACE), scratch(found.shape, _DOUBLE)
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
    counts = scratch(found.shape, _PLACE)
    means, squares = scratch(found.shape, _DOUBLE), scratch(found.shape, _DOUBLE)
    _each_range(_add_moments, dealt, counts, means, squares)
    return found, counts, means, squares


def variances(
    counts: Array, means: Array, squares: Array, total: int, left: float, is_root: bool
) -> Array:
    """Return the variances of cells after zeros, with which each has so many elements.

    Parameters
    ----------
    counts : int64 ndarray
        How many elements each cell has.
    means, squares : float64 ndarray
        Their means, and the sums of squares of what is apart from these.
    total : int
        How many elements there are with the zeros.
    left : float
        What sums of squares are divided by.
    is_root : bool
        Whether roots of the variances are wanted.

    Examples
    --------
    >>> variances(np.array([2]), np.array([6.0]), np.array([0.0]), 3, 3.0, False)
    array([8.])
    """
    out = scratch(counts.shape, _DOUBLE)
    _variances(fixed(counts), fixed(means), fixed(squares), float(total), left, is_root, out)
    return out


def best(
    parts: Parts, cells: int, numbers: int, worst: Any, largest: bool
) -> tuple[Array, Array, Array]:
    """Return the cells that have elements, the number of the best one of each, and its value.

    NaN is better than numbers, and of equal values the one of the least number.

    Parameters
    ----------
    parts, cells
        As for `group`, with numbers.
    numbers : int
        All are below.
    worst : scalar
        No value is worse.
    largest : bool
        Whether the largest values are the best.

    Examples
    --------
    >>> best([(np.array([4, 1, 4]), np.array([3, 0, 1]), np.array([5.0, 7.0, 5.0]))], 6, 4, -np.inf, True)
    (array([1, 4]), array([0, 1]), array([7., 5.]))
    """
    found, dealt = _dealt(parts, cells, numbers)
    first, value = scratch(found.shape, _PLACE), scratch(found.shape, dealt.values.dtype)
    _each_range(_best, dealt, first, value, dealt.values.dtype.type(worst), largest)
    return found, first, value


def _dealt(parts: Parts, cells: int, numbers: int = _NUMBERS) -> tuple[Array, _Dealt]:
    """Return the cells that have elements, and the elements range by range."""
    ranges = (max(cells, 1) - 1 >> _BITS) + 1
    has_numbers = len(parts[0]) > 2
    kinds = [_integers(cells), _integers(numbers)][: 1 + has_numbers]
    shares = shares_of([(*map(np.asarray, part[:-1], kinds), part[-1]) for part in parts])
    sizes = np.zeros((len(shares), ranges), np.int64)
    every = scratch((len(shares), -(-cells // 64)), np.dtype(_U))

    def tally(number: int) -> None:
        every[number] = 0
        for part in shares[number]:
            _tally(fixed(part[0]), _BITS, sizes[number], every[number])

    at_once(tally, range(len(shares)))
    marks, before = every[0], scratch(every.shape[1:], np.dtype(np.int32))
    found = scratch((_rank(every, before),), _PLACE)
    edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes.sum(axis=0))))
    nexts, count = edges[:-1] + np.cumsum(sizes, axis=0) - sizes, int(edges[-1])
    dtype, place = parts[0][-1].dtype, _integers(numbers << _BITS if has_numbers else 0)
    memory = scratch((count * (place.itemsize + dtype.itemsize),), np.dtype("u1"))
    at, values = memory[: count * place.itemsize].view(place), memory[count * place.itemsize :]
    word, none = np.dtype(f"u{dtype.itemsize}"), np.zeros(0, kinds[-1])
    words = [len(marks) * number // len(shares) for number in range(len(shares) + 1)]

    def deal(number: int) -> None:
        _name(marks, before, found, *words[number : number + 2])
        for some, *more, mine in shares[number]:
            given = fixed(more[0] if more else none), fixed(mine).view(word)
            _deal(fixed(some), *given, _BITS, nexts[number], at, values.view(word))

    at_once(deal, range(len(shares)))
    return found, _Dealt(at, values.view(dtype), edges, marks, before)


def _integers(bound: int) -> np.dtype[Any]:
    """Return the integers that loops take for numbers below a bound, which are of two kinds."""
    return np.dtype(np.int32 if bound <= 1 << 31 else np.int64)


def _each_range(loop: Callable[..., None], dealt: _Dealt, *more: Any) -> None:
    """Have a loop do its work on the ranges of cells: each thread takes some."""
    at_once(lambda span: loop(*dealt, _BITS, *span, *more), spans(dealt.edges))


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
def _rank(every: Array, before: Array) -> int:
    """Put all marks into the first ones; write how many are before each word, and return how many there are."""
    n, marks = 0, every[0]
    for others in every[1:]:
        for w in range(marks.size):
            marks[w] |= others[w]
    for w in range(marks.size):
        before[w] = n
        n += _ones(marks[w])
    return n


@compiled_loop
def _name(marks: Array, before: Array, found: Array, first: int, stop: int) -> None:
    """Write the marked cells of some words."""
    if first == stop:
        return
    n = before[first]
    for w in range(first, stop):
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
def _entries(r: int, before: Array, bits: int, count: int) -> Any:
    """Return which of `count` cells that have elements lie in a range."""
    first, stop = r << (bits - 6), (r + 1) << (bits - 6)
    return slice(before[first], before[stop] if stop < before.size else count)


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
        counts[_entries(r, before, bits, counts.size)] = 0
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
        mine, here = values[edges[r] : edges[r + 1]], _entries(r, before, bits, counts.size)
        counts[here], sums[here] = 0, 0
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
    mask = _U((1 << bits) - 1)
    for r in range(first, stop):
        some, words, base = _range(r, at, edges, marks, before, bits)
        mine, here = values[edges[r] : edges[r + 1]], _entries(r, before, bits, counts.size)
        counts[here], means[here], squares[here] = 0, 0, 0
        for k in range(some.size):
            number = _number(some[k], mask, words, base)
            some[k] = number  # for the second look
            counts[number] += 1
            means[number] += mine[k]
        means[here] /= counts[here]
        for k in range(some.size):
            number = _U(some[k])
            apart = mine[k] - means[number]
            squares[number] += apart * apart


@compiled_loop
def _variances(
    counts: Array, means: Array, squares: Array, total: float, left: float, is_root: bool, out: Array
) -> None:  # fmt: skip
    """Put zeros into sums of squares, and write the variances."""
    for k in range(counts.size):
        share = counts[k] * ((total - counts[k]) / max(total, 1.0))
        # Of no zeros nothing is added, even if a square is infinite.
        found = (squares[k] + (means[k] * means[k] * share if share else 0.0)) / left
        out[k] = np.sqrt(found) if is_root else found


@compiled_loop
def _best(
    at: Array, values: Array, edges: Array, marks: Array, before: Array, bits: int,
    begin: int, stop: int, first: Array, best_: Array, worst: Any, largest: bool,
) -> None:  # fmt: skip
    """Take the better values of cells, NaN before numbers, and of equal ones the least number."""
    mask = _U((1 << bits) - 1)
    for r in range(begin, stop):
        some, words, base = _range(r, at, edges, marks, before, bits)
        mine, entries = values[edges[r] : edges[r + 1]], _entries(r, before, bits, first.size)
        first[entries], best_[entries] = np.iinfo(np.int64).max, worst
        missing = 0
        # Without a branch, as nobody can tell which one is better.
        for k in range(some.size):
            number = _number(some[k], mask, words, base)
            new, here, old, least = mine[k], some[k] >> bits, best_[number], first[number]
            take = ((new > old) if largest else (new < old)) | ((new == old) & (here < least))
            best_[number] = new if take else old
            first[number] = here if take else least
            missing += new != new
        if missing:  # and none of them was taken
            for k in range(some.size):
                number = _number(some[k], mask, words, base)
                new, here, old, least = mine[k], some[k] >> bits, best_[number], first[number]
                is_nan, was_nan = new != new, old != old
                take = is_nan & ((not was_nan) | (here < least))
                best_[number] = new if take else old
                first[number] = here if take else least
