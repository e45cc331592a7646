"""Decompression that takes no more memory than the bytes to decompress ask for themselves."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]

_UNSEEN = 1 << 20  # so many bytes may be taken before a frame is asked how many it holds

RAW, ZSTD, SAME = range(3)
"""How bytes are stored: as they are, as one Zstandard frame, or as one byte that stands for all."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_HEAD = struct.Struct("<4sBH")
_FIELDS = np.dtype([("magic", "S4"), ("descriptor", "u1"), ("size", "<u2")])  # those of _HEAD
_FEW = 16  # frames that Python looks at sooner than NumPy
_HEADER, _SIZED = struct.Struct("<4sBI"), 0xA0  # one segment, and four bytes for the size
_BLOCK = 128 << 10
_FORM, _ALONE = 0xE3, 0x60  # without a window and a dictionary, and two bytes for the size
_zstd = pa.Codec("zstd")


def content_size(frame: Any) -> int | None:
    """Return how many bytes a Zstandard frame says that it holds, None where it does not say.

    RFC 8878, section 3.1.1.1: magic, descriptor, window, dictionary, content size.

    Examples
    --------
    >>> content_size(pa.Codec("zstd").compress(b"a" * 1000))
    1000
    >>> content_size(b"anything else") is None
    True
    """
    if len(frame) >= _HEAD.size:
        magic, descriptor, size = _HEAD.unpack_from(frame)
        if (
            magic == _MAGIC and descriptor & _FORM == _ALONE
        ):  # as nearly all frames of small rows are
            return int(size) + 256
    head = bytes(memoryview(frame)[:18])
    if len(head) < 6 or head[:4] != _MAGIC:
        return None
    descriptor = head[4]
    single, form = descriptor & 0x20, descriptor >> 6
    start = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    length = (1 if single else 0, 2, 4, 8)[form]
    if not length or start + length > len(head):
        return None
    size = int.from_bytes(head[start : start + length], "little")
    return size + 256 if form == 1 else size


def content_sizes(frames: Sequence[Any]) -> list[int | None]:
    """Return what `content_size` does of each frame.

    Examples
    --------
    >>> content_sizes([pa.Codec("zstd").compress(b"a" * 1000), b"anything else"])
    [1000, None]
    """
    if len(frames) < _FEW or min(map(len, frames)) < _HEAD.size:
        return [content_size(frame) for frame in frames]
    heads = b"".join([memoryview(frame)[: _HEAD.size] for frame in frames])
    fields = np.frombuffer(heads, _FIELDS)
    is_usual = (fields["magic"] == _MAGIC) & (fields["descriptor"] & _FORM == _ALONE)
    out: list[int | None] = (fields["size"].astype(np.int64) + 256).tolist()
    for i in np.flatnonzero(~is_usual).tolist():
        out[i] = content_size(frames[i])
    return out


def inflate_many(bodies: Sequence[Any], forms: Sequence[int], sizes: Sequence[int]) -> list[Array]:
    """Return the bytes of many payloads, as `inflate` of each does.

    Zstandard takes frames one after the other as one (RFC 8878, section 3.1): a call for each would take
    memory for its tables anew, which is dearer than decompressing a small frame. What is not compressed
    goes into the same stream, as a frame of its own: Python would take longer to look at each.

    Parameters
    ----------
    bodies : sequence of bytes-like
        What is stored.
    forms : sequence of int
        How: `RAW`, `ZSTD` or `SAME`.
    sizes : sequence of int
        How many bytes are needed of each.

    Raises
    ------
    CorruptDataError
        If one holds another number of bytes, or does not decompress.

    Examples
    --------
    >>> packed = pa.Codec("zstd").compress(b"a" * 100, asbytes=True)
    >>> [len(flat) for flat in inflate_many([packed, b"abc", b"a"], [ZSTD, RAW, SAME], [100, 3, 9])]
    [100, 3, 9]
    """
    whole = _inflate_stream(bodies, forms, sizes)
    if whole is None:
        return [_inflate_any(*one) for one in zip(bodies, forms, sizes, strict=True)]
    stops = accumulate(sizes)
    return [whole[stop - size : stop] for stop, size in zip(stops, sizes, strict=True)]


def inflate_joined(bodies: Sequence[Any], forms: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return the bytes of many payloads, one after the other; see `inflate_many`.

    Examples
    --------
    >>> packed = pa.Codec("zstd").compress(b"a" * 100, asbytes=True)
    >>> len(inflate_joined([packed, b"abc"], [ZSTD, RAW], [100, 3]))
    103
    """
    whole = _inflate_stream(bodies, forms, sizes)
    if whole is not None:
        return whole
    return np.concatenate([np.zeros(0, np.uint8), *inflate_many(bodies, forms, sizes)])


def _inflate_stream(
    bodies: Sequence[Any], forms: Sequence[int], sizes: Sequence[int]
) -> Array | None:
    """Return the bytes of all payloads, one after the other; None if they are to be looked at one by one."""
    if len(bodies) < 2:
        return None
    frames = [body for body, form in zip(bodies, forms, strict=True) if form == ZSTD]
    wanted = [size for form, size in zip(forms, sizes, strict=True) if form == ZSTD]
    for held, size in zip(content_sizes(frames), wanted, strict=True):
        if held != size:
            if sum(wanted) > _UNSEEN:
                raise _misfit(held, size)
            return None
    stream: list[Any] = []
    for body, form, size in zip(bodies, forms, sizes, strict=True):
        if form == ZSTD:
            stream.append(body)
            continue
        if len(body) != (1 if form == SAME else size):
            raise _misfit(len(body), 1 if form == SAME else size)
        stream += _frame(body, form, size)
    return _decompress(b"".join(stream), sum(sizes))


def _frame(body: Any, form: int, size: int) -> list[Any]:
    """Return a Zstandard frame of bytes as they are, or of one byte that stands for all, in parts.

    RFC 8878, sections 3.1.1.1 and 3.1.1.2: a header with the size in four bytes, then blocks of at most 128 KiB,
    each with its size, its type, and whether it is the last.
    """
    header = _HEADER.pack(_MAGIC, _SIZED, size)
    if size <= _BLOCK:
        return [header + (size << 3 | (form == SAME) << 1 | 1).to_bytes(3, "little"), body]
    parts: list[Any] = [header]
    for start in range(0, size, _BLOCK):
        length = min(size - start, _BLOCK)
        is_last = start + length == size
        parts.append((length << 3 | (form == SAME) << 1 | is_last).to_bytes(3, "little"))
        parts.append(body if form == SAME else body[start : start + length])
    return parts


def _inflate_any(body: Any, form: int, size: int) -> Array:
    if form != SAME:
        return inflate(body, form == ZSTD, size)
    return np.full(size, _of_size(np.frombuffer(body, np.uint8), 1)[0])


def inflate(body: Any, compressed: bool, nbytes: int) -> Array:
    """Return the bytes of a payload, a uint8 array of `nbytes`, whatever it holds.

    A damaged row may ask for any number of bytes, so memory is taken only where the payload says that it
    holds just so many.

    Parameters
    ----------
    body : bytes-like
        One Zstandard frame, or the bytes themselves.
    compressed : bool
        Which of them.
    nbytes : int
        How many bytes are needed.

    Raises
    ------
    CorruptDataError
        If it holds another number of bytes, or does not decompress.

    Examples
    --------
    >>> inflate(b"abc", False, 3).tolist()
    [97, 98, 99]
    """
    if not compressed:
        return _of_size(np.frombuffer(body, np.uint8), nbytes)
    if nbytes > _UNSEEN and content_size(body) != nbytes:
        raise _misfit(content_size(body), nbytes)
    return _decompress(body, nbytes)


def inflate_beginning(frame: Any, nbytes: int, wanted: int) -> Array:
    """Return the first bytes of a Zstandard frame, without decompressing much more of it; see `inflate`.

    Parameters
    ----------
    frame : bytes-like
        One frame.
    nbytes : int
        How many bytes it holds.
    wanted : int
        How many of these are needed.

    Raises
    ------
    CorruptDataError
        If it holds another number of bytes, or does not decompress so far.

    Examples
    --------
    >>> inflate_beginning(pa.Codec("zstd").compress(b"abcdef"), 6, 2).tolist()
    [97, 98]
    """
    if content_size(frame) != nbytes:
        raise _misfit(content_size(frame), nbytes)
    try:
        with pa.CompressedInputStream(pa.BufferReader(frame), "zstd") as stream:
            found = np.frombuffer(stream.read_buffer(wanted), np.uint8)
    except (pa.ArrowException, OSError) as error:
        raise CorruptDataError(f"a payload does not decompress to {wanted} bytes") from error
    return _of_size(found, wanted)


def _decompress(frames: Any, nbytes: int) -> Array:
    try:
        flat = np.frombuffer(_zstd.decompress(frames, decompressed_size=nbytes), np.uint8)
    except (pa.ArrowException, OSError) as error:
        raise CorruptDataError(f"a payload does not decompress to {nbytes} bytes") from error
    return _of_size(flat, nbytes)


def _of_size(flat: Array, nbytes: int) -> Array:
    if flat.nbytes != nbytes:
        raise _misfit(flat.nbytes, nbytes)
    return flat


def _misfit(held: int | None, nbytes: int) -> CorruptDataError:
    return CorruptDataError(f"a payload holds {held} bytes where {nbytes} are needed")
