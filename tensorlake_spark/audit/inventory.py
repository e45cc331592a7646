"""The rows of a table without their payload: each checked on its own, and what is kept to check them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import CorruptDataError, TensorLakeError
from tensorlake_spark.layouts import LAYOUTS, layout_of
from tensorlake_spark.layouts.coding.chain import parted, unread
from tensorlake_spark.layouts.layout_registry import unread_layout
from tensorlake_spark.layouts.verification import box_text, boxes
from tensorlake_spark.rows.binary_views import payloads
from tensorlake_spark.rows.checksum import crc_of
from tensorlake_spark.rows.metadata import META_COLUMNS, Meta, read_meta
from tensorlake_spark.rows.row import PAYLOAD
from tensorlake_spark.tensor.spec import STORED_AXES, dtype_of

Array = np.ndarray[Any, Any]
_HEADS = ("layout", "params", "dtype", "codec")

Sides = tuple[int | None, ...] | None
"""What a row says of a shape, as it stands in the column."""


@dataclass(frozen=True, slots=True)
class RowFault:
    """What is wrong with one row, or all rows of a tensor in a row group."""

    path: str
    tensor_id: str
    place: str
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Data rows of one tensor from one row group that are alike.

    Attributes
    ----------
    path : str
        The file.
    layout, dtype : str
        As in the columns.
    lo, hi : int64 ndarray, shape (rows, ndim)
        Their boxes.
    seq, nnz, nbytes : int64 ndarray, shape (rows,)
        Their places, stored elements and bytes of payload.
    said : dict of (shape, block shape) to list of int
        What their columns ``shape`` and ``block_shape`` say, and which rows say so. No checksum covers these columns.
    """

    path: str
    layout: str
    dtype: str
    lo: Array
    hi: Array
    seq: Array
    nnz: Array
    nbytes: Array
    said: dict[tuple[Sides, Sides], list[int]]


@dataclass(frozen=True, slots=True)
class Description:
    """A metadata row; `meta` is None where it is damaged."""

    path: str
    tensor_id: str
    seq: int
    meta: Meta | None


def take_stock(
    path: str, batch: pa.RecordBatch
) -> tuple[dict[str, list[Part]], list[Description], list[RowFault]]:
    """Check the rows of a row group, each on its own, and return what is left without the payload.

    Parameters
    ----------
    path : str
        The file, for messages.
    batch : pyarrow.RecordBatch
        Live rows, with all columns.

    Returns
    -------
    parts : dict of str to list of Part
        By tensor. Damaged rows are in them too: they are there.
    descriptions : list of Description
        The metadata rows.
    faults : list of RowFault
        Rows that fail their checksum, or make no sense.
    """
    parts: dict[str, list[Part]] = {}
    descriptions: list[Description] = []
    faults: list[RowFault] = []
    is_meta = pc.equal(batch.column("nnz"), 0)
    for row in batch.filter(is_meta).select(list(META_COLUMNS)).to_pylist():
        meta = None
        try:
            meta = read_meta(row)
        except (TensorLakeError, ValueError, KeyError, TypeError, AttributeError) as error:
            faults.append(RowFault(path, row["id"], f"metadata row {row['seq']}", _sentence(error)))
        descriptions.append(Description(path, row["id"], row["seq"], meta))
    data = batch.filter(pc.invert(is_meta))
    for tensor_id, layout, dtype, ndim, rows in _alike(data):
        part, wrong = _check_rows(path, layout, dtype, ndim, rows)
        faults += [RowFault(path, tensor_id, place, text) for place, text in wrong]
        parts.setdefault(tensor_id, []).append(part)
    return parts, descriptions, faults


def _alike(batch: pa.RecordBatch) -> Iterator[tuple[str, str, str, int, pa.RecordBatch]]:
    """Yield the rows of each tensor that have one layout, dtype and rank."""
    ranks = pc.fill_null(pc.list_value_length(batch.column("shape")), -1).to_pylist()
    names = (batch.column(name).to_pylist() for name in ("id", "layout", "dtype"))
    groups: dict[tuple[str, str, str, int], list[int]] = {}
    for i, key in enumerate(zip(*names, ranks, strict=True)):
        groups.setdefault(key, []).append(i)
    for key, places in groups.items():
        rows = batch if len(places) == batch.num_rows else batch.take(pa.array(places))
        yield (*key, rows)


def _check_rows(
    path: str, layout: str, dtype: str, ndim: int, rows: pa.RecordBatch
) -> tuple[Part, list[tuple[str, str]]]:
    ndim = max(0, ndim)
    lo, hi, odd = _boxes(rows, ndim)
    nnz = rows.column("nnz").to_numpy()
    seq = rows.column("seq").to_numpy()
    heads = [rows.column(name).to_pylist() for name in _HEADS]
    crcs = rows.column("crc").to_pylist()
    every = range(rows.num_rows)
    index, values = (payloads(rows.column(name), every) for name in PAYLOAD)
    nbytes = np.zeros(rows.num_rows, np.int64)
    wrong: list[tuple[str, str]] = []
    known = _kind(layout, dtype)
    cells = np.prod(np.maximum(hi - lo, 0), axis=1, dtype=object)
    stored = min(ndim, STORED_AXES)
    for i, (name, params, kind, codec) in enumerate(zip(*heads, strict=True)):
        nbytes[i] = sum(len(data) for data in (index[i], values[i]) if data is not None)
        text = odd.get(i)
        corners = (*lo[i, :stored].tolist(), *hi[i, :stored].tolist())
        crc = crc_of(name, params, kind, codec, corners, index[i], values[i])
        if text is None and crc != crcs[i]:
            text = "the row fails its checksum"
        elif text is None:
            text = known or _codec(layout, codec)
            if not text and (values[i] is None or (lo[i] >= hi[i]).any() or (lo[i] < 0).any()):
                text = "the row has no payload, or its box is empty or begins before the tensor"
            elif not text:
                text = _unfit(layout, codec, int(nnz[i]), int(cells[i]), index[i] is not None)
        if text:
            wrong.append((f"row {seq[i]}, box {box_text(lo[i], hi[i])}", text))
    return Part(path, layout, dtype, lo, hi, seq, nnz, nbytes, _said(rows)), wrong


def _said(rows: pa.RecordBatch) -> dict[tuple[Sides, Sides], list[int]]:
    """Return which rows have which values in the columns that describe the tensor."""
    out: dict[tuple[Sides, Sides], list[int]] = {}
    columns = (rows.column(name).to_pylist() for name in ("shape", "block_shape"))
    for i, both in enumerate(zip(*columns, strict=True)):
        shape, block = (None if sides is None else tuple(sides) for sides in both)
        out.setdefault((shape, block), []).append(i)
    return out


def _boxes(rows: pa.RecordBatch, ndim: int) -> tuple[Array, Array, dict[int, str]]:
    """Return the boxes of rows, empty ones for those that say none, and what is wrong with these."""
    try:
        lo, hi = boxes(rows, ndim)
        return lo, hi, {}
    except CorruptDataError:
        pass
    corners = np.zeros((2, rows.num_rows, ndim), np.int64)
    odd = {}
    for i in range(rows.num_rows):
        try:
            lo, hi = boxes(rows.slice(i, 1), ndim)
            corners[0, i], corners[1, i] = lo[0], hi[0]
        except CorruptDataError as error:
            odd[i] = str(error)
    return corners[0], corners[1], odd


@lru_cache(maxsize=256)
def _kind(layout: str, dtype: str) -> str:
    """Return what is wrong with a layout or dtype, or nothing."""
    if isinstance(layout, str) and layout not in LAYOUTS:
        return unread_layout(layout)
    try:
        layout_of(layout)
        dtype_of(dtype)
    except (TensorLakeError, TypeError) as error:
        return _sentence(error)
    return ""


@lru_cache(maxsize=256)
def _codec(layout: str, codec: str) -> str:
    """Return what is wrong with a codec, or nothing."""
    try:
        layout_of(layout).check_codec(codec)
    except (TensorLakeError, TypeError):
        return unread(codec, layout)
    return ""


def _unfit(layout: str, codec: str, nnz: int, cells: int, has_index: bool) -> str:
    """Return what a row stores that does not fit its layout and codec, or nothing."""
    known = layout_of(layout)
    if not (0 < nnz <= cells if known.is_sparse else nnz == cells):
        return f"the row says that it stores {nnz} of the {cells} elements of its box"
    if known.is_sparse:
        return ""
    needs_index = parted(codec)[0] == "split"
    if has_index == needs_index or (has_index and known.has_index):
        return ""
    what, other = ("an", "none") if has_index else ("no", "one")
    return f"the row has {what} index, and codec {codec!r} in layout {layout} has {other}"


def _sentence(error: Exception) -> str:
    return str(error) or type(error).__name__
