"""Loops that put elements into the cells of an answer, which numba compiles. Begin with `group`.

What NumPy does with tables of cells one after the other, they do in passes over all elements. Every loop runs without
the interpreter lock. Their other bodies are `cell_tables`, `reduction_kernels` and `index_searches`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop
from tensorlake_spark.ops.element_loops import fixed

Array = np.ndarray[Any, Any]

_BITS = 16
"""A range has 2**_BITS cells, so that what is known of them stays in the cache."""


def warm(loop: str, kind: str) -> None:
    """Have a loop compiled, or loaded from numba's cache.

    Parameters
    ----------
    loop : {"group", "add", "add_moments", "best"}
        Which one.
    kind : str
        ``dtype.char`` of the values; for "group" of unsigned words as long as they are.
    """
    one, of = np.zeros(1, np.int64), np.zeros(1, np.int32)
    values = np.ones(1, kind)
    if loop == "group":
        group([(one, values)], 1)
    elif loop == "add":
        add(of, values, np.zeros(1, kind))
    elif loop == "add_moments":
        add_moments(of, values, np.ones(1, np.int64), np.zeros(1), np.zeros(1))
    else:
        best(of, one, values, np.zeros(1, kind), one.copy(), True)


def group(parts: Sequence[tuple[Array, ...]], cells: int) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return the cells that have elements, how many each has, and of all elements what `cell_tables.tables` yields.

    Parameters
    ----------
    parts : sequence of tuple of ndarray
        Cells as int64, in any order; a number for each element as int64, or none; and values of 1, 2, 4 or 8 bytes.
        There are fewer than 2**31 elements.
    cells : int
        All are below.

    Examples
    --------
    >>> found, counts, (of, values) = group([(np.array([4, 1, 4]), np.array([5.0, 7.0, 9.0]))], 6)
    >>> found, counts, of, values
    (array([1, 4]), array([1, 2]), array([1, 0, 1], dtype=int32), array([5., 7., 9.]))
    """
    sizes = np.zeros((max(cells, 1) - 1 >> _BITS) + 1, np.int64)
    for part in parts:
        _tally(fixed(part[0]), _BITS, sizes)
    edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    nexts, count = edges[:-1].copy(), int(edges[-1])
    dtype = parts[0][-1].dtype
    word = np.dtype(f"u{dtype.itemsize}")
    at, words = np.empty(count, np.int32), np.empty(count, word)
    numbers = np.empty(count if len(parts[0]) > 2 else 0, np.int64)
    for some, *more, values in parts:
        number = fixed(more[0] if more else numbers)
        _deal(fixed(some), number, fixed(values).view(word), _BITS, nexts, at, numbers, words)
    room = count + 8  # the loop writes behind the last one
    found, counts = np.empty(room, np.int64), np.empty(room, np.int64)
    n = _number(at, edges, _BITS, found, counts)
    arrays = (numbers, words.view(dtype)) if len(parts[0]) > 2 else (words.view(dtype),)
    return found[:n], counts[:n], (at, *arrays)


@compiled_loop
def _tally(cells: Array, bits: int, sizes: Array) -> None:
    """Count the elements of each range of cells."""
    for k in range(cells.size):
        sizes[cells[k] >> bits] += 1


@compiled_loop
def _deal(
    cells: Array, more: Array, values: Array, bits: int, nexts: Array, at: Array, numbers: Array, words: Array
) -> None:  # fmt: skip
    """Put elements where the next ones of their range go: cells of the range, numbers if there are some, values."""
    mask = (1 << bits) - 1
    for k in range(cells.size):
        cell = cells[k]
        to = nexts[cell >> bits]
        nexts[cell >> bits] = to + 1
        at[to] = cell & mask
        words[to] = values[k]
        if more.size:
            numbers[to] = more[k]


@compiled_loop
def _number(at: Array, edges: Array, bits: int, found: Array, counts: Array) -> int:
    """Replace cells of ranges by their numbers among those that have elements, and write these; return how many."""
    flags = np.zeros(1 << bits, np.uint8)
    words = flags.view(np.uint64)
    numbers = np.empty(1 << bits, np.int32)
    n = 0
    for r in range(edges.size - 1):
        some = at[edges[r] : edges[r + 1]]
        if not some.size:
            continue
        for k in range(some.size):
            flags[some[k]] = 1
        for w in range(words.size):
            if words[w]:
                for cell in range(w << 3, (w << 3) + 8):
                    # Without a branch: a cell that has no element is overwritten by the next one that has.
                    numbers[cell] = n
                    found[n] = (r << bits) + cell
                    counts[n] = 0
                    n += flags[cell]
                words[w] = 0
        for k in range(some.size):
            number = numbers[some[k]]
            some[k] = number
            counts[number] += 1
    return n


@compiled_loop
def add(of: Array, values: Array, sums: Array) -> None:
    """Add values to the sums of their cells."""
    for k in range(of.size):
        sums[of[k]] += values[k]


@compiled_loop
def add_moments(of: Array, values: Array, counts: Array, means: Array, squares: Array) -> None:
    """Put values into means, which are 0 before, and sums of squares of what is apart from them."""
    for k in range(of.size):
        means[of[k]] += values[k]
    for n in range(means.size):
        means[n] /= counts[n]
    for k in range(of.size):
        apart = values[k] - means[of[k]]
        squares[of[k]] += apart * apart


@compiled_loop
def best(
    of: Array, at: Array, values: Array, found: Array, first: Array, largest: bool
) -> None:  # fmt: skip
    """Take the better values of cells, NaN before numbers, and of equal ones the least place."""
    for k in range(of.size):
        # Without a branch, as nobody can tell which one is better.
        n, new, here = of[k], values[k], at[k]
        old, before = found[n], first[n]
        is_nan, was_nan = new != new, old != old
        is_better = ((new > old) if largest else (new < old)) | (is_nan & (not was_nan))
        is_same = (new == old) | (is_nan & was_nan)
        least = min(here, before)
        found[n] = new if is_better else old
        first[n] = here if is_better else (least if is_same else before)
