"""How many bytes rows have, without a look at each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.rows.binary_views import lengths_of

Array = np.ndarray[Any, Any]


def nbytes_of(values: pa.Array) -> int:
    """Return about how many bytes an array has; Arrow does not tell it of views.

    Examples
    --------
    >>> nbytes_of(pa.array([b"abc", None], pa.binary_view()))
    11
    """
    ends = np.zeros(len(values) + 1, np.int64)
    return _add(values, ends) * len(values) + int(ends[-1])


def row_ends(rows: pa.Table) -> Array:
    """Return how many bytes come before each row of a table, and after the last one all: about.

    Examples
    --------
    >>> row_ends(pa.table({"a": [b"xyz", None, b"z"], "b": pa.array([1, 2, 3], pa.int16())})).tolist()
    [0, 9, 15, 22]
    """
    out = np.zeros(rows.num_rows + 1, np.int64)
    start = 0
    for batch in rows.to_batches():
        ends = out[start : start + batch.num_rows + 1]
        ends[1:] = ends[0]
        each = sum(_add(column, ends) for column in batch.columns)
        ends += np.arange(len(ends)) * each
        start += batch.num_rows
    return out


def _add(values: pa.Array, ends: Array) -> int:
    """Add the bytes before each value, and after the last one, to `ends`; return those that all values have beside."""
    kind, count = values.type, len(values)
    t = pa.types
    if t.is_struct(kind):
        return sum(_add(values.field(i), ends) for i in range(kind.num_fields))
    if t.is_binary_view(kind):
        ends[1:] += np.cumsum(lengths_of(values))
        return 4  # for the length, as in a file
    wide = t.is_large_binary(kind) or t.is_large_string(kind) or t.is_large_list(kind)
    if not (wide or t.is_binary(kind) or t.is_string(kind) or t.is_list(kind)):
        return -(-int(values.nbytes) // max(1, count))
    form = np.int64 if wide else np.int32
    offsets = values.buffers()[1]
    if not count or offsets is None:
        return 0
    marks = np.frombuffer(offsets, form)[values.offset :][: count + 1]
    if t.is_list(kind) or t.is_large_list(kind):
        inner = np.zeros(len(values.values) + 1, np.int64)
        each = _add(values.values, inner)
        inner += np.arange(len(inner)) * each
        marks = inner[marks]
    ends += marks
    ends -= marks[0]
    return np.dtype(form).itemsize
