"""Metadata rows: what a table says of a whole tensor."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tensorlake_spark.errors import (
    CorruptDataError,
    FormatError,
    InvalidTensorError,
    UnsupportedDtypeError,
)
from tensorlake_spark.rows.checksum import crc_with_text
from tensorlake_spark.rows.row import CORNER, SCHEMA, Totals, block_of
from tensorlake_spark.tensor.labels import Unread, stored_labels
from tensorlake_spark.tensor.spec import FORMAT_VERSION, TensorSpec, dtype_name, dtype_of


def meta_crc(layout: str, dtype: str, codec: str, shape: Any, block: Any, attrs: str) -> int:
    corners = [len(shape), *shape, *block]
    return crc_with_text(layout, dtype, codec, corners, attrs)


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
    attrs = [_attrs_text(*both) for both in zip(specs, totals, strict=True)]
    names = [dtype_name(s.dtype) for s in specs]
    crcs = [
        meta_crc(s.layout, n, s.codec, s.shape, s.block_shape, a)
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
        pa.array([block_of(s) for s in specs], lists),
        pa.array([s.codec for s in specs], pa.string()),
        pa.nulls(count, pa.binary()),
        pa.nulls(count, pa.binary()),
        pa.array(crcs, pa.int64()),
        pa.array(attrs, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def meta_row(spec: TensorSpec, seq: int, totals: Totals) -> dict[str, Any]:
    """Return the columns `META_COLUMNS` of a metadata row, as `read_meta` takes them."""
    name, block, attrs = dtype_name(spec.dtype), spec.block_shape, _attrs_text(spec, totals)
    values = (
        spec.id, seq, 0, spec.layout, name, spec.shape, block, spec.codec,
        meta_crc(spec.layout, name, spec.codec, spec.shape, block, attrs), attrs,
    )  # fmt: skip
    return dict(zip(META_COLUMNS, values, strict=True))


def _attrs_text(spec: TensorSpec, totals: Totals) -> str:
    """Return the column ``attrs`` of a metadata row."""
    body = {
        "format": FORMAT_VERSION,
        "rows": totals.rows,
        "nnz": totals.nnz,
        "bytes": totals.nbytes,
        "fill": spec.fill.hex(),
        "segments": [list(s) for s in spec.segments],
        "axes": None if spec.axes is None else list(spec.axes),
        "attrs": dict(spec.attrs),
        **({"params": dict(spec.params)} if spec.params else {}),
        **({"labels": {k: v.to_json() for k, v in spec.labels.items()}} if spec.labels else {}),
    }
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTensorError(
            f"the attributes of tensor {spec.id!r} are not JSON: {error}; use str, int, finite "
            "float, bool, None, list and dict"
        ) from error


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
        body = _body_of(attrs)
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
        crc = meta_crc(row["layout"], row["dtype"], row["codec"], shape, block, attrs)
    except _UNREADABLE as error:
        raise _unreadable(row, error) from error
    if crc != row["crc"]:
        raise CorruptDataError(
            f"the metadata row of tensor {row['id']!r} fails its checksum; {_RESTORE}"
        )
    # The checksum holds for what somebody made up, too.
    try:
        totals = Totals(*(_count(body[name]) for name in ("rows", "nnz", "bytes")))
        return Meta(_spec_of(row, body), totals, int(row["seq"]))
    except UnsupportedDtypeError:
        raise
    except _UNREADABLE as error:
        raise _unreadable(row, error) from error


def _body_of(attrs: str) -> Any:
    """Return what the column ``attrs`` says; many labels of one axis stay a text until they are asked for."""
    # The labels come last, and what is before them is short. They are copied once: new memory costs more than a look.
    begin = attrs.find(_LABELS) if len(attrs) > _LONG and attrs.endswith("]}}") else -1
    end = attrs.find('":', begin + len(_LABELS)) if begin >= 0 else -1
    axis = attrs[begin + len(_LABELS) : end] if end >= 0 else ""
    labels = Unread.of(attrs, end + 2, len(attrs) - 2) if axis.isalnum() else None
    if labels is not None:
        with suppress(ValueError):  # labels of another object inside of this one
            body: Any = json.loads(attrs[:begin] + "}")
            return {**body, "labels": {axis: labels}}
    return json.loads(attrs)


_LABELS = ',"labels":{"'
_LONG = 16 << 10  # characters from which on labels are worth a second look

_UNREADABLE = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error,
)  # fmt: skip


_RESTORE = "restore its data file from a backup, or read an earlier version of the table"


def _unreadable(row: Mapping[str, Any], error: Exception) -> CorruptDataError:
    said = str(error) or type(error).__name__
    return CorruptDataError(
        f"the metadata row of tensor {row['id']!r:.300} is not readable: {said:.300}; {_RESTORE}"
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
        labels={name: stored_labels(value) for name, value in body.get("labels", {}).items()},
    )
    if len(spec.segments) != spec.ndim or any(s[:1] != (0,) for s in spec.segments):
        raise ValueError(f"{body['segments']!r:.80} are no segments of shape {spec.shape}")
    order, row_axes = (spec.params.get(name) for name in ("order", "row_axes"))
    if order is not None and sorted(order) != list(range(spec.ndim)):
        raise ValueError(f"{order!r:.80} is no order of {spec.ndim} axes")
    if row_axes is not None and not set(row_axes) <= set(range(spec.ndim)):
        raise ValueError(f"{row_axes!r:.80} are not axes of a tensor of rank {spec.ndim}")
    return spec
