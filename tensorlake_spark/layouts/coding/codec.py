"""How a dense block becomes bytes: reversible filters, then one compressor.

A codec has a name such as ``delta(-2)+shuffle+zstd``, read from left to right when writing. The name
is stored in every row, so a reader needs nothing else. The filters work on the bit patterns of the
elements (as unsigned integers), which is why NaN payloads and signed zeros survive:

``delta(-1)``
    Difference to the neighbour before on the last axis, modulo the word.
``delta(-2)``
    Difference to the row before. The rows (that axis first, then the others) are cut into bands of
    `BAND`; the first row of a band is coded by ``delta(-1)``. So a band can be decoded without those
    before it, and undoing the filter is `BAND` long vector additions, over all bands at once, instead
    of one short one for every row.
``shuffle``
    All first bytes of the words, then all second bytes, and so on.
``zstd``, ``raw``
    The compressor, or none.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.layouts.coding.decompression import inflate

Array = np.ndarray[Any, Any]

CODECS = (
    "raw",
    "zstd",
    "delta(-1)+zstd",
    "delta(-2)+zstd",
    "shuffle+zstd",
    "delta(-1)+shuffle+zstd",
    "delta(-2)+shuffle+zstd",
)
"""Every codec that version 1 of the format knows."""

ZSTD_LEVEL = 1
"""Above level 1 zstd makes delta-coded photographs larger and slower (docs/benchmarks.md)."""

BAND = 32
"""Rows of a band of ``delta(-2)``; part of the format."""


@dataclass(frozen=True, slots=True)
class Codec:
    """One way to write the elements of a block.

    Attributes
    ----------
    name : str
        One of `CODECS`.
    delta : int
        0, -1 or -2: the axis along which differences are stored.
    shuffle : bool
        Whether the bytes of the words are regrouped.
    compress : bool
        Whether zstd follows.
    """

    name: str
    delta: int
    shuffle: bool
    compress: bool


@lru_cache(maxsize=64)
def codec_of(name: str) -> Codec:
    """Return the codec of that name.

    Raises
    ------
    InvalidOptionError
        If the name is not one of `CODECS`.

    Examples
    --------
    >>> codec_of("delta(-2)+zstd").delta
    -2
    """
    if name not in CODECS:
        raise InvalidOptionError(
            f"unknown codec {name!r}{did_you_mean(name, CODECS)}; known are {', '.join(CODECS)}"
        )
    delta = -1 if "delta(-1)" in name else -2 if "delta(-2)" in name else 0
    return Codec(name, delta, "shuffle" in name, name.endswith("zstd"))


_zstd = pa.Codec("zstd", ZSTD_LEVEL)

# Undoing a delta is many additions of microseconds, and NumPy lets go of the interpreter lock in each:
# two threads that do so at once spend their time handing the lock over (measured: 13.7 ms instead of
# 7.9 ms for forty chunks). One at a time is enough, because the other thread decompresses meanwhile.
_one_at_a_time = threading.Lock()


def words(array: Array) -> Array:
    """Return a C-contiguous array as its unsigned words: shape kept, complex parts side by side.

    Examples
    --------
    >>> words(np.zeros((2, 3), np.complex64)).shape, words(np.zeros(3, bool)).dtype
    ((2, 6), dtype('uint8'))
    """
    size = array.dtype.itemsize
    if array.dtype.kind == "c":
        size //= 2
    if array.ndim == 0:
        array = array.reshape(1)
    return array.view(np.dtype(f"<u{size}"))


def _word_shape(
    shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of `words` of an array of `shape` and `dtype`."""
    out = tuple(shape) or (1,)
    if dtype.kind == "c":
        return (*out[:-1], out[-1] * 2), np.dtype(f"<u{dtype.itemsize // 2}")
    return out, np.dtype(f"<u{dtype.itemsize}")


def _delta_axis(codec: Codec, ndim: int) -> int:
    """0 where the block has no such axis: the filter then does nothing."""
    return codec.delta if -codec.delta <= ndim else 0


def encode(array: Array, codec: Codec) -> bytes:
    """Return the bytes of one block.

    Parameters
    ----------
    array : ndarray
        C-contiguous, native byte order, not empty.
    codec : Codec
        How to write it.
    """
    block = words(array)
    axis = _delta_axis(codec, array.ndim)
    if axis == -2:
        block = np.moveaxis(block, -2, 0)
        coded = np.empty(block.shape, block.dtype)
        np.subtract(block[1:], block[:-1], out=coded[1:])
        starts = block[::BAND]
        coded[::BAND, ..., 0] = starts[..., 0]
        np.subtract(starts[..., 1:], starts[..., :-1], out=coded[::BAND, ..., 1:])
        block = coded
    elif axis == -1:
        coded = np.empty_like(block)
        coded[..., 0] = block[..., 0]
        np.subtract(block[..., 1:], block[..., :-1], out=coded[..., 1:])
        block = coded
    if codec.shuffle and block.itemsize > 1:
        block = np.ascontiguousarray(block.reshape(-1).view(np.uint8).reshape(-1, block.itemsize).T)
    if codec.compress:
        return bytes(_zstd.compress(block, asbytes=True))
    return block.tobytes()


def _coded(payload: Any, codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return the words of a block with only its delta still to undo (delta(-2): that axis first)."""
    word_shape, word = _word_shape(shape, dtype)
    flat = inflate(payload, codec.compress, math.prod(word_shape) * word.itemsize)
    if codec.shuffle and word.itemsize > 1:
        flat = np.ascontiguousarray(flat.reshape(word.itemsize, -1).T).reshape(-1)
    if _delta_axis(codec, len(shape)) == -2:
        word_shape = (word_shape[-2], *word_shape[:-2], word_shape[-1])
    return flat.view(word).reshape(word_shape)


def decode(payload: Any, codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return a whole block: the inverse of `encode`.

    Parameters
    ----------
    payload : bytes-like
        What `encode` returned.
    codec : Codec
        The codec it was written with.
    shape : sequence of int
        Shape of the block.
    dtype : numpy.dtype
        Native byte order.

    Raises
    ------
    CorruptDataError
        If the payload does not hold just this block.

    Examples
    --------
    >>> x = np.arange(6, dtype=np.int16).reshape(2, 3)
    >>> codec = codec_of("delta(-2)+shuffle+zstd")
    >>> decode(encode(x, codec), codec, x.shape, x.dtype).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    coded = _coded(payload, codec, shape, dtype)  # first, for a damaged row may ask for any shape
    out = np.empty(tuple(shape), dtype)
    _put(coded, codec, shape, dtype, tuple(slice(0, n) for n in shape), out)
    return out


def decode_stack(
    payloads: Sequence[Any], codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]
) -> Array:
    """Decode many blocks of one shape at once: small ones cost Python a step each otherwise.

    Parameters
    ----------
    payloads : sequence of bytes-like
        What `encode` returned for each block.
    codec, shape, dtype
        As for `decode`.

    Returns
    -------
    ndarray
        Shape ``(len(payloads), *shape)``.
    """
    word_shape, word = _word_shape(shape, dtype)
    nbytes = math.prod(word_shape) * word.itemsize
    count = len(payloads)
    flat: Array = np.empty((count, nbytes), np.uint8)
    for row, payload in zip(flat, payloads, strict=True):
        row[...] = inflate(payload, codec.compress, nbytes)
    if codec.shuffle and word.itemsize > 1:
        flat = np.ascontiguousarray(flat.reshape(count, word.itemsize, -1).swapaxes(1, 2))
    stack = flat.reshape(-1).view(word)
    axis = _delta_axis(codec, len(shape))
    if axis == -2:
        coded = stack.reshape(count, word_shape[-2], *word_shape[:-2], word_shape[-1])
        whole = slice(0, word_shape[-1])
        rows = _integrate_rows(np.moveaxis(coded, 1, 0), 0, word_shape[-2], whole)
        stack = np.ascontiguousarray(np.moveaxis(rows, 0, -2))
    elif axis == -1:
        rows = np.moveaxis(stack.reshape(count, *word_shape), -1, 0)
        for before, row in pairwise(rows):
            np.add(row, before, out=row)
    return stack.reshape(-1).view(dtype).reshape(count, *shape)


def decode_into(
    payload: Any,
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> None:
    """Decode a part of one block straight into `out`.

    Undoing the delta is the copy into the result: each step adds the coded row to the row that was
    just written. Rows and columns that the part does not need are never added.

    Parameters
    ----------
    payload, codec, shape, dtype
        As for `decode`.
    src : tuple of slice
        The part of the block, with positive steps, one slice for every axis.
    out : ndarray
        Where it goes: shape of the part, any strides whose last axis is contiguous.
    """
    _put(_coded(payload, codec, shape, dtype), codec, shape, dtype, src, out)


def _put(
    coded: Array,
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> None:
    axis = _delta_axis(codec, len(shape))
    if not shape:
        words(out)[...] = coded.reshape(-1)
        return
    direct = all(s.step in (None, 1) for s in src) and out.strides[-1] == out.itemsize
    if axis and not direct:
        whole = np.empty(tuple(shape), dtype)
        _integrate(coded, axis, tuple(slice(0, n) for n in shape), words(whole), dtype)
        out[...] = whole[src]
    elif axis:
        _integrate(coded, axis, src, words(out), dtype)
    else:
        out[...] = coded.view(dtype).reshape(tuple(shape))[src]


def _integrate(
    coded: Array, axis: int, src: tuple[slice, ...], out: Array, dtype: np.dtype[Any]
) -> None:
    """Undo a delta along `axis` for the part `src` (steps of one), writing words into `out`."""
    if dtype.kind == "c":
        last = src[-1]
        src = (*src[:-1], slice(last.start * 2, last.stop * 2))
    if axis == -1:
        until = (*src[:-1], slice(0, src[-1].stop))
        part = coded[until]
        if src[-1].start == 0:
            np.add.accumulate(part, axis=-1, dtype=coded.dtype, out=out)
        else:
            out[...] = np.add.accumulate(part, axis=-1, dtype=coded.dtype)[..., src[-1].start :]
        return
    keep = (slice(None), *src[:-2])
    part = coded[keep]
    with _one_at_a_time:
        rows = _integrate_rows(part, src[-2].start, src[-2].stop, src[-1])
    out[...] = np.moveaxis(rows, 0, -2)


def _integrate_rows(coded: Array, first: int, stop: int, columns: slice) -> Array:
    """Undo ``delta(-2)`` in place for the rows ``first:stop`` and some columns, and return them.

    In place, because the buffer is contiguous and still in the cache: rows of the result may lie apart.
    """
    inside = coded[..., columns]
    rows = inside[first:stop]
    band = first - first % BAND
    inside[band:stop:BAND] = _band_starts(coded[band:stop:BAND], columns)
    if first > band:  # begins inside of a band: go through that one row by row
        end = min(stop, band + BAND)
        np.add.reduce(inside[band : first + 1], axis=0, dtype=coded.dtype, out=inside[first])
        for before, row in pairwise(inside[first:end]):
            np.add(row, before, out=row)
        first = end
    for j in range(1, min(BAND, stop - first)):
        here = inside[first + j : stop : BAND]
        np.add(here, inside[first + j - 1 : stop : BAND][: len(here)], out=here)
    return rows


def _band_starts(coded: Array, columns: slice) -> Array:
    """Return the first rows of bands, for some columns: a running sum along the last axis.

    In doubling steps (Hillis and Steele): a dozen vector additions take half the time of adding bytes
    one by one.
    """
    sums: Array = coded[..., : columns.stop].copy()
    if sums.itemsize > 1:
        np.add.accumulate(sums, axis=-1, dtype=sums.dtype, out=sums)
        return np.asarray(sums[..., columns.start :])
    step = 1
    while step < sums.shape[-1]:
        sums[..., step:] += sums[..., :-step]  # NumPy copies where operands overlap
        step *= 2
    return np.asarray(sums[..., columns.start :])
