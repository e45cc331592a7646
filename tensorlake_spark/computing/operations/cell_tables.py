"""Elements put into tables of an answer's cells, a range of cells at a time: nothing has to be sorted for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.result_memory import scratch
from tensorlake_spark.threads import THREADS, at_once

Array = np.ndarray[Any, Any]

Result = TypeVar("Result")

Parts = Sequence[tuple[Array, ...]]
"""Elements, some at a time: the cells that they belong to, and arrays of what belongs to each."""

_Range = tuple[int, int, Sequence[Sequence[Array]]]

_LOOPS = "tensorlake_spark.computing.operations.cell_loops"

_WIDEST = 1 << 17  # cells of a table, so that it stays in the cache
_MOST = 1 << 16  # tables: their numbers have two bytes, which NumPy sorts by digits
_NUMBERS = 1 << 46  # numbers of elements that loops take together with their cells are below
_SHARES = 4  # of the tables, for each thread
_SPARSE = 32  # cells for each element, from which on tables would be mostly empty


def can_be_tabled(count: int, cells: int, numbers: int = 0) -> bool:
    """Return whether so many elements are put into the cells of an answer sooner by tables than by a sort.

    They may have numbers, which are below `numbers`.

    Examples
    --------
    >>> can_be_tabled(100, 1000), can_be_tabled(100, 10**12)
    (True, False)
    """
    return cells <= min(_SPARSE * count, _WIDEST * _MOST) and numbers <= _NUMBERS


def in_cells(
    loop: str, parts: Parts, cells: int, chars: str, *more: Any
) -> tuple[Array, ...] | None:
    """Return what a compiled loop finds for each cell that has elements; None where NumPy does the work.

    Parameters
    ----------
    loop : str
        One of the loops of `cell_loops` that begin with parts and cells.
    parts : sequence of tuple of ndarray
        Cells, in any order, and arrays of what belongs to each element, the last of them values.
    cells : int
        Of the answer: all are below.
    chars : str
        ``dtype.char`` of the values that the loop takes. Booleans come to it as bytes.
    *more
        What else it takes.

    Returns
    -------
    tuple of ndarray
        The cells, ascending, and what the loop finds.
    """
    loops = _loops_for(loop, parts, chars)
    if loops is None:
        return None
    if parts[0][-1].dtype.kind == "b":
        parts = [(*others, values.view(np.uint8)) for *others, values in parts]
    found: tuple[Array, ...] = getattr(loops, loop)(parts, cells, *more)
    return found


def _loops_for(loop: str, parts: Parts, chars: str) -> Any:
    """Return the module of compiled loops if one of them takes elements whose values have a dtype among some."""
    dtype, count = parts[0][-1].dtype, sum(len(part[0]) for part in parts)
    char = np.dtype("u1").char if dtype.kind == "b" else dtype.char
    if char not in chars or not dtype.isnative or count >= 1 << 31:
        return None
    return compiled(_LOOPS, loop, char, nbytes=count * dtype.itemsize)


def in_tables(work: Callable[..., Result], parts: Parts, cells: int) -> list[Result]:
    """Return what some work makes of elements, a table of cells at a time; tables are ranges of cells, which ascend.

    Threads share the tables. With compiled loops there is one, of all cells, that takes no more memory.

    Parameters
    ----------
    work : callable
        Takes the cells of the range that have elements, ascending, as int64; how many each has, as int64; then arrays
        of all elements in them: which of these cells they belong to, and the others of their part.
    parts : sequence of tuple of ndarray
        Cells, in any order, and arrays of what belongs to each element; at least one element.
    cells : int
        Of the answer: all are below.

    Examples
    --------
    >>> some = (np.array([4, 1, 4]), np.array([5.0, 7.0, 9.0]))
    >>> in_tables(lambda *found: found, [some], 6)
    [(array([1, 4]), array([1, 2]), array([1, 0, 1]), array([5., 7., 9.]))]
    """
    loops = _grouping(parts)
    if loops is not None:
        found, counts, arrays = loops.group(parts, cells)
        return [work(found, counts, *arrays)]
    ranges = _ranges(parts, cells)

    def some(mine: Sequence[_Range]) -> list[Result]:
        return [work(*_table(*one)) for one in mine]

    # Threads wait for each other now and then: each has several shares of the tables.
    share = -(-len(ranges) // (_SHARES * THREADS))
    shares = [ranges[first : first + share] for first in range(0, len(ranges), share)]
    return [done for results in at_once(some, shares) for done in results]


def _table(first: int, width: int, found: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
    """Return what is found in a range of cells from the arrays of its elements, some at a time."""
    at, *others = joined(found)
    at = at - first
    # One look at each cell, at a byte of it: there may be many more cells than elements.
    is_found = np.zeros(width, bool)
    is_found[at] = True
    cells = np.flatnonzero(is_found)
    number = np.empty(width, np.intp)
    number[cells] = np.arange(len(cells))
    of = number[at]
    return cells + first, np.bincount(of, minlength=len(cells)), of, *others


def _grouping(parts: Parts) -> Any:
    """Return the module of compiled loops if they group these elements."""
    size, count = parts[0][-1].dtype.itemsize, sum(len(part[0]) for part in parts)
    if size not in (1, 2, 4, 8) or count >= 1 << 31:
        return None
    return compiled(_LOOPS, "group", np.dtype(f"u{size}").char, nbytes=8 * count)


def loops_of(name: str, values: Array, chars: str) -> Any:
    """Return the module of compiled loops if one of them takes values whose dtype is among some; None for NumPy."""
    if values.dtype.char not in chars or not values.dtype.isnative:
        return None
    return compiled(_LOOPS, name, values.dtype.char, nbytes=values.nbytes)


def _ranges(parts: Parts, cells: int) -> list[_Range]:
    """Return ranges of cells that have elements: where each begins, its width, and the arrays of its elements."""
    if cells <= _WIDEST:
        return [(0, cells, parts)]
    count = -(-cells // _WIDEST)
    grouped = at_once(partial(_by_range, count=count), parts)
    out: list[_Range] = []
    for number in range(count):
        found = [
            [array[edges[number] : edges[number + 1]] for array in arrays]
            for arrays, edges in grouped
            if edges[number] < edges[number + 1]
        ]
        if found:
            first = number * _WIDEST
            out.append((first, min(_WIDEST, cells - first), found))
    return out


def _by_range(part: tuple[Array, ...], count: int) -> tuple[list[Array], list[int]]:
    """Return the arrays of elements, range by range, and where in them each range begins."""
    numbers = scratch(part[0].shape, np.min_scalar_type(count - 1))
    np.floor_divide(part[0], _WIDEST, out=numbers, casting="unsafe")
    by = np.argsort(numbers, kind="stable")
    edges = np.cumsum(np.bincount(numbers, minlength=count))
    out = [scratch(array.shape, array.dtype) for array in part]
    for array, grouped in zip(part, out, strict=True):
        np.take(array, by, out=grouped, mode="clip")
    return out, [0, *edges.tolist()]


def joined(parts: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
    """Return the arrays of parts, one part's after the other's, for the time of an operation; one part is not copied.

    Examples
    --------
    >>> joined([(np.array([1]), np.array([5.0])), (np.array([3]), np.array([7.0]))])
    (array([1, 3]), array([5., 7.]))
    """
    if len(parts) == 1:
        return tuple(parts[0])
    count = sum(len(part[0]) for part in parts)
    return tuple(
        np.concatenate(arrays, out=scratch((count,), arrays[0].dtype))
        for arrays in zip(*parts, strict=True)
    )


def table_sums(at: Array, values: Array, width: int) -> Array:
    """Return the sum in each cell of a table, of floats or complex numbers in double width.

    Examples
    --------
    >>> table_sums(np.array([2, 0, 2]), np.array([1.0, 5.0, 2.0]), 4)
    array([5., 0., 3., 0.])
    """
    if values.dtype.kind != "c":
        return np.asarray(np.bincount(at, values, width))
    out = np.empty(width, np.complex128)
    out.real = np.bincount(at, values.real, width)
    out.imag = np.bincount(at, values.imag, width)
    return out
