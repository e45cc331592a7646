"""Loops over the elements of tensors that numba compiles, where NumPy and SciPy are slower. Begin with `warm`.

Integers come out as from the other body; so do floats but for the order in which they are added up. Every loop runs
without the interpreter lock. What comes in is taken as read-only, since numba compiles a loop for each kind of array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]
Loop = TypeVar("Loop", bound=Callable[..., Any])

_PART = 4096
"""Elements that are done at a time, so that they stay in the cache and rounding errors stay small."""

_BEYOND = 2**63 - 1
"""No place is so large."""


def _reordered(loop: Loop) -> Loop:
    """Return a compiled loop that may add floats in any order, and so by several accumulators."""
    return compiled_loop(loop, fastmath={"reassoc"})


def fixed(array: Array, dtype: Any = None) -> Array:
    """Return an array without gaps that cannot be written to.

    Examples
    --------
    >>> fixed(np.arange(6)[::2], np.int32).flags.writeable
    False
    """
    out: Array = np.ascontiguousarray(array, dtype).view()
    out.flags.writeable = False
    return out


def warm(loop: str, char: str) -> None:
    """Have a loop compiled, or loaded from numba's cache, for values of a dtype.

    Parameters
    ----------
    loop : {"total", "run_sums", "cell_sums", "run_best", "add", "multiply", "keep", "take_finite"}
        Which one.
    char : str
        ``dtype.char`` of the values.
    """
    place, value = np.zeros(1, np.int64), np.ones(1, char)
    if loop == "total":
        total(value)
    elif loop == "run_sums":
        run_sums(value, place)
    elif loop == "cell_sums":
        for word in (np.int32, np.int64):
            cell_sums(place.astype(word), value, 1)
    elif loop == "run_best":
        run_best(value, place, True)
    elif loop in ("add", "multiply"):
        (add if loop == "add" else multiply)((place, place), (value, value), 0)
    elif loop == "keep":
        keep(place == 0, place, value, place.copy(), value.copy())
    else:
        take_finite(value, place)


# ------------------------------------------------------------------------------ sums


def total(values: Array) -> Any:
    """Return the sum of numbers, in their dtype: of each part by several accumulators, of the parts as NumPy does.

    Examples
    --------
    >>> total(np.array([1.0, 2.0, 4.0]))
    np.float64(7.0)
    """
    sums = np.empty(-(-len(values) // _PART), values.dtype)
    _part_sums(fixed(values), sums)
    return np.add.reduce(sums, dtype=values.dtype)


@_reordered
def _part_sums(values: Array, sums: Array) -> None:
    for n in range(sums.size):
        part = values[n * _PART : (n + 1) * _PART]
        found = sums.dtype.type(0)
        for k in range(part.size):
            found += part[k]
        sums[n] = found


def run_sums(values: Array, starts: Array) -> Array:
    """Return the sum of each run of numbers, in their dtype and their order. The first run starts at 0.

    Examples
    --------
    >>> run_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 2]))
    array([3., 4.])
    """
    sums = np.empty(len(starts), values.dtype)
    _run_sums(fixed(values), fixed(starts, np.int64), sums)
    return sums


@compiled_loop
def _run_sums(values: Array, starts: Array, sums: Array) -> None:
    k, one = np.uint64(0), np.uint64(1)  # an index that may be negative takes a fifth more time
    for n in range(sums.size):
        stop = np.uint64(starts[n + 1] if n + 1 < sums.size else values.size)
        found = sums.dtype.type(0)
        while k < stop:
            found += values[k]
            k += one
        sums[n] = found


def cell_sums(cells: Array, values: Array, count: int) -> Array:
    """Return the sums of the numbers in each of so many cells, in their dtype and their order.

    Examples
    --------
    >>> cell_sums(np.array([2, 0, 2]), np.array([1.0, 2.0, 4.0]), 3)
    array([2., 0., 5.])
    """
    sums = np.zeros(count, values.dtype)
    _cell_sums(fixed(cells), fixed(values), sums)
    return sums


@compiled_loop
def _cell_sums(cells: Array, values: Array, sums: Array) -> None:
    for k in range(cells.size):
        sums[np.uint64(cells[k])] += values[k]


def run_best(values: Array, starts: Array, largest: bool) -> Array:
    """Return the largest number of each run, or the smallest one; NaN if there is one. The first run starts at 0.

    Examples
    --------
    >>> run_best(np.array([1.0, 2.0, 4.0]), np.array([0, 2]), True)
    array([2., 4.])
    """
    found = np.empty(len(starts), values.dtype)
    _run_best(fixed(values), fixed(starts, np.int64), found, largest)
    return found


@compiled_loop
def _run_best(values: Array, starts: Array, found: Array, largest: bool) -> None:
    k, one = np.uint64(0), np.uint64(1)
    for n in range(found.size):
        stop = np.uint64(starts[n + 1] if n + 1 < found.size else values.size)
        best = lost = values[k]
        missing = 0
        while k < stop:
            new = values[k]
            # Without a branch, as nobody can tell which one is better.
            best = new if ((new > best) if largest else (new < best)) else best
            lost = new if new != new else lost
            missing += new != new
            k += one
        found[n] = lost if missing else best


# ------------------------------------------------------------------------------ two tensors


def add(
    places: tuple[Array, Array], values: tuple[Array, Array], columns: int
) -> tuple[Array, Array]:
    """Return the cells of the sum of two tensors, in C order, and its values, none of which is zero.

    Parameters
    ----------
    places : tuple of int64 ndarray
        Ascending places of the elements of each, at least one.
    values : tuple of ndarray
        Their values, of one dtype.
    columns : int
        Length of a row; 0 if there are no rows.

    Returns
    -------
    cells : int64 ndarray, shape (2, n) or (1, n)
        Rows and columns; without rows the places.
    values : ndarray, shape (n,)
        What belongs to them.

    Examples
    --------
    >>> cells, found = add((np.array([1, 4]), np.array([4, 5])), (np.array([7, 2]), np.array([3, 9])), 3)
    >>> cells.tolist(), found.tolist()
    ([[0, 1, 1], [1, 1, 2]], [7, 5, 9])
    """
    most = len(places[0]) + len(places[1])
    depth = 2 if columns else 1
    flat, found = np.empty(depth * most, np.int64), np.empty(most, values[0].dtype)
    # Without rows both are one array, and the second of two writes to it stays.
    rows, rest = flat[:most], flat[-most:]
    (a, b), (of_a, of_b) = map(fixed, places), map(fixed, values)
    count = _add(a, of_a, b, of_b, columns or _BEYOND, rows, rest, found)
    if columns:
        flat[count : 2 * count] = rest[:count]
    cells, found = flat[: depth * count], found[:count]
    if 2 * count < most:
        cells, found = cells.copy(), found.copy()
    return cells.reshape(depth, count), found


@compiled_loop
def _add(
    a: Array, of_a: Array, b: Array, of_b: Array, columns: int, rows: Array, rest: Array, found: Array
) -> int:  # fmt: skip
    i = j = count = row = begin = 0
    zero = found.dtype.type(0)
    while i < a.size or j < b.size:
        here = a[i] if i < a.size else _BEYOND
        there = b[j] if j < b.size else _BEYOND
        # No branches: which one is smaller cannot be foreseen.
        is_a, is_b = here <= there, there <= here
        place = here if is_a else there
        first, second = of_a[min(i, a.size - 1)], of_b[min(j, b.size - 1)]
        value = found.dtype.type((first if is_a else zero) + (second if is_b else zero))
        if place - begin >= columns:
            row = place // columns
            begin = row * columns
        rows[count] = row
        rest[count] = place - begin
        found[count] = value
        count += value != zero
        i += is_a
        j += is_b
    return count


def multiply(
    places: tuple[Array, Array], values: tuple[Array, Array], columns: int
) -> tuple[Array, Array]:
    """Return the cells of the product of two tensors, in C order, and its values, none of which is zero; see `add`.

    Examples
    --------
    >>> cells, found = multiply((np.array([1, 4]), np.array([4, 5])), (np.array([7, 2]), np.array([3, 9])), 3)
    >>> cells.tolist(), found.tolist()
    ([[1], [1]], [6])
    """
    most = min(map(len, places))
    at, found = np.empty(most, np.int64), np.empty(most, values[0].dtype)
    (a, b), (of_a, of_b) = map(fixed, places), map(fixed, values)
    count = _multiply(a, of_a, b, of_b, at, found)
    at, found = at[:count], found[:count]
    if 2 * count < most:
        at, found = at.copy(), found.copy()
    return np.stack(np.divmod(at, columns)) if columns else at[None], found


@compiled_loop
def _multiply(a: Array, of_a: Array, b: Array, of_b: Array, at: Array, found: Array) -> int:
    i = j = count = 0
    while i < a.size and j < b.size:
        here, there = a[i], b[j]
        if here == there:
            value = found.dtype.type(of_a[i] * of_b[j])
            at[count], found[count] = here, value
            count += value != 0
        # No branches: which one is smaller cannot be foreseen.
        i += here <= there
        j += there <= here
    return count


# ------------------------------------------------------------------------------ a dense array beside a tensor


def take_finite(dense: Array, places: Array) -> Array | None:
    """Return the elements of a flat array of floats at ascending places, None if one of all is NaN or infinite.

    The array is read from memory once: a part of it is looked at, and taken from while it is in the cache.

    Examples
    --------
    >>> take_finite(np.array([1.0, 2.0, 4.0]), np.array([0, 2]))
    array([1., 4.])
    """
    real = dense.view(dense.real.dtype)
    words = real.view(f"u{real.itemsize}")
    exponent: Any = np.array(np.inf, real.dtype).view(words.dtype)[()]
    out = np.empty(len(places), dense.dtype)
    is_finite = _take_finite(
        fixed(words), exponent, len(words) // max(1, len(dense)), fixed(dense), fixed(places), out
    )
    return out if is_finite else None


@compiled_loop
def _take_finite(
    words: Array, exponent: int, each: int, dense: Array, places: Array, out: Array
) -> bool:
    n = 0
    for first in range(0, dense.size, _PART):
        part = words[first * each : (first + _PART) * each]
        wild = 0
        for k in range(part.size):
            wild += (part[k] & exponent) == exponent
        if wild:
            return False
        while n < places.size and places[n] < first + _PART:
            out[n] = dense[places[n]]
            n += 1
    return True


# ------------------------------------------------------------------------------ choosing


def keep(mask: Array, places: Array, values: Array, kept: Array, out: Array) -> None:
    """Write the places and values that a mask keeps, of values of 1, 2, 4 or 8 bytes.

    Examples
    --------
    >>> kept, out = np.zeros(1, np.int64), np.zeros(1)
    >>> keep(np.array([False, True]), np.array([4, 6]), np.array([5.0, 7.0]), kept, out)
    >>> kept, out
    (array([6]), array([7.]))
    """
    word = f"u{values.itemsize}"
    _keep(fixed(mask), fixed(places), fixed(values).view(word), kept, out.view(word))


@compiled_loop
def _keep(mask: Array, places: Array, words: Array, kept: Array, out: Array) -> None:
    """Copy what a mask keeps."""
    n = 0
    for k in range(mask.size):
        if mask[k]:
            kept[n] = places[k]
            out[n] = words[k]
            n += 1
