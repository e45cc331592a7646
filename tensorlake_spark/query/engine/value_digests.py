"""Digests of values, tensors among them: rows are compared by them, and no tensor is held for it."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.query.functions.row_values import RowError, Values, items_of

_BYTES = 16
_OTHERS = (dt.date, dt.time, dt.timedelta, Decimal)


def value_digests(values: Values, rows: int) -> pa.Array:
    """Return a digest of the value of each row, null where it is null.

    Two tensors have the same if their dtypes, shapes and elements are the same. NaN is the same as NaN, and 0.0 as
    -0.0, as they are in SQL. Single numbers have the same if they are equal, whatever their dtypes.

    Parameters
    ----------
    values : Values
        Of a column or an expression.
    rows : int
        How many.

    Raises
    ------
    RowError
        If a value is of a kind that cannot be compared.

    Examples
    --------
    >>> found = value_digests([np.zeros(2), None, -np.zeros(2), np.zeros(2, "f4"), 1, 1.0], 6).to_pylist()
    >>> [found.index(one) for one in found]
    [0, 1, 0, 3, 4, 4]
    """
    out = []
    for row, value in enumerate(items_of(values, rows)):
        try:
            out.append(None if value is None else _digest(value))
        except TypeError as error:
            raise RowError(row, str(error)) from error
    return pa.array(out, pa.binary())


def _digest(value: Any) -> bytes:
    found = hashlib.blake2b(digest_size=_BYTES)
    _add(found, value)
    return found.digest()


def _add(found: Any, value: Any) -> None:
    """Add what a value is and what is in it; lengths stand before, so that no two values look alike."""
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind not in "OUS":
        _add_array(found, value)
    elif isinstance(value, (np.ndarray, np.generic)):
        _add(found, value.tolist())
    elif isinstance(value, (bool, int, float, complex)):
        found.update(f"number {_plain(value)!r}".encode())
    elif isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        found.update(f"{type(value).__name__} {len(data)} ".encode())
        found.update(data)
    elif isinstance(value, Mapping):
        _add(found, [part for key in sorted(value) for part in (key, value[key])])
    elif isinstance(value, (list, tuple)):
        found.update(f"list {len(value)} ".encode())
        for one in value:
            _add(found, one)
    elif value is None or isinstance(value, _OTHERS):
        found.update(f"{value!r} ".encode())
    else:
        raise TypeError(f"values of type {type(value).__name__} cannot be compared")


def _add_array(found: Any, value: np.ndarray[Any, Any]) -> None:
    dtype = value.dtype if value.dtype.kind == "V" else value.dtype.newbyteorder("<")
    found.update(f"array {dtype!s} {value.shape} ".encode())
    data = np.ascontiguousarray(value, dtype)
    if data.dtype.kind == "c":
        data = data.view(data.real.dtype)
    if data.dtype.kind in "fV":  # NumPy counts bfloat16 and its like as void
        data = data + data.dtype.type(0)  # -0.0 becomes 0.0
        data[np.isnan(data)] = np.nan
    found.update(data.view(np.uint8).reshape(-1))


def _plain(value: Any) -> Any:
    """Return a number as all that are equal to it are written."""
    if isinstance(value, complex) and not value.imag:
        value = value.real
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
