"""Columns of Arrow's type ``binary_view``, whose values are bytes that lie elsewhere and are not copied.

Parquet files have no such type: they store these as any bytes. (Arrow columnar format, "Variable-size Binary View
Layout".)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]

VIEW = np.dtype([("length", "<i4"), ("prefix", "V4"), ("buffer", "<i4"), ("offset", "<i4")])
"""One value of Arrow's ``binary_view``."""

_SMALL = 512  # bytes of a value, on average, that are copied as fast as Python makes a view of them

INLINE = 12
"""A value up to this length lies in the view itself, after its length."""


def payloads(column: pa.Array, rows: Sequence[int]) -> list[Any]:
    """Return some values of a binary column as bytes-like objects, or None for a null.

    A scalar of type ``binary_view`` copies its bytes; here they stay where they are (Arrow columnar format,
    "Variable-size Binary View Layout"), unless they are few: Python's garbage collector looks at every view of memory,
    and not at bytes.

    Examples
    --------
    >>> bytes(payloads(pa.array([b"a", None]), [0])[0])
    b'a'
    """
    if column.type != pa.binary_view():
        return [column[i].as_buffer() for i in rows]
    nulls = column.null_count
    if nulls == len(column):  # as of dense rows, which have no index
        return [None] * len(rows)
    # A buffer without a byte may be None. Slices of a memoryview cost a fifth of those of Arrow's buffers.
    inline, *data = [memoryview(buffer or b"").cast("B") for buffer in column.buffers()[1:]]
    chosen = np.asarray(rows, np.int64)
    views = np.frombuffer(inline, VIEW)[column.offset :][: len(column)][chosen]
    lengths, buffers = views["length"], views["buffer"]
    starts = views["offset"].astype(np.int64)  # a value may end where no offset reaches
    short = np.flatnonzero(lengths <= INLINE)
    if len(short):  # they lie in the views: nothing is looked up for them, until the end
        buffers = buffers.copy()
        starts[short], buffers[short] = 0, -1
        data.append(inline)
    places = buffers.tolist(), starts.tolist(), (starts + lengths).tolist()
    spans = zip(*places, strict=True)
    if lengths.sum(dtype=np.int64) <= _SMALL * len(chosen):
        out: list[Any] = [data[n][start:stop].tobytes() for n, start, stop in spans]
    else:
        out = [data[n][start:stop] for n, start, stop in spans]
    for k in short.tolist():
        place = int(column.offset + chosen[k]) * VIEW.itemsize + 4
        out[k] = inline[place : place + int(lengths[k])]
    if nulls:
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))[chosen]
        for k in np.flatnonzero(~valid).tolist():
            out[k] = None
    return out


def views_of(values: Sequence[bytes | None]) -> pa.Array:
    """Return bytes as a column of type ``binary_view``, whose buffers are these bytes; only short ones are copied.

    Arrow has no ``take`` and no ``filter`` for such columns.

    Examples
    --------
    >>> views_of([b"a", None, b"longer than a view"]).to_pylist()
    [b'a', None, b'longer than a view']
    """
    count = len(values)
    there = None if None not in values else [v is not None for v in values]
    known: list[Any] = [v or b"" for v in values] if there else [*values]
    lengths = np.array([*map(len, known)], np.int64)
    views = np.zeros(count, VIEW)
    views["length"] = lengths
    apart = np.flatnonzero(lengths > INLINE)
    pieces = known if len(apart) == count else [known[i] for i in apart.tolist()]
    views["prefix"][apart] = np.frombuffer(b"".join([v[:4] for v in pieces]), "V4")
    views["buffer"][apart] = np.arange(len(apart))
    raw = views.view(np.uint8).reshape(count, VIEW.itemsize)
    for i in np.flatnonzero((lengths > 0) & (lengths <= INLINE)).tolist():
        raw[i, 4 : 4 + lengths[i]] = np.frombuffer(known[i], np.uint8)
    valid = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [valid, pa.py_buffer(views), *map(pa.py_buffer, pieces)]
    return pa.Array.from_buffers(pa.binary_view(), count, buffers)


def lengths_of(column: pa.Array, null: int = 0) -> Array:
    """Return the length of each value of a column of type ``binary_view``, and `null` for a null: int64.

    Examples
    --------
    >>> lengths_of(pa.array([b"abc", None], pa.binary_view())).tolist()
    [3, 0]
    """
    views = np.frombuffer(column.buffers()[1] or b"", VIEW)[column.offset :][: len(column)]
    lengths = views["length"].astype(np.int64)
    if column.null_count:
        lengths[np.asarray(column.is_null().to_numpy(zero_copy_only=False))] = null
    return lengths


def without_views(table: pa.Table) -> pa.Table:
    """Return a table with plain strings and binaries, also inside: files of deltalake ask for views of them."""
    schema = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind
