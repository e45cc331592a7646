"""Loops over sparse elements that numba compiles, where NumPy and SciPy are slower. Begin with `warm`.

Integers come out as from the other body; so do floats but for the order in which they are added up. Every loop runs
without the interpreter lock. What comes in is taken as read-only, since numba compiles a loop for each kind of array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop
from tensorlake_spark.ops.element_loops import fixed

Array = np.ndarray[Any, Any]


def warm(loop: str, char: str) -> None:
    """Have a loop compiled, or loaded from numba's cache, for values of a dtype.

    Parameters
    ----------
    loop : {"spmm", "mttkrp", "triangle", "matches"}
        Which one.
    char : str
        ``dtype.char`` of the values.
    """
    ends, one = np.array([0, 1], np.int64), np.zeros(1, np.int64)
    value = np.ones(1, char)
    if loop == "spmm":
        for word in (np.int32, np.int64):
            spmm(ends, one.astype(word), value, value[:, None], value[:, None].copy())
    elif loop == "mttkrp":
        table = value[:, None]
        for to_last in (False, True):
            fibres(value, one, ends, table, table, one[None], one, table.copy(), to_last)
    elif loop == "triangle":
        for right in (value, value[:, None]):
            solve(ends, one, value, value, right.copy(), True)
    else:
        matches(one, one)


# ------------------------------------------------------------------------------ what two tensors have in common


def matches(a: Array, b: Array) -> tuple[Array, Array]:
    """Return where ascending places lie that both have: in the first and in the second.

    Examples
    --------
    >>> matches(np.array([1, 4, 9]), np.array([4, 5, 9]))
    (array([1, 2]), array([0, 2]))
    """
    of_a, of_b = (np.empty(min(len(a), len(b)) + 1, np.int64) for _ in range(2))
    count = _match(fixed(a, np.int64), fixed(b, np.int64), of_a, of_b)
    return of_a[:count], of_b[:count]


@compiled_loop
def _match(a: Array, b: Array, of_a: Array, of_b: Array) -> int:
    i = j = count = 0
    while i < a.size and j < b.size:
        # No branches: which one is smaller cannot be foreseen.
        here, there = a[i], b[j]
        of_a[count], of_b[count] = i, j
        count += here == there
        i += here <= there
        j += there <= here
    return count


# ------------------------------------------------------------------------------ sparse times dense


def spmm(ends: Array, cols: Array, data: Array, dense: Array, out: Array) -> None:
    """Write a sparse matrix times a dense one.

    Parameters
    ----------
    ends, cols, data : ndarray
        ``indptr``, ``indices`` and ``data`` of the matrix.
    dense : ndarray
        Of shape (columns of the matrix, m) and the dtype of `data`.
    out : ndarray
        Of shape (rows of the matrix, m), C-contiguous.

    Examples
    --------
    >>> out = np.empty((1, 2))
    >>> spmm(np.array([0, 1]), np.array([1]), np.array([2.0]), np.array([[1.0, 5.0], [3.0, 7.0]]), out)
    >>> out
    array([[ 6., 14.]])
    """
    _rows(fixed(ends, cols.dtype), fixed(cols), fixed(data), fixed(dense), out)


@compiled_loop
def _rows(ends: Array, cols: Array, data: Array, dense: Array, out: Array) -> None:
    for i in range(len(out)):
        row = out[i]
        for r in range(row.size):
            row[r] = 0
        for p in range(ends[i], ends[i + 1]):
            value, other = data[p], dense[cols[p]]
            for r in range(row.size):
                row[r] += value * other[r]


# ------------------------------------------------------------------------------ fibres times factors


def fibres(
    values: Array, last: Array, ends: Array, factor: Array, table: Array, near: Array, to: Array,
    out: Array, to_last: bool,
) -> None:  # fmt: skip
    """Add to `out` what the fibres along the last axis give.

    Parameters
    ----------
    values, last : ndarray, shape (nnz,)
        Values, and coordinates on the last axis.
    ends : int64 ndarray, shape (fibres + 1,)
        Where fibres begin and end.
    factor : ndarray, shape (length of the last axis, rank)
        Its factor; not looked at with `to_last`.
    table : ndarray, shape (n, rank)
        Factors of the other axes, one below the other, and
    near : int64 ndarray, shape (other axes, fibres)
        which rows of it belong to a fibre.
    to : int64 ndarray, shape (fibres,)
        Row of `out` of a fibre; not looked at with `to_last`.
    out : ndarray, shape (length of the mode, rank)
        Sums so far.
    to_last : bool
        Whether the mode is the last axis.
    """
    parts = fixed(values), fixed(last, np.int64), fixed(ends, np.int64)
    others = fixed(table), fixed(near, np.int64)
    if to_last:
        _spread(*parts, *others, out)
    else:
        _gather(*parts, fixed(factor), *others, fixed(to, np.int64), out)


@compiled_loop
def _gather(
    values: Array, last: Array, ends: Array, factor: Array, table: Array, near: Array, to: Array, out: Array
) -> None:  # fmt: skip
    rank = out.shape[1]
    sums = np.empty(rank, out.dtype)
    for f in range(to.size):
        sums[:] = 0
        for p in range(ends[f], ends[f + 1]):
            value, row = values[p], factor[last[p]]
            for r in range(rank):
                sums[r] += value * row[r]
        for m in range(near.shape[0]):
            row = table[near[m, f]]
            for r in range(rank):
                sums[r] *= row[r]
        target = out[to[f]]
        for r in range(rank):
            target[r] += sums[r]


@compiled_loop
def _spread(values: Array, last: Array, ends: Array, table: Array, near: Array, out: Array) -> None:
    rank = out.shape[1]
    product = np.empty(rank, out.dtype)
    for f in range(ends.size - 1):
        product[:] = 1
        for m in range(near.shape[0]):
            row = table[near[m, f]]
            for r in range(rank):
                product[r] *= row[r]
        for p in range(ends[f], ends[f + 1]):
            value, target = values[p], out[last[p]]
            for r in range(rank):
                target[r] += value * product[r]


# ------------------------------------------------------------------------------ triangles


def solve(ends: Array, cols: Array, data: Array, diagonal: Array, out: Array, lower: bool) -> None:
    """Solve triangular equations in place.

    Parameters
    ----------
    ends, cols, data : ndarray
        ``indptr``, ``indices`` and ``data`` of the triangle without its diagonal.
    diagonal : ndarray, shape (n,)
        Its diagonal, of the dtype of `data`.
    out : ndarray, shape (n,) or (n, m)
        The right sides, and then the solutions.
    lower : bool
        Which triangle it is.
    """
    loop = _solve_one if out.ndim == 1 else _solve_many
    loop(fixed(ends, np.int64), fixed(cols, np.int64), fixed(data), fixed(diagonal), out, lower)


@compiled_loop
def _solve_one(
    ends: Array, cols: Array, data: Array, diagonal: Array, out: Array, lower: bool
) -> None:
    size = out.size
    for n in range(size):
        i = n if lower else size - 1 - n
        total = out[i]
        for p in range(ends[i], ends[i + 1]):
            total -= data[p] * out[cols[p]]
        out[i] = total / diagonal[i]


@compiled_loop
def _solve_many(
    ends: Array, cols: Array, data: Array, diagonal: Array, out: Array, lower: bool
) -> None:
    size = len(out)
    for n in range(size):
        i = n if lower else size - 1 - n
        row = out[i]
        for p in range(ends[i], ends[i + 1]):
            value, other = data[p], out[cols[p]]
            for r in range(row.size):
                row[r] -= value * other[r]
        for r in range(row.size):
            row[r] /= diagonal[i]
