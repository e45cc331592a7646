"""One-dimensional buffers of the sparse layouts: integers by byte planes, values narrowed.

Both forms say in their first byte how they are coded, so that every row may have the form that suits it,
and both are decoded many rows at a time: Python's own cost for a row would rule otherwise.

Integers
    First byte: the width ``w`` (0 to 8) of the widest integer in bytes, plus 16 if zstd follows. Then the
    lowest bytes of all integers, then all second bytes, up to the ``w``-th.
Values
    First byte: the place in `STORED` of the dtype in which they are stored, plus 64 if all values are the
    same one, which is then stored once, plus 128 if zstd follows. Then the elements, little endian, byte
    plane by byte plane. Values are stored in the smallest dtype that holds every one of them bit by bit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]

STORED = ("", "u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "i8", "u8")
"""Dtypes in which values may be stored; the first stands for the tensor's own."""

_BY_SIZE = sorted(range(1, len(STORED)), key=lambda place: np.dtype(STORED[place]).itemsize)

MAX_ELEMENTS = 1 << 26
"""Elements that one row may hold: what a damaged row can make a reader allocate."""

ZSTD_LEVEL = 9
"""Rows are small, so a high level costs little (docs/parameters.md)."""

_ZSTD_INTS, _ZSTD_VALUES, _SAME = 16, 128, 64
_DIGIT_BYTES = 8


def pack_ints(numbers: Array, compress: bool = True) -> bytes:
    """Return one buffer of non-negative integers.

    Examples
    --------
    >>> unpack_ints([pack_ints(np.array([3, 500, 7]))], [3]).tolist()
    [3, 500, 7]
    """
    (out,) = pack_many_ints(numbers, np.array([0]), compress)
    return out


def pack_many_ints(numbers: Array, starts: Array, compress: bool = True) -> list[bytes]:
    """Return a buffer for every run of some non-negative integers.

    Parameters
    ----------
    numbers : integer ndarray, shape (n,)
        All runs, one after the other.
    starts : int64 ndarray, shape (runs,)
        Where each begins, ascending, the first at 0.
    compress : bool
        Whether to try zstd; what it does not make smaller stays as it is.
    """
    count = len(numbers)
    if not count:
        return [b"\0"] * len(starts)
    words = numbers.astype("<u8", copy=False)
    planes = np.ascontiguousarray(words.view(np.uint8).reshape(count, _DIGIT_BYTES).T)
    most = np.maximum.reduceat(words, starts)
    widths = np.zeros(len(starts), np.int64)
    for _ in range(_DIGIT_BYTES):
        widths += most > 0
        most = most >> np.uint64(8)
    codec = pa.Codec("zstd", ZSTD_LEVEL)
    stops = [*starts[1:].tolist(), count]
    out = []
    for start, stop, width in zip(starts.tolist(), stops, widths.tolist(), strict=True):
        body = planes[:width, start:stop].tobytes()
        out.append(_shorter(codec, body, width, _ZSTD_INTS, compress))
    return out


def _shorter(codec: pa.Codec, body: bytes, head: int, flag: int, compress: bool) -> bytes:
    """Return head and body, compressed where that is smaller."""
    if compress and len(body) > 16:
        packed: bytes = codec.compress(body, asbytes=True)
        if len(packed) < len(body):
            return bytes([head | flag]) + packed
    return bytes([head]) + body


def unpack_ints(buffers: Sequence[Any], counts: Sequence[int]) -> Array:
    """Return the integers of many buffers, one after the other.

    Parameters
    ----------
    buffers : sequence of bytes or pyarrow.Buffer
        As `pack_many_ints` made them.
    counts : sequence of int
        How many integers each holds.

    Returns
    -------
    uint32 or uint64 ndarray, shape (sum(counts),)

    Raises
    ------
    CorruptDataError
        If a buffer does not hold just so many.
    """
    total = _total(counts)
    planes = np.zeros((4, total), np.uint8)
    widest = 0
    for body, head, start, stop in _bodies(buffers, counts):
        width = head & 15
        if head & ~31 or width > _DIGIT_BYTES:
            raise CorruptDataError(f"a buffer of integers begins with {head}")
        if width > len(planes):
            planes = np.concatenate([planes, np.zeros((4, total), np.uint8)])
        flat = _expand(body, head & _ZSTD_INTS, width * (stop - start))
        planes[:width, start:stop] = flat.reshape(width, stop - start)
        widest = max(widest, width)
    word = np.dtype(np.uint32 if widest <= 4 else np.uint64)
    out: Array = planes[0].astype(word)
    for k in range(1, widest):
        out |= planes[k].astype(word) << word.type(8 * k)
    return out


def _total(counts: Sequence[int]) -> int:
    for count in counts:
        if not 0 <= count <= MAX_ELEMENTS:
            raise CorruptDataError(f"a row says that it holds {count} elements")
    return sum(counts)


def _bodies(
    buffers: Sequence[Any], counts: Sequence[int]
) -> Iterator[tuple[memoryview, int, int, int]]:
    """Yield ``(body, first byte, start, stop)`` of every buffer."""
    start = 0
    for buffer, count in zip(buffers, counts, strict=True):
        view = memoryview(buffer)
        if not view.nbytes:
            raise CorruptDataError("a buffer of a row is empty")
        yield view[1:], view[0] & 255, start, start + count
        start += count


_zstd = pa.Codec("zstd")


def _expand(body: memoryview, packed: int, nbytes: int) -> Array:
    """Return the bytes of a body as an array of `nbytes`, whatever it holds."""
    if packed:
        try:
            flat = np.frombuffer(_zstd.decompress(body, decompressed_size=nbytes), np.uint8)
        except (pa.ArrowException, OSError) as error:
            raise CorruptDataError(f"a buffer does not decompress to {nbytes} bytes") from error
    else:
        flat = np.frombuffer(body, np.uint8)
    if len(flat) != nbytes:
        raise CorruptDataError(f"a buffer holds {len(flat)} bytes where {nbytes} are needed")
    return flat


def narrowest(values: Array) -> int:
    """Return the place in `STORED` of the smallest dtype that holds all values bit by bit.

    Examples
    --------
    >>> STORED[narrowest(np.array([1.0, 200.0]))], STORED[narrowest(np.array([0.1]))]
    ('u1', '')
    """
    plain = _plain(values)
    if plain.dtype.kind not in "iuf" or not plain.size:
        return 0
    bits = plain.view(f"u{plain.itemsize}")
    for place in _BY_SIZE:
        dtype = np.dtype(STORED[place])
        if dtype.itemsize >= plain.itemsize:
            break
        # What the first values do not fit need not be tried on all of them.
        if _holds(plain[:64], bits[:64], dtype) and _holds(plain, bits, dtype):
            return place
    return 0


def _holds(plain: Array, bits: Array, dtype: np.dtype[Any]) -> bool:
    if plain.dtype.kind != "f" and dtype.kind == "f":
        return False
    with np.errstate(all="ignore"):
        back = plain.astype(dtype).astype(plain.dtype)
    return bool(np.array_equal(back.view(bits.dtype), bits))


def _plain(values: Array) -> Array:
    """Return datetimes and small floats as the integers that they are; others as they are."""
    if values.dtype.kind in "mMV" or values.dtype.kind not in "biufc":
        return values.view(f"i{values.dtype.itemsize}")
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def pack_values(values: Array, compress: bool = True) -> bytes:
    """Return one buffer of values.

    Examples
    --------
    >>> packed = pack_values(np.array([1.0, 2.0, 1.0]))
    >>> len(packed), unpack_values([packed], [3], np.dtype("f8")).tolist()
    (4, [1.0, 2.0, 1.0])
    """
    (out,) = pack_many_values(values, np.array([0]), compress)
    return out


def pack_many_values(values: Array, starts: Array, compress: bool = True) -> list[bytes]:
    """Return a buffer for every run of some values; see `pack_many_ints`."""
    count = len(values)
    if not count:
        return [b"\0"] * len(starts)
    place = narrowest(values)
    plain = np.ascontiguousarray(_plain(values))
    if place:
        with np.errstate(all="ignore"):
            plain = plain.astype(STORED[place])
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    size = plain.dtype.itemsize
    rows = plain.view(np.uint8).reshape(count, size)
    planes = np.ascontiguousarray(rows.T)
    differ = np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)])
    differ[starts] = False
    mixed = np.add.reduceat(differ, starts, dtype=np.int64) > 0
    codec = pa.Codec("zstd", ZSTD_LEVEL)
    stops = [*starts[1:].tolist(), count]
    out = []
    for start, stop, many in zip(starts.tolist(), stops, mixed.tolist(), strict=True):
        if many:
            body = planes[:, start:stop].tobytes()
            out.append(_shorter(codec, body, place, _ZSTD_VALUES, compress))
        else:
            out.append(bytes([place | _SAME]) + rows[start].tobytes())
    return out


def unpack_values(buffers: Sequence[Any], counts: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return the values of many buffers, one after the other; see `unpack_ints`.

    Raises
    ------
    CorruptDataError
        If a buffer does not hold just so many values.
    """
    out = np.empty(_total(counts), dtype)
    plain = _plain(out)
    for body, head, start, stop in _bodies(buffers, counts):
        place = head & 63
        if place >= len(STORED):
            raise CorruptDataError(f"a buffer of values begins with {head}")
        stored = np.dtype(STORED[place] or plain.dtype).newbyteorder("<")
        count = 1 if head & _SAME else stop - start
        flat = _expand(body, head & _ZSTD_VALUES, count * stored.itemsize)
        if stored.itemsize > 1 and count > 1:
            flat = np.ascontiguousarray(flat.reshape(stored.itemsize, count).T).reshape(-1)
        plain[start:stop] = flat.view(stored)
    return out


def gaps(ids: Array, starts: Array) -> Array:
    """Return the differences between neighbours; at every start the number itself.

    Examples
    --------
    >>> gaps(np.array([3, 4, 9, 2, 7]), np.array([0, 3])).tolist()
    [3, 1, 5, 2, 5]
    """
    out = np.diff(ids, prepend=0)
    out[starts] = ids[starts]
    return out


def sums(differences: Array, counts: Array) -> Array:
    """Return what `gaps` was made of, for runs of so many numbers each, none of them empty.

    Modulo 2**64: what a damaged buffer holds is found by the bounds of what comes out.

    Examples
    --------
    >>> sums(np.array([3, 1, 5, 2, 5]), np.array([3, 2])).tolist()
    [3, 4, 9, 2, 7]
    """
    running: Array = np.cumsum(differences.astype(np.uint64), dtype=np.uint64).view(np.int64)
    starts = np.cumsum(counts) - counts
    # One running sum over all runs: what had come before a run is taken away again.
    running -= np.repeat(running[starts] - differences[starts].astype(np.int64), counts)
    return running


def fold(numbers: Array) -> Array:
    """Return integers of either sign as non-negative ones, small as small: 0, -1, 1, -2 as 0, 1, 2, 3.

    Examples
    --------
    >>> unfold(fold(np.array([0, -1, 1, -2]))).tolist()
    [0, -1, 1, -2]
    """
    return np.asarray((numbers << 1) ^ (numbers >> 63))


def unfold(folded: Array) -> Array:
    """Return the int64 integers that `fold` made non-negative."""
    wide = folded.astype(np.uint64)
    sign: Array = -(wide & np.uint64(1)).view(np.int64)
    return np.asarray((wide >> np.uint64(1)).view(np.int64) ^ sign)


def join(parts: Sequence[bytes]) -> bytes:
    """Return some buffers as one: each with its length before it (uint32, little endian).

    Examples
    --------
    >>> [bytes(part) for part in split(join([b"ab", b""]), 2)]
    [b'ab', b'']
    """
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def split(buffer: Any, count: int) -> list[memoryview]:
    """Return the `count` buffers that `join` made one of.

    Raises
    ------
    CorruptDataError
        If they do not fill the buffer.
    """
    view = memoryview(buffer).cast("B")
    out, at = [], 0
    for _ in range(count):
        if at + 4 > len(view):
            raise CorruptDataError("the index of a row ends too early")
        (length,) = struct.unpack_from("<I", view, at)
        if at + 4 + length > len(view):
            raise CorruptDataError("the index of a row ends too early")
        out.append(view[at + 4 : at + 4 + length])
        at += 4 + length
    if at != len(view):
        raise CorruptDataError("the index of a row is longer than its parts")
    return out
