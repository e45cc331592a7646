"""Arrow columns as parts of an array of shape (row, feature), and such an array as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.columns.feature_types import type_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import select_simple
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.reading.read import read
from tensorlake_spark.rows.metadata import Meta

Array = np.ndarray[Any, Any]


class Columns:
    """Arrow columns of one dtype as an array of shape (row, feature), which is made part by part.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        All of one length. What is null counts as zero.
    dtype : str
        Of the array.
    """

    def __init__(self, columns: Sequence[pa.Array], dtype: str) -> None:
        self.columns = columns
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape = (len(columns[0]), len(columns))

    def __getitem__(self, key: tuple[slice, slice]) -> Array:
        rows, features = key
        start, stop, _ = rows.indices(self.shape[0])
        some = self.columns[features]
        out: Array = np.empty((len(some), stop - start), self.dtype)
        for line, column in zip(out, some, strict=True):
            line[...] = _values(column.slice(start, stop - start), self.dtype)
        return np.asarray(out.T)


class Nulls:
    """Which values of Arrow columns are null: a bool array of shape (row, feature), which is made part by part.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        All of one length.
    before : (int, int)
        So many rows and features, without a null, come before those of the columns.
    """

    dtype: np.dtype[Any] = np.dtype(bool)

    def __init__(self, columns: Sequence[pa.Array], before: tuple[int, int] = (0, 0)) -> None:
        self.columns = columns
        self.before = before
        self.shape = (before[0] + len(columns[0]), before[1] + len(columns))

    def __getitem__(self, key: tuple[slice, slice]) -> Array:
        (row, last_row, _), (first, last, _) = (k.indices(n) for k, n in zip(key, self.shape))
        out: Array = np.zeros((last - first, last_row - row), bool)
        start = max(row, self.before[0])
        for feature in range(max(first, self.before[1]), last):
            column = self.columns[feature - self.before[1]]
            if column.null_count and start < last_row:
                part = column.slice(start - self.before[0], last_row - start)
                out[feature - first, start - row :] = _is_null(part)
        return np.asarray(out.T)


class StoredColumns:
    """Features of a tensor, chosen and in an order, as an array that is read part by part."""

    def __init__(self, snapshot: Snapshot, meta: Meta, columns: Array, verify: bool) -> None:
        self.snapshot, self.meta, self.columns, self.verify = snapshot, meta, columns, verify
        self.dtype = meta.spec.dtype
        self.shape = (meta.spec.shape[0], len(columns))

    def __getitem__(self, key: tuple[slice, slice]) -> Array:
        rows, features = key
        found = values_of(self.snapshot, self.meta, rows, self.columns[features], self.verify)
        return np.asarray(found.T)


def values_of(
    snapshot: Snapshot, meta: Meta, rows: slice, columns: Array, verify: bool = True
) -> Array:
    """Return some features of a tensor, of some rows.

    Parameters
    ----------
    snapshot, meta
        The version and the tensor in it.
    rows : slice
        Which rows.
    columns : int64 ndarray
        Which features, by their index in the tensor, none twice.
    verify : bool
        Whether lost rows are an error.

    Returns
    -------
    ndarray, shape (features, rows)
        C-contiguous, so that each feature lies in one piece.
    """
    first, count = int(columns[0]), len(columns)
    adjoin = count == 1 or bool((np.diff(columns) == 1).all())
    selection = select_simple(
        (rows, slice(first, first + count) if adjoin else columns), meta.spec.shape
    )
    if layout_of(meta.spec.layout).is_sparse:  # somebody converted the tensor
        found = read(snapshot, meta, selection, verify)
        return np.ascontiguousarray(found.todense().T)
    store: Array = np.empty(selection.storage_shape[::-1], meta.spec.dtype)
    read(snapshot, meta, selection, verify, store.T)
    return np.ascontiguousarray(store[:, ::-1]) if 0 in selection.flips else store


def arrow_columns(
    values: Array, nulls: Array | None, dtype: str, meanings: Sequence[str | None]
) -> list[pa.Array]:
    """Return features as Arrow arrays, without a copy of their values where Arrow has them in the same form.

    Parameters
    ----------
    values : ndarray, shape (features, rows)
        C-contiguous.
    nulls : bool ndarray of the same shape, or None
        What is null.
    dtype : str
        Of the tensor.
    meanings : sequence of str or None
        As the tensor's attributes keep the type of each feature, see `feature_types.meaning_of`.
    """
    rows = values.shape[1]
    kinds = {meaning: type_of(dtype, meaning) for meaning in {*meanings}}
    if nulls is None and len(kinds) == 1 and dtype != "bool":
        # Slices of one array: a thousand of them take half as long as to make a thousand arrays.
        (kind,) = kinds.values()
        buffers = [None, pa.py_buffer(values.reshape(-1))]
        whole = pa.Array.from_buffers(kind, values.size, buffers, 0)
        return [whole.slice(k * rows, rows) for k in range(len(values))]
    if dtype == "bool":
        values = np.packbits(values, axis=1, bitorder="little")
    data, width = pa.py_buffer(values.reshape(-1)), values.shape[1] * values.itemsize
    counts = [0] * len(values) if nulls is None else nulls.sum(axis=1).tolist()
    valid = None if nulls is None else np.packbits(~nulls, axis=1, bitorder="little")
    return [
        pa.Array.from_buffers(
            kinds[meaning],
            rows,
            [
                pa.py_buffer(valid[k]) if valid is not None and counts[k] else None,
                data.slice(k * width, width),
            ],
            counts[k],
        )
        for k, meaning in enumerate(meanings)
    ]


def _values(column: pa.Array, dtype: np.dtype[Any]) -> Array:
    """Return the values of a column; zero where it is null."""
    if dtype.kind == "b":
        return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False))
    buffer = column.buffers()[1]
    if buffer is None:  # no rows
        return np.zeros(len(column), dtype)
    values = np.frombuffer(buffer, dtype, len(column), column.offset * dtype.itemsize)
    if column.null_count:
        values = np.where(_is_null(column), np.zeros((), dtype), values)
    return values


def _is_null(column: pa.Array) -> Array:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))
