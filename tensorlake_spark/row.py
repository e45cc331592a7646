"""The row: columns of format version 1, their Arrow schema, and the checksum of a row.

``layouts/FORMAT.md`` is the normative text; this module is the same table as code. Both `layouts`
(what the bytes mean) and `delta` (where the bytes are) stand on it, and know nothing of each other.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import (
    CorruptDataError,
    FormatError,
    InvalidTensorError,
    UnsupportedDtypeError,
)
from tensorlake_spark.labels import labels_of
from tensorlake_spark.spec import FORMAT_VERSION, STORED_AXES, TensorSpec, dtype_name, dtype_of

CORNER = pa.struct([pa.field(f"d{k}", pa.int64()) for k in range(STORED_AXES)])

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

_VIEWED = 16 << 10  # bytes from which a chunk of its own costs less than a copy
_MOST = (1 << 31) - 1  # bytes of an Arrow binary
_NULL = b"\xff\xff\xff\xff"


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


@lru_cache(maxsize=256)
def crc_head(layout: str | None, params: str | None, dtype: str | None, codec: str | None) -> int:
    """Return the checksum of the part of a row that many rows share."""
    crc = 0
    for text in (layout, params, dtype, codec):
        data = None if text is None else text.encode()
        crc = zlib.crc32(_NULL if data is None else struct.pack("<I", len(data)) + data, crc)
    return crc


def crc_of(
    layout: str,
    params: str | None,
    dtype: str,
    codec: str,
    corners: Sequence[int],
    index: Any,
    values: Any,
) -> int:
    """Return the CRC-32 of a row over the byte form that FORMAT.md fixes.

    Parameters
    ----------
    layout, params, dtype, codec : str
        The row's columns; each counts as its UTF-8 length (uint32, little endian) and bytes, a null
        as ``ff ff ff ff``.
    corners : sequence of int
        ``lo`` then ``hi`` of the axes that have columns, each as int64, little endian.
    index, values : bytes-like, or None
        Each as its length (uint64, little endian) and bytes; a null as eight ``ff``.
    """
    crc = crc_head(layout, params, dtype, codec)
    crc = zlib.crc32(struct.pack(f"<I{len(corners)}q", len(corners), *corners), crc)
    return crc_payload(crc, index, values)


def crc_payload(crc: int, index: Any, values: Any) -> int:
    """Return the checksum of a row, from that of all before its payload."""
    for data in (index, values):
        if data is None:
            crc = zlib.crc32(_NULL + _NULL, crc)
        else:
            crc = zlib.crc32(data, zlib.crc32(struct.pack("<Q", len(data)), crc))
    return crc


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


def _corner_array(corners: Sequence[Sequence[int]], ndim: int) -> pa.StructArray:
    count = len(corners)
    columns = np.array(corners, np.int64).reshape(count, ndim)
    leaves = [
        pa.array(columns[:, k]) if k < ndim else pa.nulls(count, pa.int64())
        for k in range(STORED_AXES)
    ]
    return pa.StructArray.from_arrays(leaves, fields=list(CORNER))


def _block_of(spec: TensorSpec) -> tuple[int, ...] | None:
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
    return pa.RecordBatch.from_arrays(_columns(spec, seqs, rows, _copied), schema=SCHEMA)


def data_table(spec: TensorSpec, seqs: Sequence[int], rows: Sequence[Row]) -> pa.Table:
    """Return encoded rows of one tensor as a table, large payloads where they lie; see `data_batch`."""
    return pa.Table.from_arrays(_columns(spec, seqs, rows, _viewed), schema=SCHEMA)


def _columns(
    spec: TensorSpec,
    seqs: Sequence[int],
    rows: Sequence[Row],
    binary: Callable[[Sequence[Any]], pa.Array | pa.ChunkedArray],
) -> list[pa.Array | pa.ChunkedArray]:
    count = len(rows)
    stored = min(spec.ndim, STORED_AXES)
    lists = pa.list_(pa.int64())
    return [
        pa.repeat(spec.id, count),
        pa.array(seqs, pa.int64()),
        _corner_array([r.lo[:stored] for r in rows], stored),
        _corner_array([r.hi[:stored] for r in rows], stored),
        pa.array([r.nnz for r in rows], pa.int64()),
        pa.repeat(spec.layout, count),
        pa.array([box_params(r.lo, r.hi, r.params) for r in rows], pa.string()),
        pa.repeat(dtype_name(spec.dtype), count),
        pa.array([spec.shape] * count, lists),
        pa.array([_block_of(spec)] * count, lists),
        pa.array([r.codec for r in rows], pa.string()),
        binary([r.index for r in rows]),
        binary([r.values for r in rows]),
        pa.array([r.crc for r in checked(spec, rows)], pa.int64()),
        pa.nulls(count, pa.string()),
    ]


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


def is_data(rows: pa.RecordBatch | pa.Table, tensor_id: str) -> Any:
    """Return of each row whether it is a data row of a tensor, as an Arrow array."""
    return pc.and_(pc.equal(rows.column("id"), tensor_id), pc.greater(rows.column("nnz"), 0))


def payload_sizes(rows: pa.RecordBatch) -> np.ndarray[Any, Any]:
    """Return the bytes of each row's payload, int64."""
    out = np.zeros(rows.num_rows, np.int64)
    for name in PAYLOAD:
        out += pc.fill_null(pc.binary_length(rows.column(name)), 0).to_numpy(False)
    return out


def _meta_crc(layout: str, dtype: str, codec: str, shape: Any, block: Any, attrs: str) -> int:
    corners = [len(shape), *shape, *block]
    return crc_of(layout, None, dtype, codec, corners, None, attrs.encode())


def meta_batch(
    specs: Sequence[TensorSpec], seqs: Sequence[int], totals: Sequence[Totals]
) -> pa.RecordBatch:
    """Return metadata rows (``nnz = 0``, no box) that describe whole tensors.

    Parameters
    ----------
    specs : sequence of TensorSpec
        The tensors.
    seqs : sequence of int
        For each a place after all of its other rows.
    totals : sequence of Totals
        What the data rows of each add up to.
    """
    count = len(specs)
    attrs = []
    for spec, total in zip(specs, totals, strict=True):
        body = {
            "format": FORMAT_VERSION,
            "rows": total.rows,
            "nnz": total.nnz,
            "bytes": total.nbytes,
            "fill": spec.fill.hex(),
            "segments": [list(s) for s in spec.segments],
            "axes": None if spec.axes is None else list(spec.axes),
            "attrs": dict(spec.attrs),
            **({"params": dict(spec.params)} if spec.params else {}),
            **({"labels": {k: v.to_json() for k, v in spec.labels.items()}} if spec.labels else {}),
        }
        try:
            attrs.append(json.dumps(body, separators=(",", ":"), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidTensorError(
                f"the attributes of tensor {spec.id!r} are not JSON: {error}; use str, int, finite "
                "float, bool, None, list and dict"
            ) from error
    names = [dtype_name(s.dtype) for s in specs]
    crcs = [
        _meta_crc(s.layout, n, s.codec, s.shape, s.block_shape, a)
        for s, n, a in zip(specs, names, attrs, strict=True)
    ]
    lists = pa.list_(pa.int64())
    columns = [
        pa.array([s.id for s in specs], pa.string()),
        pa.array(seqs, pa.int64()),
        pa.nulls(count, CORNER),
        pa.nulls(count, CORNER),
        pa.array([0] * count, pa.int64()),
        pa.array([s.layout for s in specs], pa.string()),
        pa.nulls(count, pa.string()),
        pa.array(names, pa.string()),
        pa.array([s.shape for s in specs], lists),
        pa.array([_block_of(s) for s in specs], lists),
        pa.array([s.codec for s in specs], pa.string()),
        pa.nulls(count, pa.binary()),
        pa.nulls(count, pa.binary()),
        pa.array(crcs, pa.int64()),
        pa.array(attrs, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


META_COLUMNS = (
    "id",
    "seq",
    "nnz",
    "layout",
    "dtype",
    "shape",
    "block_shape",
    "codec",
    "crc",
    "attrs",
)
"""Columns that a metadata row needs."""


@dataclass(frozen=True, slots=True)
class Meta:
    """A metadata row, read: the tensor, its totals, and the row's place."""

    spec: TensorSpec
    totals: Totals
    seq: int


def read_meta(row: Mapping[str, Any]) -> Meta:
    """Return what a metadata row says.

    Parameters
    ----------
    row : mapping
        The columns `META_COLUMNS` of the row as Python values.

    Raises
    ------
    CorruptDataError
        If the row's checksum does not hold.
    FormatError
        If a newer format version wrote it.
    """
    attrs = row["attrs"] or ""
    try:
        body = json.loads(attrs)
        version = int(body["format"])
    except _UNREADABLE as error:
        raise _unreadable(row, error) from error
    if version > FORMAT_VERSION:
        raise FormatError(
            f"tensor {row['id']!r} has row format version {version}; this package reads up to "
            f"version {FORMAT_VERSION}: upgrade tensorlake-spark"
        )
    try:
        shape, block = tuple(row["shape"]), tuple(row["block_shape"] or ())
        crc = _meta_crc(row["layout"], row["dtype"], row["codec"], shape, block, attrs)
    except _UNREADABLE as error:
        raise _unreadable(row, error) from error
    if crc != row["crc"]:
        raise CorruptDataError(f"the metadata row of tensor {row['id']!r} fails its checksum")
    # The checksum holds for what somebody made up, too.
    try:
        totals = Totals(*(_count(body[name]) for name in ("rows", "nnz", "bytes")))
        return Meta(_spec_of(row, body), totals, int(row["seq"]))
    except UnsupportedDtypeError:
        raise
    except _UNREADABLE as error:
        raise _unreadable(row, error) from error


_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def _unreadable(row: Mapping[str, Any], error: Exception) -> CorruptDataError:
    said = str(error) or type(error).__name__
    return CorruptDataError(
        f"the metadata row of tensor {row['id']!r:.300} is not readable: {said:.300}"
    )


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{number!r:.80} is no count")
    return number


def _spec_of(row: Mapping[str, Any], body: Mapping[str, Any]) -> TensorSpec:
    """Return the tensor that a metadata row, its checksum found right, describes."""
    segments = tuple(tuple(_count(n) for n in s) for s in body["segments"])
    if not isinstance(row["layout"], str) or not isinstance(row["codec"], str):
        raise TypeError(f"layout {row['layout']!r} and codec {row['codec']!r} are not two names")
    spec = TensorSpec(
        id=row["id"],
        shape=tuple(row["shape"]),
        dtype=dtype_of(row["dtype"]),
        layout=row["layout"],
        block_shape=tuple(row["block_shape"] or ()),
        segments=segments,
        codec=row["codec"],
        fill=bytes.fromhex(body["fill"]),
        axes=None if body["axes"] is None else tuple(body["axes"]),
        attrs=body["attrs"],
        params=body.get("params", {}),
        labels={name: labels_of(value) for name, value in body.get("labels", {}).items()},
    )
    if len(spec.segments) != spec.ndim or any(s[:1] != (0,) for s in spec.segments):
        raise ValueError(f"{body['segments']!r:.80} are no segments of shape {spec.shape}")
    order, row_axes = (spec.params.get(name) for name in ("order", "row_axes"))
    if order is not None and sorted(order) != list(range(spec.ndim)):
        raise ValueError(f"{order!r:.80} is no order of {spec.ndim} axes")
    if row_axes is not None and not set(row_axes) <= set(range(spec.ndim)):
        raise ValueError(f"{row_axes!r:.80} are not axes of a tensor of rank {spec.ndim}")
    return spec


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
            out[side, :, k] = leaf.to_numpy(zero_copy_only=False)
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


VIEW = np.dtype([("length", "<i4"), ("prefix", "V4"), ("buffer", "<i4"), ("offset", "<i4")])
"""One value of Arrow's ``binary_view``."""

INLINE = 12
"""A value up to this length lies in the view itself, after its length."""


def payloads(column: pa.Array, rows: Sequence[int]) -> dict[int, pa.Buffer | None]:
    """Return some values of a binary column as buffers, without a copy.

    A scalar of type ``binary_view`` copies its bytes; here they stay where they are (Arrow columnar
    format, "Variable-size Binary View Layout").

    Examples
    --------
    >>> payloads(pa.array([b"a", None]), [0])[0].to_pybytes()
    b'a'
    """
    if column.type != pa.binary_view():
        return {i: column[i].as_buffer() for i in rows}
    _, raw, *data = column.buffers()
    views = np.frombuffer(raw, VIEW)[column.offset : column.offset + len(column)]
    nulls = column.null_count
    out: dict[int, pa.Buffer | None] = {}
    for i in rows:
        length, _, buffer, offset = views[i].item()
        if nulls and not column[i].is_valid:
            out[i] = None
        elif length <= INLINE:
            out[i] = raw.slice((column.offset + i) * VIEW.itemsize + 4, length)
        else:
            out[i] = data[buffer].slice(offset, length)
    return out
