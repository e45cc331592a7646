"""The lengths of payloads in the footer of a data file: with them, one payload is read without its row group.

A payload column is plain and uncompressed, and where lengths are given it has one page in each row group. So its values
end where the row group ends, and lengths tell where each of them lies. The footer has them under `KEY` and the path of
the column. No reader needs them, and none has to believe them: before each value stands its length.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

KEY = "tensorlake.lengths."
"""What the keys of lengths in a footer begin with; the path of a column follows."""

NULL = 0xFFFFFFFF
"""The length of a null."""

PREFIX = 4
"""Bytes before each value, with its length."""

_HEAD = 128
"""Bytes that the header of a page, and the levels of values that are all there, have at most."""

_FORM = np.dtype("<u4")


def packed_lengths(lengths: Array) -> str:
    """Return lengths as a text for a footer: about two bytes for each.

    Examples
    --------
    >>> text = packed_lengths(np.array([5, 70_000, NULL]))
    >>> unpacked_lengths({(KEY + "x.data").encode(): text.encode()}, "x.data", 3).tolist()
    [5, 70000, 4294967295]
    """
    # Bytes of one weight together: the upper ones are alike.
    planes = lengths.astype(_FORM).view(np.uint8).reshape(-1, _FORM.itemsize).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 1)).decode()


def unpacked_lengths(said: Mapping[bytes, bytes] | None, path: str, count: int) -> Array | None:
    """Return the lengths of the values of a column, None where a footer does not have them.

    Parameters
    ----------
    said : mapping of bytes to bytes, or None
        What the footer has by keys.
    path : str
        The path of the column.
    count : int
        How many rows the file has.
    """
    text = (said or {}).get(f"{KEY}{path}".encode())
    if text is None:
        return None
    nbytes = count * _FORM.itemsize
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(text), nbytes + 1)
    except (binascii.Error, zlib.error):
        return None
    if len(data) != nbytes:
        return None
    planes = np.frombuffer(data, np.uint8).reshape(_FORM.itemsize, -1)
    found: Array = np.ascontiguousarray(planes.T).view(_FORM)[:, 0]
    return found


def ends_of(lengths: Array, nbytes: int) -> Array | None:
    """Return where each value of a row group ends in its column chunk of one page, None if that cannot be.

    Parameters
    ----------
    lengths : uint32 ndarray
        Of all values of the row group.
    nbytes : int
        Bytes of the column chunk.

    Examples
    --------
    >>> ends_of(np.array([3, 5], np.uint32), 40).tolist()
    [31, 40]
    """
    if (lengths == NULL).any():
        return None
    ends: Array = np.cumsum(lengths.astype(np.int64) + PREFIX)
    head = nbytes - int(ends[-1]) if len(ends) else 0
    return ends + head if 0 < head <= _HEAD else None
