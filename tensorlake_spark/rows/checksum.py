"""The checksum of a row, over the byte form that FORMAT.md fixes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

try:  # ten times as fast as Python's own, where a full read spends a fifth of its time
    from zlib_ng.zlib_ng import crc32 as crc32
except ImportError:
    # An executor may have the archive of `make dist` and not all of its requirements.
    from zlib import crc32 as crc32

_NULL = b"\xff\xff\xff\xff"
_COPIED = 8 << 10  # bytes that are sooner copied than looked at by four calls
_PIECE = 16 << 10  # characters encoded at once: new memory for more costs more than the checksum
_length = struct.Struct("<Q").pack


@lru_cache(maxsize=256)
def crc_head(layout: str | None, params: str | None, dtype: str | None, codec: str | None) -> int:
    """Return the checksum of the part of a row that many rows share."""
    crc = 0
    for text in (layout, params, dtype, codec):
        data = None if text is None else text.encode()
        crc = crc32(_NULL if data is None else struct.pack("<I", len(data)) + data, crc)
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
    crc = crc32(struct.pack(f"<I{len(corners)}q", len(corners), *corners), crc)
    return crc_payload(crc, index, values)


def crc_with_text(layout: str, dtype: str, codec: str, corners: Sequence[int], values: str) -> int:
    """Return what `crc_of` does of a row without ``params`` and ``index`` whose values are a text in UTF-8."""
    if len(values) <= _PIECE or not values.isascii():
        return crc_of(layout, None, dtype, codec, corners, None, values.encode())
    crc = crc_head(layout, None, dtype, codec)
    crc = crc32(struct.pack(f"<I{len(corners)}q", len(corners), *corners), crc)
    crc = crc32(_NULL + _NULL + _length(len(values)), crc)
    for start in range(0, len(values), _PIECE):
        crc = crc32(values[start : start + _PIECE].encode(), crc)
    return crc


def corner_bytes(lo: Any, hi: Any) -> list[bytes]:
    """Return what stands between the texts and the payload of some rows in their byte form.

    Parameters
    ----------
    lo, hi : int64 ndarray, shape (rows, axes)
        Corners, of the axes that have columns.
    """
    form = np.empty(len(lo), [("count", "<u4"), ("corners", "<i8", (2, lo.shape[1]))])
    form["count"], form["corners"][:, 0], form["corners"][:, 1] = 2 * lo.shape[1], lo, hi
    data, size = form.tobytes(), form.itemsize
    return [data[start : start + size] for start in range(0, len(data), size)]


def crc_payload(crc: int, index: Any, values: Any) -> int:
    """Return the checksum of a row, from that of all before its payload."""
    if index is not None and values is not None:
        first, then = len(index), len(values)
        if first + then <= _COPIED:
            whole: int = crc32(b"".join((_length(first), index, _length(then), values)), crc)
            return whole
    for data in (index, values):
        crc = (
            crc32(_NULL + _NULL, crc)
            if data is None
            else crc32(data, crc32(_length(len(data)), crc))
        )
    return crc
