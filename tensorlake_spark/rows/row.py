"""The row: columns of format version 1, their Arrow schema, and what a layout puts into them.

``layouts/FORMAT.md`` is the normative text; this module is the same table as code. Both `layouts`
(what the bytes mean) and `delta` (where the bytes are) stand on it, and know nothing of each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.checksum import crc_of
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec, dtype_name

CORNER = pa.struct([pa.field(f"d{k}", pa.int64()) for k in range(STORED_AXES)])

_CORNER_FIELDS = list(CORNER)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("lo", CORNER),
        pa.field("hi", CORNER),
        pa.field("nnz", pa.int64(), nullable=False),
        pa.field("layout", pa.string()),
        pa.field("params", pa.string()),
        pa.field("dtype", pa.string()),
        pa.field("shape", pa.list_(pa.int64())),
        pa.field("block_shape", pa.list_(pa.int64())),
        pa.field("codec", pa.string()),
        pa.field("index", pa.binary()),
        pa.field("values", pa.binary()),
        pa.field("crc", pa.int64()),
        pa.field("attrs", pa.string()),
    ]
)
"""Arrow schema of the table, in the order of the columns."""

PAYLOAD = ("index", "values")
"""Columns that are compressed by us and carry no Parquet statistics."""

_LENGTHS = pa.list_(pa.int64())
_VIEWED = 16 << 10  # bytes from which a chunk of its own costs less than a copy
_MOST = (1 << 31) - 1  # bytes of an Arrow binary


@dataclass(frozen=True, slots=True)
class Row:
    """One box of a tensor, encoded.

    Attributes
    ----------
    lo, hi : tuple of int
        Corners of the box in the tensor, half-open, one pair for every axis.
    nnz : int
        Elements stored in the row, at least 1.
    codec : str
        How `index` and `values` are coded.
    values, index : bytes-like, or None
        The payload; `index` is None where the box is dense.
    params : str, or None
        JSON that the layout needs to decode this row.
    crc : int, or None
        Its checksum, once `checked` has made it.
    """

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    nnz: int
    codec: str
    values: Any
    index: Any = None
    params: str | None = None
    crc: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return len(self.values) + (len(self.index) if self.index is not None else 0)


@dataclass(frozen=True, slots=True)
class Totals:
    """What all data rows of a tensor add up to; a full read must find just this.

    Attributes
    ----------
    rows, nnz, nbytes : int
        Data rows, stored elements, and bytes of payload.
    """

    rows: int = 0
    nnz: int = 0
    nbytes: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.rows + other.rows, self.nnz + other.nnz, self.nbytes + other.nbytes)

    def __sub__(self, other: Totals) -> Totals:
        return Totals(self.rows - other.rows, self.nnz - other.nnz, self.nbytes - other.nbytes)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Totals:
        """Add up encoded rows."""
        return cls(len(rows), sum(r.nnz for r in rows), sum(r.nbytes for r in rows))


def box_params(lo: Sequence[int], hi: Sequence[int], params: str | None = None) -> str | None:
    """Return `params` with the part of the box that has no columns: the axes past the eighth.

    Examples
    --------
    >>> box_params((0,) * 9, (2,) * 9)
    '{"lo":[0],"hi":[2]}'
    >>> box_params((0,), (2,)) is None
    True
    """
    if len(lo) <= STORED_AXES:
        return params
    rest = {"lo": list(lo[STORED_AXES:]), "hi": list(hi[STORED_AXES:])}
    return json.dumps({**(json.loads(params) if params else {}), **rest}, separators=(",", ":"))


def _corner_array(corners: Sequence[Sequence[int]]) -> pa.StructArray:
    count = len(corners)
    ranks = {len(corner) for corner in corners}
    if len(ranks) > 1:  # of several tensors
        leaves = [
            pa.array([c[k] if k < len(c) else None for c in corners], pa.int64())
            for k in range(STORED_AXES)
        ]
        return pa.StructArray.from_arrays(leaves, fields=_CORNER_FIELDS)
    ndim = max(ranks, default=0)
    columns = np.array(corners, np.int64).reshape(count, ndim)
    none = pa.nulls(count, pa.int64())
    leaves = [pa.array(columns[:, k]) for k in range(ndim)] + [none] * (STORED_AXES - ndim)
    return pa.StructArray.from_arrays(leaves, fields=_CORNER_FIELDS)


def block_of(spec: TensorSpec) -> tuple[int, ...] | None:
    """The column ``block_shape``: null where a layout has no blocks."""
    return None if spec.ndim and not spec.block_shape else spec.block_shape


def checked(spec: TensorSpec, rows: Sequence[Row]) -> list[Row]:
    """Return encoded rows of a tensor with their checksums."""
    stored = min(spec.ndim, STORED_AXES)
    name = dtype_name(spec.dtype)

    def crc(row: Row) -> int:
        params = box_params(row.lo, row.hi, row.params)
        corners = (*row.lo[:stored], *row.hi[:stored])
        return crc_of(spec.layout, params, name, row.codec, corners, row.index, row.values)

    return [row if row.crc is not None else replace(row, crc=crc(row)) for row in rows]


def data_batch(spec: TensorSpec, seqs: Sequence[int], rows: Sequence[Row]) -> pa.RecordBatch:
    """Return encoded rows of one tensor as a batch of the table's schema.

    Parameters
    ----------
    spec : TensorSpec
        The tensor that the rows belong to, with its shape after the write.
    seqs : sequence of int
        Place of each row in the tensor's storage order.
    rows : sequence of Row
        What to store.
    """
    columns = _columns([spec] * len(rows), seqs, rows, _copied)
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def data_table(specs: Sequence[TensorSpec], seqs: Sequence[int], rows: Sequence[Row]) -> pa.Table:
    """Return encoded rows, each with its tensor, as a table, large payloads where they lie; see `data_batch`."""
    return pa.Table.from_arrays(_columns(specs, seqs, rows, _viewed), schema=SCHEMA)


def _columns(
    specs: Sequence[TensorSpec],
    seqs: Sequence[int],
    rows: Sequence[Row],
    binary: Callable[[Sequence[Any]], pa.Array | pa.ChunkedArray],
) -> list[pa.Array | pa.ChunkedArray]:
    whole = rows
    if any(row.crc is None for row in rows):
        whole = [checked(spec, [row])[0] for spec, row in zip(specs, rows, strict=True)]
    ids, layouts, dtypes, shapes, blocks = _of_tensors(specs)
    return [
        ids,
        pa.array(seqs, pa.int64()),
        _corner_array([r.lo[:STORED_AXES] for r in rows]),
        _corner_array([r.hi[:STORED_AXES] for r in rows]),
        pa.array([r.nnz for r in rows], pa.int64()),
        layouts,
        pa.array([box_params(r.lo, r.hi, r.params) for r in rows], pa.string()),
        dtypes,
        shapes,
        blocks,
        pa.array([r.codec for r in rows], pa.string()),
        binary([r.index for r in rows]),
        binary([r.values for r in rows]),
        pa.array([r.crc for r in whole], pa.int64()),
        pa.nulls(len(rows), pa.string()),
    ]


def _of_tensors(specs: Sequence[TensorSpec]) -> tuple[pa.Array, ...]:
    """Return the columns that all rows of a tensor have alike: id, layout, dtype, shape and block shape."""
    said = [(s.id, s.layout, dtype_name(s.dtype), s.shape, block_of(s)) for s in specs]
    if said and all(one == said[0] for one in said):
        return _repeated(len(said), *said[0])
    ids, layouts, dtypes, shapes, blocks = zip(*said, strict=True) if said else ((),) * 5
    return (
        pa.array(ids, pa.string()),
        pa.array(layouts, pa.string()),
        pa.array(dtypes, pa.string()),
        pa.array(shapes, _LENGTHS),
        pa.array(blocks, _LENGTHS),
    )


@lru_cache(maxsize=8)
def _repeated(
    count: int,
    tensor_id: str,
    layout: str,
    dtype: str,
    shape: tuple[int, ...],
    block: tuple[int, ...] | None,
) -> tuple[pa.Array, ...]:
    """Return the same for `count` rows of one tensor; row group after row group asks for it."""
    texts = (pa.repeat(text, count) for text in (tensor_id, layout, dtype))
    return *texts, *(pa.array([lengths] * count, _LENGTHS) for lengths in (shape, block))


def _copied(payload: Sequence[Any]) -> pa.Array:
    return pa.array(payload, pa.binary())


def _viewed(payload: Sequence[Any]) -> pa.Array | pa.ChunkedArray:
    """Return a column with a chunk for each value, none of which is copied; small ones are."""
    sizes = [0 if value is None else len(value) for value in payload]
    if min(sizes, default=0) < _VIEWED or max(sizes) > _MOST:
        return _copied(payload)
    return pa.chunked_array(
        [
            pa.Array.from_buffers(
                pa.binary(), 1, [None, pa.py_buffer(np.array([0, n], "i4")), pa.py_buffer(value)]
            )
            for n, value in zip(sizes, payload, strict=True)
        ]
    )


def is_of(rows: pa.RecordBatch | pa.Table, *ids: str) -> Any:
    """Return of each row whether it is one of some tensors, as an Arrow array."""
    return pc.is_in(rows.column("id"), pa.array(ids, pa.string()))


def is_data(rows: pa.RecordBatch | pa.Table, *ids: str) -> Any:
    """Return of each row whether it is a data row of one of some tensors, as an Arrow array."""
    return pc.and_(is_of(rows, *ids), pc.greater(rows.column("nnz"), 0))


def in_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in the order (``id``, ``seq``); without a copy where they are."""
    if rows.num_rows < 2:
        return rows
    order = pc.sort_indices(rows, sort_keys=[("id", "ascending"), ("seq", "ascending")])
    if np.array_equal(order.to_numpy(), np.arange(rows.num_rows)):
        return rows
    return rows.take(order)


def joined_rows(parts: Sequence[tuple[pa.RecordBatch, int, int]]) -> pa.RecordBatch:
    """Return rows of some batches, of each from one on to another; those that follow one another are not copied.

    Examples
    --------
    >>> rows = pa.record_batch({"seq": [5, 6, 7]})
    >>> joined_rows([(rows, 2, 3), (rows, 0, 1), (rows, 1, 2)]).column("seq").to_pylist()
    [7, 5, 6]
    """
    runs: list[tuple[pa.RecordBatch, int, int]] = []
    for batch, start, stop in parts:
        if runs and runs[-1][0] is batch and runs[-1][2] == start:
            runs[-1] = batch, runs[-1][1], stop
        else:
            runs.append((batch, start, stop))
    batches = [batch.slice(start, stop - start) for batch, start, stop in runs]
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def payload_sizes(rows: pa.RecordBatch) -> np.ndarray[Any, Any]:
    """Return the bytes of each row's payload, int64."""
    out = np.zeros(rows.num_rows, np.int64)
    for name in PAYLOAD:
        out += numbers(pc.fill_null(pc.binary_length(rows.column(name)), 0))
    return out


def numbers(column: pa.Array) -> np.ndarray[Any, Any]:
    """Return a column of numbers as NumPy's array, without a copy if it is int64 and has no nulls.

    `pyarrow.Array.to_numpy` imports pandas where that is installed, for which a first read would wait half a second.

    Examples
    --------
    >>> numbers(pa.array([7, 8, 9]).slice(1)).tolist()
    [8, 9]
    """
    if column.type != pa.int64() or column.null_count or not len(column):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.frombuffer(column.buffers()[1], np.int64, len(column), column.offset * 8)


def is_text(column: pa.Array | pa.ChunkedArray, text: str) -> Any:
    """Return for each value of a column of strings whether it is a text; without pandas, as `numbers`.

    Examples
    --------
    >>> is_text(pa.array(["a", "b", None]), "b").to_pylist()
    [False, True, False]
    """
    data = text.encode()
    ends = pa.py_buffer(np.array([0, len(data)], np.int32))
    wanted = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(data)])
    return pc.is_in(column, value_set=wanted)


def bools(mask: np.ndarray[Any, Any]) -> pa.Array:
    """Return a mask as Arrow has it; without pandas, as `numbers`.

    Examples
    --------
    >>> bools(np.array([True, False])).to_pylist()
    [True, False]
    """
    packed = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, packed], 0)


def corners(batch: pa.RecordBatch, ndim: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the boxes of a batch's rows as two int64 arrays of shape (rows, ndim).

    Raises
    ------
    CorruptDataError
        If a data row has a null where its box should be.
    """
    count = batch.num_rows
    out = np.empty((2, count, ndim), np.int64)
    stored = min(ndim, STORED_AXES)
    for side, name in enumerate(("lo", "hi")):
        for k in range(stored):
            leaf = batch.column(name).field(f"d{k}")
            if leaf.null_count:
                raise CorruptDataError(f"{leaf.null_count} rows have no {name}.d{k}")
            out[side, :, k] = numbers(leaf)
    if ndim > STORED_AXES:
        for i, text in enumerate(batch.column("params").to_pylist()):
            try:
                rest = json.loads(text)
                out[0, i, STORED_AXES:] = rest["lo"]
                out[1, i, STORED_AXES:] = rest["hi"]
            except (TypeError, ValueError, KeyError) as error:
                raise CorruptDataError(
                    f"row {i} does not say where its box lies: {text!r}"
                ) from error
    return out[0], out[1]
