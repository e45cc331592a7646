"""The digest of a row, and of what rows make up, over the byte forms that FORMAT.md fixes."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.tensor.spec import STORED_AXES

SIZE = 32
"""Bytes of a digest: SHA-256."""

CORNERS = tuple(f"{side}.d{k}" for side in ("lo", "hi") for k in range(STORED_AXES))
"""Leaf columns of a row's box."""

DATA_COLUMNS = ("id", "nnz", "layout", "params", "dtype", "codec", *CORNERS)
"""Leaf columns that the digest of a data row is made of, beside its payload."""

META_COLUMNS = ("id", "layout", "dtype", "shape", "block_shape", "codec", "attrs")
"""Columns that the digest of a metadata row is made of."""

ROW, METADATA, ROW_GROUP, FILE, TENSOR, TABLE = b"r", b"m", b"g", b"f", b"t", b"l"
"""Kinds of nodes: what is of one kind never has the digest of another."""

NO_METADATA = bytes(SIZE)
"""Stands for the metadata of a tensor that has none."""

_FORM = b"TLD1"
_NULL = b"\xff\xff\xff\xff"
_TOTALS = ("format", "rows", "nnz", "bytes")
_length = struct.Struct("<Q").pack
_count = struct.Struct("<I").pack


def node_digest(kind: bytes, parts: Iterable[bytes]) -> bytes:
    """Return the digest of a node from those of its children.

    Examples
    --------
    >>> node_digest(TABLE, []).hex()[:16]
    'dde5484e8896d3dd'
    """
    return hashlib.sha256(b"".join((_FORM, kind, *parts))).digest()


def row_digest(head: bytes, index: Any, values: Any) -> bytes:
    """Return the digest of a data row.

    Parameters
    ----------
    head : bytes
        All before its payload, as `heads` returns it.
    index, values : bytes-like, or None
        Its payload.
    """
    if index is None:
        head += _NULL + _NULL
    else:
        head = b"".join((head, _length(len(index)), index))
    if values is None:
        return hashlib.sha256(head + _NULL + _NULL).digest()
    found = hashlib.sha256(head + _length(len(values)))
    found.update(values)
    return found.digest()


def heads(columns: Mapping[str, Any]) -> list[bytes]:
    """Return what stands before the payload of some data rows in their byte form.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array
        `DATA_COLUMNS` by name; a corner that is not there is null in all rows.
    """
    texts = (columns[name].to_pylist() for name in ("id", "layout", "params", "dtype", "codec"))
    counts = np.ascontiguousarray(columns["nnz"].to_numpy(False), "<i8").tobytes()
    values, given = corner_values(columns)
    masks = np.packbits(given, axis=1, bitorder="little").tobytes()
    ends = np.cumsum(given.sum(axis=1)) * 8
    data = values[given].astype("<i8").tobytes()
    out, start = [], 0
    for i, (*five, end) in enumerate(zip(*texts, ends.tolist(), strict=True)):
        rest = (masks[2 * i : 2 * i + 2], data[start:end], counts[8 * i : 8 * i + 8])
        out.append(b"".join((_texts(*five), *rest)))
        start = end
    return out


def corner_values(columns: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return lower and upper corners of rows, int64 of shape (rows, 16), and which of them are not null."""
    count = len(columns["id"])
    values, given = np.zeros((count, len(CORNERS)), np.int64), np.zeros((count, len(CORNERS)), bool)
    for k, name in enumerate(CORNERS):
        leaf = columns.get(name)
        if leaf is not None and leaf.null_count < count:
            given[:, k] = leaf.is_valid().to_numpy(False)
            values[:, k] = leaf.fill_null(0).to_numpy(False)
    return values, given


@lru_cache(maxsize=256)
def _texts(*texts: str | None) -> bytes:
    """Return the beginning of the byte form, which many rows share."""
    return b"".join((_FORM, ROW, *map(_text, texts)))


def _text(text: str | None) -> bytes:
    if text is None:
        return _NULL
    data = text.encode()
    return _count(len(data)) + data


def meta_digest(row: Mapping[str, Any]) -> bytes:
    """Return the digest of a metadata row: of what it says of the tensor, without the totals.

    Parameters
    ----------
    row : mapping
        `META_COLUMNS` as Python values.
    """
    body = _attrs(row)
    attrs = row["attrs"]
    if body is not None:
        said = {name: value for name, value in body.items() if name not in _TOTALS}
        attrs = json.dumps(said, sort_keys=True, separators=(",", ":"))
    parts = [_text(row[name]) for name in ("id", "layout", "dtype", "codec")]
    parts += [_sides(row[name]) for name in ("shape", "block_shape")]
    return node_digest(METADATA, [*parts, _text(attrs)])


def _sides(sides: Sequence[int | None] | None) -> bytes:
    if sides is None:
        return _NULL
    if None in sides:  # of a damaged file; whoever reads the row says so
        return _text(str(sides))
    return struct.pack(f"<I{len(sides)}q", len(sides), *sides)


def keeps_order(row: Mapping[str, Any]) -> bool:
    """Whether the order of a tensor's rows is a part of what it holds: the last of several elements counts."""
    body = _attrs(row)
    params = body.get("params") if body is not None else None
    return isinstance(params, dict) and params.get("duplicates") == "last"


def _attrs(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the column ``attrs`` says, None where it is damaged."""
    try:
        body = json.loads(row["attrs"])
    except (ValueError, TypeError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def leaf_columns(rows: pa.RecordBatch | pa.Table) -> dict[str, pa.Array]:
    """Return the columns of some rows by name, those of corners as leaves."""
    out = {}
    for name in rows.schema.names:
        column = rows.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if name not in ("lo", "hi"):
            out[name] = column
            continue
        names = [f"{name}.{field.name}" for field in column.type]
        out |= dict(zip(names, column.flatten(), strict=True))
    return out
