"""Loops over samples that slide, which numba compiles: from a timeline and its edits to the result.

Every loop runs without the interpreter lock. Their other bodies, in NumPy, are the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]


def warm(itemsize: int) -> None:
    """Have the loop compiled, or loaded from numba's cache, for ids of so many bytes."""
    ids, numbers = np.zeros(2, f"u{itemsize}"), np.zeros(1, np.int64)
    put(ids, numbers, numbers, 2, 0, 1, numbers, ids[:1], ids.reshape(1, 2))


@compiled_loop
def _first(ascending: Array, number: int) -> Any:
    """Return where the first number stands that is not below another one."""
    low, high = 0, ascending.size
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_loop
def put(
    values: Array, starts: Array, rows: Array, width: int, first: int, step: int,
    edited: Array, edits: Array, out: Array,
) -> None:  # fmt: skip
    """Write some rows of a timeline, some columns of them.

    Parameters
    ----------
    values, edits : arrays of words
        The timeline, and what is edited.
    starts : int64 array
        Where on the timeline each row begins.
    rows : int64 array
        The numbers of the rows.
    width, first, step : int
        Elements of a row; the first column, and from one to the next.
    edited : int64 array
        What elements are edited, ascending.
    out : array of words, shape (rows, columns)
        Where they go.
    """
    columns, at, before = out.shape[1], 0, -2
    for n in range(rows.size):
        number, row = rows[n], out[n]
        begin = starts[number] + first
        some = values[begin : begin + (columns - 1) * step + 1]
        if step == 1:
            for k in range(columns):
                row[k] = some[k]
        else:
            for k in range(columns):
                row[k] = some[k * step]
        if edited.size:
            if number != before + 1:
                at = _first(edited, number * width)
            before = number
            while at < edited.size and edited[at] < (number + 1) * width:
                place = edited[at] - number * width - first
                if place >= 0 and place % step == 0 and place // step < columns:
                    row[place // step] = edits[at]
                at += 1
