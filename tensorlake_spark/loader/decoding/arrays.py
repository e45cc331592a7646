"""Arrays of one dtype and shape, one a sample, from a binary column into the rows of one array: one copy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.payloads import Payloads
from tensorlake_spark.rows.checksum import crc32

_SMALL = 2048  # bytes of a row that NumPy gathers faster than a loop copies


def stacked(
    values: pa.Array | Payloads,
    shape: tuple[int, ...],
    dtype: Any,
    places: Array | None = None,
    out: Array | None = None,
    crcs: Array | None = None,
) -> Array:
    """Return arrays of one shape as one array.

    Parameters
    ----------
    values : pyarrow.Array or Payloads
        Their elements in C order, little endian: binary, large_binary or binary_view.
    shape : tuple of int
        Of each.
    dtype : dtype
        Of each.
    places : int ndarray, optional
        The row to which each value goes; without it they stay in their order.
    out : ndarray, optional
        Where to put them. It is used if it is C-contiguous and has the dtype and the shape; it may be longer.
    crcs : int64 ndarray, optional
        CRC-32 of each, -1 where it is not known.

    Returns
    -------
    ndarray, shape (values, *shape)

    Raises
    ------
    CorruptDataError
        If a value is null, has another number of bytes, or another checksum.

    Examples
    --------
    >>> column = pa.array([np.arange(2, dtype="<i2").tobytes(), np.ones(2, "<i2").tobytes()])
    >>> stacked(column, (2,), np.int16, places=np.array([1, 0])).tolist()
    [[1, 1], [0, 1]]
    """
    found = values if isinstance(values, Payloads) else Payloads(values)
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    _check(found, size, kind, shape, crcs)
    rows = target(out, (len(found), *shape), kind)
    if rows.size:
        _copy(found, size, rows.reshape(len(found), -1).view(np.uint8), places)
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


def _check(
    found: Payloads, size: int, dtype: Any, shape: tuple[int, ...], crcs: Array | None
) -> None:
    wrong = np.flatnonzero((found.sizes != size) | ~found.valid)
    if wrong.size:
        number = int(wrong[0])
        has = f"{found.sizes[number]} bytes" if found.valid[number] else "no data"
        raise CorruptDataError(
            f"value {number} of a column has {has}, which is not {dtype} of shape {shape}; its table was changed by others"
        )
    if crcs is not None:
        for number, (view, crc) in enumerate(zip(found.views, crcs.tolist())):
            if crc >= 0 and crc32(view) != crc:
                raise CorruptDataError(
                    f"the {size} bytes of value {number} of a column are not those that were written (CRC-32 "
                    f"{crc32(view)}, not {crc}); read an earlier version, or write the sample again"
                )


def _copy(found: Payloads, size: int, rows: Array, places: Array | None) -> None:
    """Copy values of one size to the rows where they belong."""
    which = found.which
    if (which == which[0]).all() and len(which) > 1 and places is None:
        steps = np.diff(found.starts)
        if (steps == steps[0]).all() and steps[0] >= size:  # they follow each other in a file
            buffer = found.buffers[int(which[0])][int(found.starts[0]) :]
            rows[...] = np.lib.stride_tricks.as_strided(
                buffer, rows.shape, (int(steps[0]), 1), writeable=False
            )
            return
    if size <= _SMALL:
        for number in np.unique(which).tolist():
            here = np.flatnonzero(which == number)
            windows = np.lib.stride_tricks.sliding_window_view(found.buffers[number], size)
            rows[here if places is None else places[here]] = windows[found.starts[here]]
        return
    to = range(len(rows)) if places is None else places.tolist()
    for number, row, start in zip(which.tolist(), to, found.starts.tolist()):
        rows[row] = found.buffers[number][start : start + size]
