"""Rows in an order: alike beside each other, drawn by weights, with their neighbours, one for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import InvalidQueryError

Array = np.ndarray[Any, Any]

MOST_ROWS = 100_000_000
"""Rows that a clause may make of fewer."""


def arranged(table: pa.Table, keys: Sequence[str]) -> Array:
    """Return the order in which rows with the same keys lie together: groups by their first row, rows as they were.

    Examples
    --------
    >>> arranged(pa.table({"a": ["x", "y", "x", "z", "y"]}), ["a"]).tolist()
    [0, 2, 1, 4, 3]
    """
    codes = np.zeros(table.num_rows, np.int64)
    for key in keys:
        column = table.column(key).combine_chunks()
        own = _codes(column)
        codes = pd.factorize(codes * (int(own.max(initial=0)) + 1) + own)[0]
    return np.argsort(codes, kind="stable")


def _codes(column: Any) -> Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_nested(column.type):
        return np.asarray(pd.factorize(pd.Series([str(v) for v in column.to_pylist()]))[0])
    if pa.types.is_floating(column.type):  # Arrow tells 0.0 and -0.0 apart, and SQL does not
        column = pc.add(column, pa.scalar(0, column.type))
    encoded = column.dictionary_encode()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    found = encoded.indices.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(np.isnan(found), -1, found).astype(np.int64) + 1


def sampled(weights: pa.Array, count: int, replace: bool, seed: int) -> Array:
    """Return rows that are drawn by their weights, in the order in which they are drawn.

    Parameters
    ----------
    weights : pyarrow.Array
        One a row; true and false are 1 and 0, null is 0.
    count : int
        How many are drawn; without replacement at most those that have a weight.
    replace : bool
        Whether a row may be drawn more than once.
    seed : int
        The same seed draws the same rows.

    Raises
    ------
    InvalidQueryError
        If a weight is negative or not finite, all are zero and rows have to be drawn, or too many are drawn.

    Examples
    --------
    >>> sampled(pa.array([0.0, 1.0, 0.0]), 2, True, 0).tolist()
    [1, 1]
    """
    try:
        given = np.asarray(
            weights.cast(pa.float64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
        )
    except pa.ArrowException as error:
        raise InvalidQueryError(f"SAMPLE BY takes a number as weight: {error}") from error
    wrong = np.flatnonzero(~np.isfinite(given) | (given < 0))
    if len(wrong):
        raise InvalidQueryError(
            f"SAMPLE BY has the weight {given[wrong[0]]} in row {wrong[0]}; weights are finite, and not below 0"
        )
    some = np.flatnonzero(given > 0)
    if not len(some):
        if count and len(given):
            raise InvalidQueryError("SAMPLE BY has no weight above 0, so nothing can be drawn")
        return some
    check_rows("SAMPLE BY", count if replace else 0)
    rng = np.random.default_rng(seed)
    p = np.ldexp(given[some], -np.frexp(given.max())[1])  # by a power of two: now the sum is finite
    p /= p.sum()
    if replace:
        ends = np.cumsum(p)
        drawn = np.searchsorted(ends, rng.random(count) * ends[-1], side="right")
        chosen: Array = some[np.minimum(drawn, len(some) - 1)]
        return chosen
    # The rows with the least arrival times of clocks that tick at the rate of their weights.
    with np.errstate(over="ignore", divide="ignore"):  # what is infinite comes last
        times = rng.exponential(size=len(some)) / p
    rest: Array = some[np.argsort(times, kind="stable")[:count]]
    return rest


def expanded(positions: Array, before: int, after: int, count: int, overlap: bool) -> Array:
    """Return positions with those before and after each.

    Parameters
    ----------
    positions : int64 ndarray
        What was found.
    before, after : int
        How many beside each.
    count : int
        How many there are at all.
    overlap : bool
        Whether a position comes once for each that it is beside; else it comes once, and all are in order.

    Raises
    ------
    InvalidQueryError
        If these are more than `MOST_ROWS`.

    Examples
    --------
    >>> expanded(np.array([1, 3]), 1, 1, 5, False).tolist(), expanded(np.array([1, 3]), 1, 1, 4, True).tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 2, 3])
    """
    starts = np.maximum(positions - min(before, count), 0)
    ends = np.minimum(positions + min(after, count) + 1, count)
    if not overlap:
        edges = np.zeros(count + 1, np.int64)
        np.add.at(edges, starts, 1)
        np.subtract.at(edges, ends, 1)
        inside: Array = np.flatnonzero(np.cumsum(edges[:-1]))
        return inside
    lengths = ends - starts
    check_rows("EXPAND BY", int(lengths.sum()))
    firsts = np.cumsum(lengths) - lengths
    each: Array = np.arange(int(lengths.sum())) - np.repeat(firsts - starts, lengths)
    return each


def check_rows(clause: str, count: int) -> None:
    """Refuse a clause that makes more than `MOST_ROWS`."""
    if count > MOST_ROWS:
        raise InvalidQueryError(
            f"{clause} makes {count:,} rows, and at most {MOST_ROWS:,} are made"
        )


def split(lengths: Sequence[pa.Array]) -> tuple[Array, Array]:
    """Return for each element of each row the number of the row, and its own.

    Raises
    ------
    InvalidQueryError
        If columns of a row have different lengths.

    Examples
    --------
    >>> [part.tolist() for part in split([pa.array([2, None, 1])])]
    [[0, 0, 2], [0, 1, 0]]
    """
    counts = [
        np.asarray(one.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
        for one in lengths
    ]
    for other in counts[1:]:
        wrong = np.flatnonzero(other != counts[0])
        if len(wrong):
            row = int(wrong[0])
            raise InvalidQueryError(
                f"UNGROUP BY names columns with {counts[0][row]} and {other[row]} elements in row {row}; name columns "
                "that have as many"
            )
    rows = np.repeat(np.arange(len(counts[0])), counts[0])
    starts = np.cumsum(counts[0]) - counts[0]
    return rows, np.arange(len(rows)) - starts[rows]
