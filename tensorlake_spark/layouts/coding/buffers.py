"""One-dimensional buffers of the sparse layouts: integers by byte planes, values narrowed.

Both forms say in their first byte how they are coded, so that every row may have the form that suits it,
and both are decoded many rows at a time: Python's own cost for a row would rule otherwise.

Integers
    First byte: the width ``w`` (0 to 8) of the widest integer in bytes, plus 16 if zstd follows. Then the
    lowest bytes of all integers, then all second bytes, up to the ``w``-th.
Values
    First byte: the place in `STORED` of the dtype in which they are stored, plus 64 if all values are the
    same one, which is then stored once, or plus 128 if zstd follows. Then the elements, little endian,
    byte plane by byte plane. Values are stored in the smallest dtype that holds every one of them bit by
    bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.decompression import (
    RAW,
    SAME,
    ZSTD,
    content_size,
    inflate_joined,
    inflate_many,
)

Array = np.ndarray[Any, Any]

STORED = ("", "u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
"""Dtypes in which values may be stored; the first stands for the tensor's own."""

_BY_SIZE = sorted(range(1, len(STORED)), key=lambda place: np.dtype(STORED[place]).itemsize)

MAX_ELEMENTS = 1 << 24
"""Elements that one row may hold, and cells of a block that is stored as an array."""

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
    bodies, forms, sizes, widths = _int_bodies(buffers, counts)
    flats = inflate_many(bodies, forms, sizes)
    widest, total = max(widths, default=0), sum(counts)
    planes = np.zeros((max(1, widest), total), np.uint8)
    stops = np.cumsum(counts, dtype=np.int64).tolist()
    for flat, width, count, stop in zip(flats, widths, counts, stops, strict=True):
        planes[:width, stop - count : stop] = flat.reshape(width, count)
    word = np.dtype(np.uint32 if widest <= 4 else np.uint64)
    *lower, highest = planes
    out: Array = highest.astype(word)
    for plane in reversed(lower):
        out <<= word.type(8)
        out |= plane
    return out


def int_planes(buffers: Sequence[Any], counts: Sequence[int]) -> tuple[Array, list[int]]:
    """Return the bytes of all buffers of integers, of each the lowest of all first, and how many each integer has.

    Parameters
    ----------
    buffers, counts
        As for `unpack_ints`.

    Raises
    ------
    CorruptDataError
        If a buffer does not hold just so many.
    """
    bodies, forms, sizes, widths = _int_bodies(buffers, counts)
    return inflate_joined(bodies, forms, sizes), widths


def _int_bodies(
    buffers: Sequence[Any], counts: Sequence[int]
) -> tuple[list[Any], list[int], list[int], list[int]]:
    """Return what `inflate_many` takes, and how many bytes each integer of a buffer has."""
    _total(counts)
    heads, bodies = _parted(buffers)
    known = {head: (_width(head), ZSTD if head & _ZSTD_INTS else RAW) for head in {*heads}}
    widths = [known[head][0] for head in heads]
    forms = [known[head][1] for head in heads]
    sizes = [width * count for width, count in zip(widths, counts, strict=True)]
    return bodies, forms, sizes, widths


def check_ints(buffers: Sequence[Any], counts: Sequence[int], least: int = 0) -> None:
    """Look at what buffers say that they hold, before memory is taken for their integers.

    Parameters
    ----------
    buffers, counts
        As for `unpack_ints`.
    least : int
        So many bytes at least are needed for an integer: 1 where not all of them can be 0.

    Raises
    ------
    CorruptDataError
        If a buffer does not hold just so many.
    """
    _total(counts)
    for head, body, count in zip(*_parted(buffers), counts, strict=True):
        width = _width(head)
        _claims(body, head & _ZSTD_INTS, width * count)
        if width < least:
            raise CorruptDataError(f"a buffer of {count} different integers has only zeros")


def check_several(buffers: Sequence[Any], counts: Sequence[int]) -> None:
    """Raise CorruptDataError if one buffer holds several integers that are all different, and all 0.

    Such a buffer is empty whatever it says that it holds.
    """
    for buffer, count in zip(buffers, counts, strict=True):
        if count > 1 and len(buffer) and not buffer[0] & 15:
            raise CorruptDataError(f"a buffer of {count} different integers has only zeros")


def _width(head: int) -> int:
    if head & ~31 or head & 15 > _DIGIT_BYTES:
        raise CorruptDataError(f"a buffer of integers begins with {head}")
    return head & 15


def _claims(body: Any, compressed: int, nbytes: int) -> None:
    held = content_size(body) if compressed else len(body)
    if held != nbytes:
        raise CorruptDataError(f"a buffer holds {held} bytes where {nbytes} are needed")


def _total(counts: Sequence[int]) -> int:
    for count in counts:
        if not 0 <= count <= MAX_ELEMENTS:
            raise CorruptDataError(f"a row says that it holds {count} elements")
    return sum(counts)


def _parted(buffers: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Return the first byte of every buffer, and what follows it."""
    # Of bytes the rest is copied: the garbage collector looks at views of memory, and not at bytes.
    views = [b if isinstance(b, bytes) else memoryview(b) for b in buffers]
    if not all(map(len, views)):
        raise CorruptDataError("a buffer of a row is empty")
    return [view[0] & 255 for view in views], [view[1:] for view in views]


def narrowest(values: Array) -> int:
    """Return the place in `STORED` of the smallest dtype that holds all values bit by bit.

    Examples
    --------
    >>> STORED[narrowest(np.array([1.0, 200.0]))], STORED[narrowest(np.array([0.1]))]
    ('u1', '')
    """
    plain = _plain(values)
    if plain.dtype.kind == "c" or not plain.size:
        return 0
    bits = plain.view(f"u{plain.itemsize}")
    for place in _BY_SIZE:
        dtype = np.dtype(STORED[place])
        if not _may_hold(dtype, plain.dtype):
            continue
        # What the first values do not fit need not be tried on all of them.
        if _holds(plain[:64], bits[:64], dtype) and _holds(plain, bits, dtype):
            return place
    return 0


def _may_hold(stored: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype may be stored in another one: a smaller one, floats only for floats."""
    kinds = "iuf" if dtype.kind == "f" else "iu"
    return dtype.kind in "iuf" and stored.itemsize < dtype.itemsize and stored.kind in kinds


def _holds(plain: Array, bits: Array, dtype: np.dtype[Any]) -> bool:
    if (
        dtype.kind == "f"
        and (bits[np.isnan(plain)] >> np.finfo(plain.dtype).nmant - 1 & 1 == 0).any()
    ):
        return False  # a signalling NaN, which some processors make quiet when they widen it
    with np.errstate(all="ignore"):
        back = plain.astype(dtype).astype(plain.dtype)
    return bool(np.array_equal(back.view(bits.dtype), bits))


def _plain(values: Array) -> Array:
    """Return bools, datetimes and the dtypes of ml_dtypes as the integers that they are; others as they are."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    # NumPy's own numbers: ml_dtypes gives some of its dtypes the kind of a float.
    if values.dtype.kind in "iufc" and issubclass(values.dtype.type, np.number):
        return values
    return values.view(f"i{values.dtype.itemsize}")


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


def unpack_values(
    buffers: Sequence[Any],
    counts: Sequence[int],
    dtype: np.dtype[Any],
    take: Array | None = None,
    widened: bool = True,
) -> Array:
    """Return the values of many buffers, one after the other; see `unpack_ints`.

    Parameters
    ----------
    buffers, counts
        As for `unpack_ints`.
    dtype : numpy.dtype
        Of the values.
    take : integer ndarray, optional
        Which of all the values to return.
    widened : bool
        Whether they have the dtype. Without it, numbers that are all stored in one shorter dtype keep it.

    Raises
    ------
    CorruptDataError
        If a buffer does not hold just so many values.
    """
    _total(counts)
    heads, bodies = _parted(buffers)
    known = {head: _form(head, dtype) for head in {*heads}}
    plain = _plain(np.empty(0, dtype)).dtype
    kinds = [*{stored for stored, _ in known.values()}]
    # Values are widened last, and only those that are taken.
    if len(kinds) == 1 and kinds[0].itemsize == 1:
        ways = {head: SAME if head & _SAME else _way(head) for head in known}
        values = inflate_joined(bodies, [ways[head] for head in heads], counts).view(kinds[0])
    else:
        values = _filled(bodies, heads, known, counts, plain)
    if take is not None:
        values = values[take]
    if not widened and plain == dtype:
        return values
    return values.astype(plain, copy=False).view(dtype)


def _way(head: int) -> int:
    return ZSTD if head & _ZSTD_VALUES else RAW


def _filled(
    bodies: Sequence[Any],
    heads: Sequence[int],
    known: Mapping[int, tuple[np.dtype[Any], bool]],
    counts: Sequence[int],
    plain: np.dtype[Any],
) -> Array:
    """Return values in the one dtype in which all are stored, or else in their own."""
    kinds = {stored for stored, _ in known.values()}
    values = np.empty(sum(counts), kinds.pop() if len(kinds) == 1 else plain)
    forms = [known[head] for head in heads]
    held = [1 if same else count for (_, same), count in zip(forms, counts, strict=True)]
    sizes = [count * stored.itemsize for (stored, _), count in zip(forms, held, strict=True)]
    flats = inflate_many(bodies, [*map(_way, heads)], sizes)
    start = 0
    for flat, (stored, same), count in zip(flats, forms, counts, strict=True):
        if stored.itemsize > 1 and count > 1 and not same:
            flat = np.ascontiguousarray(flat.reshape(stored.itemsize, count).T).reshape(-1)
        values[start : start + count] = flat.view(stored)
        start += count
    return values


@lru_cache(maxsize=1024)
def _form(head: int, dtype: np.dtype[Any]) -> tuple[np.dtype[Any], bool]:
    """Return the dtype in which a buffer holds values of `dtype`, and whether it holds just one."""
    place, plain = head & 63, _plain(np.empty(0, dtype)).dtype
    fits = place < len(STORED) and (not place or _may_hold(np.dtype(STORED[place]), plain))
    if not fits or head & (_SAME | _ZSTD_VALUES) == _SAME | _ZSTD_VALUES:
        raise CorruptDataError(f"a buffer of values of dtype {dtype} begins with {head}")
    return np.dtype(STORED[place] or plain).newbyteorder("<"), bool(head & _SAME)


def is_same(buffer: Any) -> bool:
    """Whether a buffer of values holds one value, which stands for any number of them.

    Examples
    --------
    >>> is_same(pack_values(np.array([2.5, 2.5]))), is_same(pack_values(np.array([2.5, 0.1])))
    (True, False)
    """
    view = memoryview(buffer)
    return bool(view.nbytes and view[0] & _SAME)
