"""A dense block as bytes: the steps of a codec one after the other, and back, whole or in part.

`chain` says what the steps are. Each has a module of its own, but for the two that are one line here:
``shuffle`` and the compressor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding import pco
from tensorlake_spark.layouts.coding.block_words import (
    delta_axis,
    rows_first,
    shape_of_words,
    steps_of,
    stored_dtype,
    words,
)
from tensorlake_spark.layouts.coding.chain import CODECS, TRANSPOSE, UNFIT, Codec, codec_of
from tensorlake_spark.layouts.coding.decompression import inflate, inflate_beginning
from tensorlake_spark.layouts.coding.filters import (
    bin_coding,
    bit_packing,
    byte_planes,
    decimals,
    deltas,
    float_lorenzo,
    lorenzo,
    nibbles,
    zigzag,
)
from tensorlake_spark.layouts.coding.packed_parts import put_part
from tensorlake_spark.layouts.kernels.steps import Steps, has_planes

__all__ = [
    "CODECS",
    "Codec",
    "codec_of",
    "decode",
    "decode_into",
    "encode",
    "words",
]

Array = np.ndarray[Any, Any]

ZSTD_LEVEL = 1
"""Above level 1 zstd makes delta-coded photographs larger and slower (docs/benchmarks.md)."""

_DENSE = "tensorlake_spark.layouts.kernels.dense"
_SHORT_BLOCK = 16 << 10  # bytes below which NumPy is as fast as a call of a compiled loop
_SHORT_FRAME = 128 << 10  # bytes of a block below which all of it is decompressed
_BEGINNING = 0.75  # of a block: to decompress more in pieces takes as long as the whole at once

_zstd = pa.Codec("zstd", ZSTD_LEVEL)


def encode(array: Array, codec: Codec) -> tuple[str, bytes]:
    """Return the name of the codec that a block has then, and its bytes.

    Parameters
    ----------
    array : ndarray
        Native byte order, not empty; C-contiguous, or of any order for a codec that transposes.
    codec : Codec
        How to write it. A block that does not fit its step ``decimal`` takes `UNFIT` instead, and one that does not fit
        ``lorenzo(float)`` takes ``lorenzo``.

    Raises
    ------
    InvalidOptionError
        If the codec is ``pco``, which has no form for the dtype.
    MissingDependencyError
        If the codec needs a package that is not installed.
    """
    if codec.turned is not None:
        # np.ascontiguousarray would give a scalar an axis, on which steps do something.
        name, payload = encode(np.asarray(array.T, order="C"), codec.turned)
        return TRANSPOSE + name, payload
    if codec.pco:
        return codec.name, pco.encode(array)
    if codec.places is not None:
        integers = decimals.integers_of(array, codec.places)
        if integers is None:
            codec = CODECS[UNFIT]
        else:
            array = integers
    block = words(array)
    if codec.floats and not _adds_floats(block, array.dtype):
        codec = CODECS[codec.name.replace("lorenzo(float)", "lorenzo")]
    steps = steps_of(codec, array.shape, array.dtype)
    dense = _compiled(steps, block.shape, block.dtype, True)
    stepped = _stepped(block, steps) if dense is None else dense.encode(block, steps)
    if codec.bins:
        return codec.name, bin_coding.encode(stepped.view(block.dtype), _compressed)
    if codec.nibbles:
        return codec.name, _compressed(nibbles.part(stepped.view(block.dtype)))
    if codec.packed:
        return codec.name, bit_packing.encode(stepped.view(block.dtype))
    return codec.name, _compressed(stepped) if codec.compress else stepped.tobytes()


def _adds_floats(block: Array, dtype: np.dtype[Any]) -> bool:
    """Whether ``lorenzo(float)`` gives a block back, whichever machine reads it."""
    if not float_lorenzo.takes(dtype):
        return False
    dense = _loaded("fits", block.itemsize, True, block.nbytes)
    return float_lorenzo.fits(block) if dense is None else bool(dense.fits(block))


def _stepped(block: Array, steps: Steps) -> Array:
    """Return the words of a block after the steps, or their byte planes."""
    if steps.axis:
        block = deltas.subtract(block, steps.axis)
    elif steps.floats:
        block = float_lorenzo.subtract(block)
    elif steps.lorenzo:
        if steps.ordered:
            block = block.copy()
            lorenzo.turn(block)
        block = lorenzo.subtract(block)
    if steps.zigzag:
        block = zigzag.fold(block)
    return byte_planes.part(block) if steps.shuffled and block.itemsize > 1 else block


def _compiled(steps: Steps, shape: Sequence[int], word: np.dtype[Any], encodes: bool) -> Any:
    """Return the module of compiled loops if the words of a block go through them, else None."""
    if not steps.takes(shape, word.itemsize):
        return None
    return _loaded(steps.loop, word.itemsize, encodes, math.prod(shape) * word.itemsize)


def _loaded(loop: str, itemsize: int, encodes: bool, nbytes: int) -> Any:
    """Return the module of compiled loops if one of them is to go through so many bytes, else None."""
    return (
        compiled(_DENSE, loop, itemsize, encodes, nbytes=nbytes) if nbytes >= _SHORT_BLOCK else None
    )


def _compressed(block: Array) -> bytes:
    return bytes(_zstd.compress(np.ascontiguousarray(block), asbytes=True))


def _flat(payload: Any, codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return the words of a block, decompressed, with all other steps still to undo."""
    word_shape, word = shape_of_words(shape, dtype)
    count = math.prod(word_shape)
    if codec.packed:
        return bit_packing.decode(payload, word_shape, word_shape, word)
    if codec.bins:
        return bin_coding.decode([payload], count, word).reshape(-1)
    if codec.nibbles:
        parts = inflate(payload, codec.compress, nibbles.size_of(count, word))
        return nibbles.join(parts, count, word)
    return inflate(payload, codec.compress, count * word.itemsize).view(word)


def _unpacked(
    payload: Any, codec: Codec, shape: Sequence[int], near: Sequence[int], dtype: np.dtype[Any]
) -> Array:
    """Return the words of the beginning of a block, with all other steps still to undo."""
    stored, word = shape_of_words(shape, dtype)
    wanted, _ = shape_of_words(near, dtype)
    if delta_axis(codec, len(shape)) == -2:
        stored, wanted = rows_first(stored), rows_first(wanted)
    return bit_packing.decode(payload, stored, wanted, word)


def _coded(flat: Array, codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return the words of a block with only its differences still to undo (delta(-2): that axis first)."""
    word_shape, word = shape_of_words(shape, dtype)
    if codec.shuffle and word.itemsize > 1:
        flat = byte_planes.join(flat.view(np.uint8).reshape(word.itemsize, -1)).view(word)
    if codec.zigzag:
        flat = _own(flat)
        zigzag.unfold(flat)
    if delta_axis(codec, len(shape)) == -2:
        word_shape = rows_first(word_shape)
    return flat.reshape(word_shape)


def _own(block: Array) -> Array:
    """Return an array that may be written to: a payload without compression may not."""
    return block if block.flags.writeable else block.copy()


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
    MissingDependencyError
        If the codec needs a package that is not installed.

    Examples
    --------
    >>> x = np.arange(6, dtype=np.int16).reshape(2, 3)
    >>> name, payload = encode(x, codec_of("delta(-2)+shuffle+zstd"))
    >>> decode(payload, codec_of(name), x.shape, x.dtype).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if codec.turned is not None:
        return np.ascontiguousarray(decode(payload, codec.turned, shape[::-1], dtype).T)
    if codec.pco:
        pco.check(payload, math.prod(shape))
        whole = np.empty(tuple(shape), dtype)
        pco.decode_to(payload, whole)
        return whole
    kind = stored_dtype(codec, dtype)
    flat = _flat(payload, codec, shape, kind)  # first, for a damaged row may ask for any shape
    out = np.empty(tuple(shape), dtype)
    _put(flat, codec, shape, kind, tuple(slice(0, n) for n in shape), out)
    return out


def decode_part(
    payload: Any, codec: Codec, shape: Sequence[int], dtype: np.dtype[Any], src: tuple[Any, ...]
) -> Array:
    """Return a part of one block that index arrays choose, one index for every axis.

    Of a block that is only compressed, or shuffled as well, no more than the part is touched after decompression.
    """
    inner, stored = codec, tuple(shape)
    if codec.turned is not None:
        inner, stored = codec.turned, stored[::-1]
    if not shape or inner.pco or inner.places is not None or not _is_at_most_shuffled(inner, dtype):
        return np.asarray(decode(payload, codec, shape, dtype)[src])
    flat = _flat(payload, inner, stored, dtype)
    if not inner.shuffle:
        block = flat.view(dtype).reshape(stored)
        return np.asarray((block if codec.turned is None else block.T)[src])
    planes = flat.view(np.uint8).reshape(dtype.itemsize, *stored)
    if codec.turned is not None:
        planes = planes.transpose(0, *range(len(shape), 0, -1))
    return byte_planes.pick(planes, dtype, src)


def _is_at_most_shuffled(codec: Codec, dtype: np.dtype[Any]) -> bool:
    """Whether byte k of every element lies in byte plane k, or in the element's place, and nothing is to be undone."""
    undone = codec.delta or codec.lorenzo or codec.zigzag or codec.bins or codec.nibbles
    return not (undone or codec.packed) and dtype.kind != "c"


def decode_into(
    payload: Any,
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> None:
    """Decode a part of one block straight into `out`.

    Undoing the differences is the copy into the result: each step adds the coded row to the row that was
    just written. Rows and columns that the part does not need are never added.

    Parameters
    ----------
    payload, codec, shape, dtype
        As for `decode`.
    src : tuple of slice
        The part of the block, with positive steps, one slice for every axis.
    out : ndarray
        Where it goes: shape of the part, any strides; soonest where the last axis is contiguous, or of a codec that
        transposes the first one.
    """
    if codec.turned is not None:
        decode_into(payload, codec.turned, shape[::-1], dtype, src[::-1], out.T)
        return
    if codec.pco and out.shape == tuple(shape) and out.flags.c_contiguous:
        pco.decode_to(payload, out)
        return
    if codec.pco:
        out[...] = decode(payload, codec, shape, dtype)[src]
        return
    if shape and not codec.compress and not codec.packed:  # raw
        out[...] = _flat(payload, codec, shape, dtype).view(dtype).reshape(shape)[src]
        return
    kind = stored_dtype(codec, dtype)
    nbytes, word = math.prod(shape) * kind.itemsize, shape_of_words(shape, kind)[1]
    near = codec.beginning(shape, src, word.itemsize) if nbytes >= _SHORT_FRAME else None
    wanted = math.prod(near or ()) * kind.itemsize
    if near is not None and codec.packed:
        if put_part(payload, codec, shape, kind, src, out):
            return
        flat, shape = _unpacked(payload, codec, shape, near, kind), near
    elif near is None or wanted > _BEGINNING * nbytes:
        flat = _flat(payload, codec, shape, kind)
    else:
        flat, shape = inflate_beginning(payload, nbytes, wanted).view(word), near
    _put(flat, codec, shape, kind, src, out)


def _put(
    flat: Array,
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> None:
    """Write a part of a block of `dtype`, decompressed, into `out`."""
    if codec.places is not None:
        part = np.empty(out.shape, dtype)
        _put_part(flat, codec, shape, dtype, src, part)
        decimals.put_floats(part, codec.places, out)
    else:
        _put_part(flat, codec, shape, dtype, src, out)


def _put_part(
    flat: Array,
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> None:
    word_shape, word = shape_of_words(shape, dtype)
    steps = steps_of(codec, shape, dtype)
    dense = _compiled(steps, word_shape, word, False)
    if dense is None and not steps.axis and not steps.lorenzo:
        if codec.shuffle and shape and _is_at_most_shuffled(codec, dtype):
            planes = flat.view(np.uint8).reshape(dtype.itemsize, *shape)
            byte_planes.put(planes, src, out)
            return
        coded = _coded(flat, codec, shape, dtype)
        if shape:
            out[...] = coded.view(dtype).reshape(tuple(shape))[src]
        else:
            words(out)[...] = coded.reshape(-1)
        return
    if any(s.step not in (None, 1) for s in src) or out.strides[-1] != out.itemsize:
        whole = np.empty(tuple(shape), dtype)
        _put_part(flat, codec, shape, dtype, tuple(slice(0, n) for n in shape), whole)
        out[...] = whole[src]
        return
    if dtype.kind == "c":
        last = src[-1]
        src = (*src[:-1], slice(last.start * 2, last.stop * 2))
    if dense is not None:
        dense.decode_into(flat.view(np.uint8), steps, word_shape, src, words(out))
    else:
        _undo(_coded(flat, codec, shape, dtype), steps, dtype, src, words(out))


def _undo(
    coded: Array,
    steps: Steps,
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> None:
    """Undo the differences of a block for the part `src` of its words, writing words into `out`."""
    if steps.axis:
        deltas.add(coded, steps.axis, src, out)
        return
    if steps.floats:
        stops = tuple(slice(0, s.stop) for s in src) if has_planes(coded.shape) else ()
        beginning = _own(np.ascontiguousarray(coded[stops]))
        float_lorenzo.add(beginning)
        out[...] = beginning[src]
        return
    part = _own(coded[tuple(slice(0, s.stop) for s in src)])
    with deltas.ONE_AT_A_TIME:
        lorenzo.add(part)
    part = part[src[:-1]]
    if src[-1].start == 0:
        lorenzo.add_last(part, out)
    else:
        lorenzo.add_last(part, part)
        out[...] = part[..., src[-1].start :]
    if steps.ordered:
        lorenzo.turn(out)
