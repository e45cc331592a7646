"""Which samples a change is about: sids, a condition, or positions that may lie past the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.datasets.samples.dataset_table import DatasetTable
from tensorlake_spark.datasets.samples.sample_selection import select_samples, whole_numbers
from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidOptionError,
    SampleNotFoundError,
)

Array = np.ndarray[Any, Any]

MOST_GROWN = 1 << 24
"""An assignment past the end adds at most so many samples."""


def sids_of(table: DatasetTable, chosen: Any) -> tuple[Array, bool]:
    """Return the sids of samples, and whether it is one that was named by its number alone.

    Parameters
    ----------
    table : DatasetTable
        The dataset, at the version that is shown.
    chosen : int, sequence or array of int, or str
        Sids, or a condition of SQL.

    Raises
    ------
    SampleNotFoundError
        If there is no sample of that sid.
    InvalidKeyTypeError, InvalidOptionError
        If it is neither, or no condition.
    """
    if isinstance(chosen, str):
        return table._sids_of(table.positions_where(chosen)), False
    is_one = isinstance(chosen, (int, np.integer)) and not isinstance(chosen, bool)
    given = [chosen] if is_one else chosen
    found = whole_numbers(given)
    if not found.size and found.ndim == 1:
        return np.zeros(0, np.int64), False
    if found.dtype == bool and found.ndim == 1:
        raise InvalidKeyTypeError(
            "a mask names no samples; give the sids of those where it is true: ds.sids[mask]"
        )
    if found.ndim != 1 or found.dtype != np.int64:
        raise InvalidKeyTypeError(
            f"{chosen!r:.80} names no samples; give sids, as one number or several, or a condition such as "
            "\"label = 'cat'\""
        )
    missing = np.ones(len(found), bool)
    if len(table):
        missing = table.stored.positions_of(found) < 0
    if missing.any():
        raise SampleNotFoundError(
            f"the dataset at {table.uri} has no sample with sid {[*given][int(np.argmax(missing))]} at version "
            f"{table.version}; ds.sids has them all"
        )
    return found, is_one


def positions_past(key: Any, count: int, what: str) -> tuple[int | Array, int]:
    """Return positions as `select_samples` does, also past the end, and how many samples there are then.

    Examples
    --------
    >>> positions_past(7, 5, "x"), positions_past(slice(-1, 7), 5, "x")
    ((7, 8), (array([4, 5, 6]), 7))
    """
    total = count
    if isinstance(key, slice):
        if isinstance(key.stop, (int, np.integer)) and (key.step is None or key.step > 0):
            total = max(count, int(key.stop))
        if total > count and isinstance(key.start, (int, np.integer)) and key.start < 0:
            key = slice(max(0, int(key.start) + count), key.stop, key.step)
    elif not isinstance(key, (str, bytes, bool)) and key is not Ellipsis:
        found = whole_numbers(key)
        if found.dtype == np.int64 and found.size and found.ndim <= 1:
            total = max(count, int(found.max()) + 1)
            if found.min() < -count:
                select_samples(key, count, what)
            key = found + count * (found < 0)
            key = int(key) if found.ndim == 0 else key
    if total - count > MOST_GROWN:
        raise InvalidKeyError(
            f"sample {total - 1} is {total - count} past the end of {what}, which grows by at most {MOST_GROWN} at "
            "a time; extend it"
        )
    return select_samples(key, total, what), total


def only_once(sids: Array, operation: str) -> None:
    """Raise InvalidOptionError if a sample is named twice."""
    found, counts = np.unique(sids, return_counts=True)
    if len(found) < len(sids):
        raise InvalidOptionError(
            f"sid {found[counts > 1][0]} is named twice in this {operation}; name each sample once"
        )
