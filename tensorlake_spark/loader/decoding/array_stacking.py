"""Arrays of one dtype and shape, one a sample, from their stored bytes into the rows of one array: one copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.checksum import crc_held


def stacked(
    payloads: Sequence[Any],
    shape: tuple[int, ...],
    dtype: Any,
    out: Array | None = None,
    crcs: Array | None = None,
) -> Array:
    """Return arrays of one shape as one array.

    Parameters
    ----------
    payloads : sequence of bytes, memoryview or pyarrow.Buffer
        The elements of each, in C order, little endian.
    shape : tuple of int
        Of each.
    dtype : dtype
        Of each.
    out : ndarray, optional
        Where to put them. It is used if it is C-contiguous and has the dtype and the shape; it may be longer.
    crcs : int64 ndarray, optional
        CRC-32 of each, -1 where it is not known.

    Returns
    -------
    ndarray, shape (payloads, *shape)

    Raises
    ------
    CorruptDataError
        If one is None, has another number of bytes, or another checksum.

    Examples
    --------
    >>> stacked([np.arange(2, dtype="<i2").tobytes(), np.ones(2, "<i2").tobytes()], (2,), np.int16).tolist()
    [[0, 1], [1, 1]]
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    sizes = [-1 if payload is None else len(payload) for payload in payloads]
    if sizes.count(size) != len(sizes):
        number = next(number for number, found in enumerate(sizes) if found != size)
        has = "no data" if sizes[number] < 0 else f"{sizes[number]} bytes"
        raise CorruptDataError(
            f"value {number} of a column has {has}, which is not {kind} of shape {shape}; its table was changed by "
            "others"
        )
    if crcs is not None:
        found = np.fromiter(map(crc_held, payloads), np.int64, len(payloads))
        wrong = np.flatnonzero((found != crcs) & (crcs >= 0))
        if wrong.size:
            number = int(wrong[0])
            raise CorruptDataError(
                f"the {size} bytes of value {number} of a column are not those that were written (CRC-32 "
                f"{found[number]}, not {crcs[number]}); read an earlier version, or write the sample again"
            )
    rows = target(out, (len(payloads), *shape), kind)
    if rows.size:
        flat, bytes_of = rows.reshape(len(rows), -1).view(np.uint8), np.frombuffer
        for row, payload in zip(flat, payloads):
            row[:] = bytes_of(payload, np.uint8)
        if kind.newbyteorder("<") != kind:
            rows.byteswap(inplace=True)
    return rows


def target(out: Array | None, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return the first rows of an array if they are of this shape and dtype and can be written, else a new array.

    Examples
    --------
    >>> out = np.empty((4, 2))
    >>> target(out, (3, 2), "f8").base is out, target(out, (3, 3), "f8").base is out
    (True, False)
    """
    if (
        out is not None
        and out.dtype == dtype
        and out.shape[1:] == shape[1:]
        and len(out) >= shape[0]
        and out.flags.c_contiguous
        and out.flags.writeable
    ):
        return out[: shape[0]]
    return np.empty(shape, dtype)
