"""The rows of a table without their payload: each checked on its own, and what is kept to check them together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

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
Key = TypeVar("Key", bound=Hashable)
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
    for layout, dtype, ndim, rows in _alike(data):
        found, wrong = _check_rows(path, layout, dtype, ndim, rows)
        faults += wrong
        for tensor_id, part in found.items():
            parts.setdefault(tensor_id, []).append(part)
    return parts, descriptions, faults


def _alike(batch: pa.RecordBatch) -> Iterator[tuple[str, str, int, pa.RecordBatch]]:
    """Yield the rows of one layout, dtype and rank, of whatever tensors: these may be many, and of a row each."""
    ranks = pc.fill_null(pc.list_value_length(batch.column("shape")), -1).to_pylist()
    names = (batch.column(name).to_pylist() for name in ("layout", "dtype"))
    for key, places in _places(zip(*names, ranks, strict=True)).items():
        rows = batch if len(places) == batch.num_rows else batch.take(pa.array(places))
        yield (*key, rows)


def _places(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """Return where each key stands."""
    out: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        out.setdefault(key, []).append(i)
    return out


def _check_rows(
    path: str, layout: str, dtype: str, ndim: int, rows: pa.RecordBatch
) -> tuple[dict[str, Part], list[RowFault]]:
    ndim = max(0, ndim)
    lo, hi, odd = _boxes(rows, ndim)
    nnz = rows.column("nnz").to_numpy()
    seq = rows.column("seq").to_numpy()
    names = rows.column("id").to_pylist()
    heads = [rows.column(name).to_pylist() for name in _HEADS]
    crcs = rows.column("crc").to_pylist()
    every = range(rows.num_rows)
    index, values = (payloads(rows.column(name), every) for name in PAYLOAD)
    nbytes = np.zeros(rows.num_rows, np.int64)
    wrong: list[RowFault] = []
    known = _kind(layout, dtype)
    cells = np.prod(np.maximum(hi - lo, 0), axis=1, dtype=object)
    no_box: Array = np.any((lo >= hi) | (lo < 0), axis=1)
    stored = min(ndim, STORED_AXES)
    corners = np.concatenate([lo[:, :stored], hi[:, :stored]], axis=1)
    for i, (name, params, kind, codec) in enumerate(zip(*heads, strict=True)):
        nbytes[i] = sum(len(data) for data in (index[i], values[i]) if data is not None)
        text = odd.get(i)
        crc = crc_of(name, params, kind, codec, corners[i].tolist(), index[i], values[i])
        if text is None and crc != crcs[i]:
            text = "the row fails its checksum"
        elif text is None:
            text = known or _codec(layout, codec)
            if not text and (values[i] is None or no_box[i]):
                text = "the row has no payload, or its box is empty or begins before the tensor"
            elif not text:
                text = _unfit(layout, codec, int(nnz[i]), int(cells[i]), index[i] is not None)
        if text:
            place = f"row {seq[i]}, box {box_text(lo[i], hi[i])}"
            wrong.append(RowFault(path, names[i], place, text))
    said = _said(rows)
    parts = {}
    for tensor_id, places in _places(names).items():
        own = slice(None) if len(places) == len(names) else places
        parts[tensor_id] = Part(
            path, layout, dtype, lo[own], hi[own], seq[own], nnz[own], nbytes[own],
            _places(said[i] for i in places),
        )  # fmt: skip
    return parts, wrong


def _said(rows: pa.RecordBatch) -> list[tuple[Sides, Sides]]:
    """Return what the columns of each row say that describe the tensor."""
    columns = (rows.column(name).to_pylist() for name in ("shape", "block_shape"))
    return [
        (None if shape is None else tuple(shape), None if block is None else tuple(block))
        for shape, block in zip(*columns, strict=True)
    ]


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


@lru_cache(maxsize=256)
def _is_split(codec: str) -> bool:
    return parted(codec)[0] == "split"


def _unfit(layout: str, codec: str, nnz: int, cells: int, has_index: bool) -> str:
    """Return what a row stores that does not fit its layout and codec, or nothing."""
    known = layout_of(layout)
    if not (0 < nnz <= cells if known.is_sparse else nnz == cells):
        return f"the row says that it stores {nnz} of the {cells} elements of its box"
    if known.is_sparse:
        return ""
    needs_index = _is_split(codec)
    if has_index == needs_index or (has_index and known.has_index):
        return ""
    what, other = ("an", "none") if has_index else ("no", "one")
    return f"the row has {what} index, and codec {codec!r} in layout {layout} has {other}"


def _sentence(error: Exception) -> str:
    return str(error) or type(error).__name__
