"""The step ``bins``: words as the bin that each lies in, and as many further bits as a bin is wide.

Bins are narrow for small words and wide for large ones, `2 ** m` of them from each power of two to the next.
Which bin a word lies in is one byte, and these bytes are compressed; where it lies in the bin is random more
often than not, and its bits stand one after the other as they are. Numbers whose small values are many,
such as counts, ids and differences, come near to their entropy so.

A payload is ``m`` (one byte), the length of the frame (uint32), one Zstandard frame of the bins, and the bits,
filled up with zeros to a whole byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding.decompression import inflate

Array = np.ndarray[Any, Any]

_HEAD = struct.Struct("<BI")
_FINEST = 7
_ONE, _SIX, _63 = np.uint64(1), np.uint64(6), np.uint64(63)
_MASKS = np.append((_ONE << np.arange(64, dtype=np.uint64)) - _ONE, ~np.uint64(0))  # by width
_PIECE = 1 << 14  # words that are looked at together: what is made of them stays in the cache

BITS = "tensorlake_spark.layouts.kernels.bits"
"""What `kernel_switch` loads for words of few bits."""

SHORT = 4 << 10
"""Bytes of words below which NumPy is as fast as a call of a compiled loop."""


def encode(words: Array, compress: Callable[[Array], bytes]) -> bytes:
    """Return the payload of some words.

    Parameters
    ----------
    words : unsigned integer ndarray, not empty
        Any shape; C order counts.
    compress : callable
        Makes one Zstandard frame of bytes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> zstd = pa.Codec("zstd")
    >>> payload = encode(np.array([3, 1, 70_000], np.uint32), lambda a: zstd.compress(a, asbytes=True))
    >>> decode([payload], 3, np.dtype("<u4")).tolist()
    [[3, 1, 70000]]
    """
    numbers = words.reshape(-1).astype(np.uint64)
    top = max(int(numbers.max()).bit_length() - 1, 0)
    fine = next(m for m in range(_FINEST, -1, -1) if (max(top - m, 0) + 2) << m <= 256)
    # A power of two is read off the exponent of a float; above 2**53 a float may have been rounded up.
    powers = (numbers.astype(np.float64).view(np.int64) >> 52) - 1023
    np.clip(powers, 0, 63, out=powers)
    powers -= (numbers >> powers.view(np.uint64)) == 0
    widths = np.maximum(powers - fine, 0).view(np.uint64)
    bins = ((widths << np.uint64(fine)) + (numbers >> widths)).astype(np.uint8)
    frame = compress(bins)
    bits = joined_bits(numbers & ((_ONE << widths) - _ONE), widths)
    return _HEAD.pack(fine, len(frame)) + frame + bits


def joined_bits(numbers: Array, widths: Array) -> bytes:
    """Return the bits of numbers, so many of each, lowest first, one number after the other."""
    if numbers.nbytes > SHORT:
        loops = compiled(BITS, "pack", 8, nbytes=numbers.nbytes)
        if loops is not None:
            total = int(widths.sum())
            out = np.zeros((total >> 6) + 2, np.uint64)
            loops.pack(numbers, widths, out)
            return out.astype("<u8", copy=False).tobytes()[: (total + 7) >> 3]
    some = np.flatnonzero(widths)
    numbers, widths = numbers[some], widths[some]
    if not len(some):
        return b""
    ends = np.cumsum(widths)
    starts = ends - widths
    total = int(ends[-1])
    places, offsets = starts >> _SIX, starts & _63
    out = np.zeros((total >> 6) + 2, np.uint64)
    firsts = np.flatnonzero(np.diff(places, prepend=np.uint64(1 << 63)))
    # Numbers share no bit, so that adding them joins them; the last of a word may reach into the next one.
    out[places[firsts].view(np.int64)] = np.add.reduceat(numbers << offsets, firsts)
    lasts = np.append(firsts[1:], len(some)) - 1
    beyond = (numbers[lasts] >> _ONE) >> (_63 - offsets[lasts])
    out[places[lasts].view(np.int64) + 1] += beyond
    return out.astype("<u8", copy=False).tobytes()[: (total + 7) >> 3]


@lru_cache(maxsize=64)
def _tables(fine: int, word: np.dtype[Any]) -> tuple[Array, Array, int]:
    """Return by bin how many bits follow and where it begins, and how many bins there are."""
    count = (max(8 * word.itemsize - 1 - fine, 0) + 2) << fine
    if fine > _FINEST or count < 1:
        raise CorruptDataError(f"a buffer of bins begins with {fine}")
    bins = np.arange(256, dtype=np.uint64)
    widths = np.maximum((bins >> np.uint64(fine)).view(np.int64) - 1, 0).view(np.uint64)
    widths[bins >= count] = 0
    begins = (bins - (widths << np.uint64(fine))) << widths
    return widths.astype(np.uint8), begins.astype(word), min(count, 256)


def decode(payloads: Sequence[Any], count: int, word: np.dtype[Any]) -> Array:
    """Return the words of many payloads at once.

    Parameters
    ----------
    payloads : sequence of bytes-like
        What `encode` returned for each.
    count : int
        How many words each holds, at least 1.
    word : numpy.dtype
        Their unsigned dtype.

    Returns
    -------
    ndarray, shape (len(payloads), count)

    Raises
    ------
    CorruptDataError
        If a payload does not hold just so many words.
    """
    heads = [_parts(payload) for payload in payloads]
    bins = [inflate(frame, True, count) for _, frame, _ in heads]
    out = np.empty((len(heads), count), word)
    for row, (fine, _, bits), row_bins in zip(out, heads, bins, strict=True):
        _unpack(row_bins, bits, fine, row)
    return out


def _parts(payload: Any) -> tuple[int, memoryview, memoryview]:
    view = memoryview(payload).cast("B")
    if len(view) < _HEAD.size:
        raise CorruptDataError(f"a buffer of bins has {len(view)} bytes")
    fine, length = _HEAD.unpack_from(view)
    if _HEAD.size + length > len(view):
        raise CorruptDataError("a buffer of bins ends too early")
    return fine, view[_HEAD.size : _HEAD.size + length], view[_HEAD.size + length :]


def _unpack(bins: Array, bits: memoryview, fine: int, out: Array) -> None:
    """Write the words of some bins into `out`."""
    width_of, begin_of, known = _tables(fine, out.dtype)
    if known < 256 and int(bins.max()) >= known:
        raise CorruptDataError(f"a word lies in bin {int(bins.max())} of {known}")
    loops = None
    if out.nbytes > SHORT:
        loops = compiled(BITS, "put_bins", out.itemsize, nbytes=out.nbytes)
    widths = width_of[bins] if loops is None else np.zeros(0, np.uint8)
    total = int(widths.sum(dtype=np.int64) if loops is None else loops.count_bits(bins, width_of))
    if (total + 7) >> 3 != len(bits):
        raise CorruptDataError(
            f"{len(bits)} bytes of bits follow where {(total + 7) >> 3} are needed"
        )
    held = np.zeros((len(bits) >> 3) + 2, "<u8")
    held.view(np.uint8)[: len(bits)] = np.frombuffer(bits, np.uint8)
    if loops is not None:
        loops.put_bins(bins, width_of, begin_of, held, out)
        return
    np.take(begin_of, bins, out=out, mode="clip")
    if not total:
        return
    begin = 0
    for start in range(0, len(out), _PIECE):
        piece = slice(start, start + _PIECE)
        begin = add_bits(held, begin, widths[piece], out[piece])


def add_bits(held: Array, begin: int, widths: Array, out: Array) -> int:
    """Add so many bits each, from bit `begin` of the words `held` on, to `out`; return where they end."""
    some = np.flatnonzero(widths) if np.count_nonzero(widths) < 0.7 * len(widths) else None
    if some is not None:
        widths = widths[some]
    places = np.cumsum(widths, dtype=np.int64)
    places += begin
    end = int(places[-1]) if len(places) else begin
    places -= widths
    offsets = (places & 63).view(np.uint64)
    places >>= 6
    found = held[places]
    found >>= offsets
    places += 1
    above = held[places]
    above <<= _ONE
    above <<= np.subtract(_63, offsets, out=offsets)
    found |= above
    found &= _MASKS[widths]
    if some is None:
        out += found.astype(out.dtype, copy=False)
    else:
        out[some] += found.astype(out.dtype, copy=False)
    return end
