"""How many bytes rows have, without a look at each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]


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
        for column in batch.columns:
            ends[1:] += _value_ends(column)[1:]
        start += batch.num_rows
    return out


def _value_ends(values: pa.Array) -> Array:
    """Return how many bytes come before each value, and after the last one all."""
    kind, count = values.type, len(values)
    t = pa.types
    if t.is_struct(kind):
        inner = [_value_ends(values.field(i)) for i in range(kind.num_fields)]
        total: Array = np.sum([np.zeros(count + 1, np.int64), *inner], axis=0)
        return total
    wide = t.is_large_binary(kind) or t.is_large_string(kind) or t.is_large_list(kind)
    if wide or t.is_binary(kind) or t.is_string(kind) or t.is_list(kind):
        form = np.int64 if wide else np.int32
        offsets = values.buffers()[1]
        if not count or offsets is None:
            return np.zeros(count + 1, np.int64)
        ends = np.frombuffer(offsets, form)[values.offset :][: count + 1].astype(np.int64)
        sizes = ends
        if t.is_list(kind) or t.is_large_list(kind):
            sizes = _value_ends(values.values)[ends]
        out: Array = sizes - sizes[0] + np.arange(count + 1) * np.dtype(form).itemsize
        return out
    each = -(-values.nbytes // max(1, count))
    fixed: Array = np.arange(count + 1) * each
    return fixed
