"""Rows held against their checksums, many at a time, before anything of them is decoded."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.row import crc_head, crc_payload, payloads
from tensorlake_spark.spec import STORED_AXES, TensorSpec, dtype_name

Array = np.ndarray[Any, Any]


class Payload(NamedTuple):
    """What a row holds, its checksum found right.

    Attributes
    ----------
    codec, params : str; str or None
        The row's columns.
    index, values : buffers; `index` may be None
        The payload, where it lies.
    """

    codec: str
    params: str | None
    index: Any
    values: Any


def checked(
    batch: pa.RecordBatch, spec: TensorSpec, wanted: Sequence[int], lo: Array, hi: Array
) -> list[Payload]:
    """Return the payloads of the wanted rows, each held against its checksum and its tensor.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Data rows with the columns of a layout.
    spec : TensorSpec
        The tensor.
    wanted : sequence of int
        Which rows.
    lo, hi : int64 ndarray, shape (rows, ndim)
        Corners of all rows of the batch.

    Raises
    ------
    CorruptDataError
        If a checksum fails, or the row does not fit the tensor; names tensor and box.
    """
    if not len(wanted):
        return []
    heads = [_texts(batch.column(name), wanted) for name in ("layout", "params", "dtype", "codec")]
    crcs = batch.column("crc").to_numpy(zero_copy_only=False)
    index, values = (payloads(batch.column(name), wanted) for name in ("index", "values"))
    stored = min(spec.ndim, STORED_AXES)
    boxes = np.concatenate([lo[:, :stored], hi[:, :stored]], axis=1)[list(wanted)]
    sides = boxes.astype("<i8").tobytes()
    width, count = 16 * stored, struct.pack("<I", 2 * stored)
    inside = (lo < hi) & (lo >= 0) & (hi <= np.array(spec.shape, np.int64))
    fits: Array = np.asarray(np.all(inside, axis=1))
    name = dtype_name(spec.dtype)
    out = []
    for at, (i, layout, params, dtype, codec) in enumerate(zip(wanted, *heads, strict=True)):
        crc = zlib.crc32(count, crc_head(layout, params, dtype, codec))
        crc = zlib.crc32(sides[at * width : (at + 1) * width], crc)
        if values[i] is None or crc_payload(crc, index[i], values[i]) != crcs[i]:
            raise CorruptDataError(
                f"tensor {spec.id!r}, box {box_text(lo[i], hi[i])}: the row fails its checksum; "
                "restore the file from a backup, or an earlier version of the table"
            )
        if dtype != name or layout != spec.layout or not fits[i]:
            raise CorruptDataError(
                f"tensor {spec.id!r}, box {box_text(lo[i], hi[i])}: the row ({layout}, {dtype}) does "
                f"not fit the tensor's shape {spec.shape}, dtype {spec.dtype} and layout {spec.layout}"
            )
        out.append(Payload(codec, params, index[i], values[i]))
    return out


def _texts(column: pa.Array, wanted: Sequence[int]) -> list[str | None]:
    """Return some texts of a column; in most batches all rows have the same."""
    coded = column.dictionary_encode()
    if len(coded.dictionary) <= 1 and column.null_count in (0, len(column)):
        only = coded.dictionary[0].as_py() if len(coded.dictionary) else None
        return [only] * len(wanted)
    texts = column.to_pylist()
    return [texts[i] for i in wanted]


def box_text(lo: Array, hi: Array) -> str:
    """Return a box as it is typed in a slice.

    Examples
    --------
    >>> box_text(np.array([0, 2]), np.array([4, 3]))
    '[0:4, 2:3]'
    """
    sides = zip(lo.tolist(), hi.tolist(), strict=True)
    return "[" + ", ".join(f"{a}:{b}" for a, b in sides) + "]"
