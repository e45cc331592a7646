"""Decompression that takes no more memory than the bytes to decompress ask for themselves."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]

_UNSEEN = 1 << 20  # so many bytes may be taken before a frame is asked how many it holds

_MAGIC = b"\x28\xb5\x2f\xfd"
_HEAD = struct.Struct("<4sBH")
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


def inflate_many(bodies: Sequence[tuple[Any, bool]], sizes: Sequence[int]) -> list[Array]:
    """Return the bytes of many payloads, as `inflate` of each does.

    Zstandard takes frames one after the other as one (RFC 8878, section 3.1): a call for each would take
    memory for its tables anew, which is dearer than decompressing a small frame.

    Parameters
    ----------
    bodies : sequence of (bytes-like, bool)
        Frames, or the bytes themselves, and which of them.
    sizes : sequence of int
        How many bytes are needed of each.

    Raises
    ------
    CorruptDataError
        If one holds another number of bytes, or does not decompress.

    Examples
    --------
    >>> packed = pa.Codec("zstd").compress(b"a" * 100, asbytes=True)
    >>> [len(flat) for flat in inflate_many([(packed, True), (b"abc", False), (packed, True)], [100, 3, 100])]
    [100, 3, 100]
    """
    whole = _all_frames(bodies, sizes)
    if whole is None:
        return [inflate(*body, size) for body, size in zip(bodies, sizes, strict=True)]
    out, at = [], 0
    for (body, compressed), size in zip(bodies, sizes, strict=True):
        if compressed:
            out.append(whole[at : at + size])
            at += size
        else:
            out.append(inflate(body, False, size))
    return out


def inflate_joined(bodies: Sequence[tuple[Any, bool]], sizes: Sequence[int]) -> Array:
    """Return the bytes of many payloads, one after the other; see `inflate_many`.

    Examples
    --------
    >>> packed = pa.Codec("zstd").compress(b"a" * 100, asbytes=True)
    >>> len(inflate_joined([(packed, True), (b"abc", False)], [100, 3]))
    103
    """
    if all(compressed for _, compressed in bodies):
        whole = _all_frames(bodies, sizes)
        if whole is not None:
            return whole
    return np.concatenate([np.zeros(0, np.uint8), *inflate_many(bodies, sizes)])


def _all_frames(bodies: Sequence[tuple[Any, bool]], sizes: Sequence[int]) -> Array | None:
    """Return the bytes of all frames, one after the other; None if they are to be looked at one by one."""
    frames: list[Any] = []
    total = 0
    wrong = None
    for (body, compressed), size in zip(bodies, sizes, strict=True):
        if compressed:
            held = content_size(body)
            if held != size and wrong is None:
                wrong = held, size
            frames.append(body)
            total += size
    if wrong is not None and total > _UNSEEN:
        raise _misfit(*wrong)
    if len(frames) < 2 or wrong is not None:
        return None
    return _decompress(b"".join(frames), total)


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
