"""The first rows of a JPEG. Its rows are coded from top to bottom, so those below need not be decoded."""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Any

from tensorlake_spark.datasets.types.base import Array

MARGIN = 4
"""Rows below the last wanted one that are decoded, too: colours of half the size are smoothed across rows."""

LEAST_ROWS = 16
"""So many rows have to be left out: fewer are not worth a copy of the file."""

_MOST_ROWS = 0xFFFF  # that a header can name

_STARTS = b"\xff\xc0", b"\xff\xc1"  # of frames that are coded from top to bottom, once
_RESTARTS = b"\xff\xdd"
_STOPPED = re.compile(r"Corrupt JPEG data: \d+ extraneous bytes before marker 0xd9")


def decode_top(decode: Any, payload: Any, rows: int, channels: int, out: Array) -> bool:
    """Write the first rows of a JPEG into an array, and say whether that was done.

    The decoder gets a copy whose header has fewer rows. It decodes these, and then finds bytes that nobody asked for:
    this must be the first thing that it finds wrong. If it is another, or if the file is of another kind, the caller
    has to decode all of it. Damage below the rows is not looked for, except for a missing end.

    Parameters
    ----------
    decode : callable
        ``simplejpeg.decode_jpeg``.
    payload : bytes or memoryview
        Of unsigned bytes.
    rows : int
        How many first rows are wanted.
    channels : int
        1 or 3.
    out : uint8 ndarray, shape (height, width) or (height, width, channels)
        Of the whole image, C-contiguous. What lies below the rows may be anything afterwards.
    """
    height, width = out.shape[:2]
    cut = rows + MARGIN
    if height - cut < LEAST_ROWS or height > _MOST_ROWS:
        return False
    copy = bytearray(payload)
    frame = frame_header(height, width, channels)
    place = next((at for start in _STARTS if (at := copy.find(start + frame)) >= 0), -1)
    if place < 0 or _RESTARTS in copy:
        return False
    copy[place + 5 : place + 7] = struct.pack(">H", cut)  # after marker, length and precision
    color = "RGB" if channels == 3 else "GRAY"
    try:
        found = decode(copy, color, False, False, 0, 0, 1, out[:cut])
    except ValueError as error:
        return _STOPPED.fullmatch(str(error)) is not None
    return bool(found.shape == (cut, width, channels))


@lru_cache(4096)
def frame_header(height: int, width: int, channels: int) -> bytes:
    """Return the bytes of a frame header from its length to the number of components.

    Examples
    --------
    >>> frame_header(480, 640, 3).hex(" ")
    '00 11 08 01 e0 02 80 03'
    """
    return struct.pack(">HBHHB", 8 + 3 * channels, 8, height & 0xFFFF, width & 0xFFFF, channels)
