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
_ABSENT = _NULL + _NULL
_COPIED = 64 << 10  # bytes of a row that are sooner copied than looked at by five calls
_HELD = 5 << 10  # bytes, up to which `crc32` holds the GIL
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
    form = struct.pack(f"<I{len(corners)}q", len(corners), *corners)
    return crc_payload(crc_head(layout, params, dtype, codec), index, values, form)


def crc_with_text(layout: str, dtype: str, codec: str, corners: Sequence[int], values: str) -> int:
    """Return what `crc_of` does of a row without ``params`` and ``index`` whose values are a text in UTF-8."""
    if len(values) <= _PIECE or not values.isascii():
        return crc_of(layout, None, dtype, codec, corners, None, values.encode())
    crc = crc_head(layout, None, dtype, codec)
    crc = crc32(struct.pack(f"<I{len(corners)}q", len(corners), *corners), crc)
    crc = crc32(_ABSENT + _length(len(values)), crc)
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


def crc_payload(crc: int, index: Any, values: Any, corners: bytes = b"") -> int:
    """Return the checksum of a row, from that of its texts; `corners` is what `corner_bytes` says of it."""
    first, index = (_ABSENT, b"") if index is None else (_length(len(index)), index)
    then, values = (_ABSENT, b"") if values is None else (_length(len(values)), values)
    if len(index) + len(values) <= _COPIED:
        return crc_held(b"".join((corners, first, index, then, values)), crc)
    for data in (corners, first, index, then, values):
        crc = crc32(data, crc)
    return crc


def crc_held(data: Any, crc: int = 0) -> int:
    """Return what `crc32` does; while it looks at up to 64 KiB, no other thread comes in.

    `crc32` lets go of the GIL for more than 5 KiB. It needs microseconds for 64 of them, and a thread that comes in
    between may not give the GIL back for milliseconds.

    Examples
    --------
    >>> crc_held(b"a" * 10_000) == crc32(b"a" * 10_000)
    True
    """
    if not _HELD < len(data) <= _COPIED:
        return crc32(data, crc)
    for start in range(0, len(data), _HELD):
        crc = crc32(data[start : start + _HELD], crc)
    return crc
