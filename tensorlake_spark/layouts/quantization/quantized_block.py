"""A dense block by a codec whose first step quantises: the step here, the rest of the chain as for other blocks.

What the inner codec codes is the cast floats, the codes, the integers or the upper halves. What else a step needs
stands beside them in the payload; FORMAT.md says where.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidTensorError
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.buffers import pack_values, unpack_values
from tensorlake_spark.layouts.coding.chain import CODECS, UNFIT, argument_of, parted
from tensorlake_spark.layouts.coding.integer_sequences import join, split
from tensorlake_spark.layouts.quantization import (
    bit_rounding,
    casts,
    error_bound,
    halves,
    kept_elements,
    row_scales,
)
from tensorlake_spark.layouts.quantization.kept_elements import Kept
from tensorlake_spark.layouts.quantization.kinds import Quantization
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]
Source = tuple[slice, ...]

CRC_BYTES = 4
"""Bytes of the checksum before the upper halves of ``split``, which the layout makes and compares."""

_INTEGERS = struct.Struct("<BI")
_CODES = struct.Struct("<I")
_HALF = np.dtype(np.uint16)
_LOWER = CODECS["shuffle+zstd"]


def encode(
    values: Array, name: str, tensor_id: str, lo: Sequence[int]
) -> tuple[str, bytes, bytes | None]:
    """Return the codec that a block has then, its column ``values``, and its column ``index`` or None.

    Parameters
    ----------
    values : float ndarray
        C-contiguous, native byte order, not empty.
    name : str
        A codec whose first step quantises. A block that the step does not fit loses the step: it is stored
        without loss.
    tensor_id, lo : str, sequence of int
        The tensor and the lower corner of the block in it, for the message.

    Raises
    ------
    InvalidTensorError
        If the step cannot hold an element; names it.
    """
    step, inner = parted(name)
    if step.startswith("cast"):
        stored = casts.rounded(values, dtype_of(argument_of(step)))
        lost = casts.lost(values, stored)
        if lost.any():
            raise _too_large(values, lost, stored.dtype, tensor_id, lo)
        inner, payload = codecs.encode(stored, codecs.codec_of(inner))
        return f"{step}+{inner}", payload, None
    if step == "int8":
        return _encode_codes(values, step, inner, tensor_id, lo)
    if step == "split":
        parts = halves.part(values)
        if parts is None:
            return _unfit(values)
        upper, lower = parts
        inner, payload = codecs.encode(upper, codecs.codec_of(inner))
        return f"{step}+{inner}", payload, codecs.encode(lower, _LOWER)[1]
    found = error_bound.integers_of(values, float(argument_of(step)))
    if found is None:
        return _unfit(values)
    integers, kept = found
    count, places, bits = kept_elements.pack(values, kept)
    inner, payload = codecs.encode(integers, codecs.codec_of(inner))
    head = _INTEGERS.pack(integers.itemsize, count)
    return f"{step}+{inner}", head + join([payload, places, bits]), None


def _unfit(values: Array) -> tuple[str, bytes, None]:
    return (*codecs.encode(values, CODECS[UNFIT]), None)


def _encode_codes(
    values: Array, step: str, inner: str, tensor_id: str, lo: Sequence[int]
) -> tuple[str, bytes, None]:
    codes, scales, kept = row_scales.codes_of(values)
    endless = np.isinf(scales)
    if endless.any():
        rows = np.broadcast_to(endless[..., None] if values.ndim else endless, values.shape)
        size = np.where(rows & np.isfinite(values), np.abs(values.astype(np.float64)), 0)
        place = np.unravel_index(int(np.argmax(size)), values.shape)
        raise InvalidTensorError(
            f"tensor {tensor_id!r}: element {_index(place, lo)} is {values[place]!s}, too large for the scale of "
            f"quantize='int8', a float32 of at most {row_scales.MOST} times "
            f"{float(np.finfo(np.float32).max):.8g}; scale the values, or take quantize={{'relative': 0.01}}"
        )
    count, places, bits = kept_elements.pack(values, kept)
    inner, payload = codecs.encode(codes, codecs.codec_of(inner))
    parts = [payload, pack_values(scales.reshape(-1)), places, bits]
    return f"{step}+{inner}", _CODES.pack(count) + join(parts), None


def _too_large(
    values: Array, lost: Array, target: np.dtype[Any], tensor_id: str, lo: Sequence[int]
) -> InvalidTensorError:
    place = np.unravel_index(int(np.argmax(lost)), values.shape)
    value = values[place]
    why = (
        f"beyond the greatest value of {target.name}, {casts.greatest(target):g}"
        if np.isfinite(value)
        else f"which {target.name} does not have"
    )
    return InvalidTensorError(
        f"tensor {tensor_id!r}: element {_index(place, lo)} is {value!s}, {why}; scale or clip the values, or take "
        f"another quantisation, such as {casts.wider(target)}"
    )


def _index(place: Sequence[Any], lo: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(a) + int(b) for a, b in zip(place, lo, strict=True))


def sample_of(values: Array, step: str) -> Array:
    """Return what the inner codec of a step would code of a sample.

    Examples
    --------
    >>> sample_of(np.array([0.1, 0.5]), "error(0.05)").tolist()
    [1, 5]
    """
    if not values.size:
        return values
    if step.startswith("cast"):
        return casts.rounded(values, dtype_of(argument_of(step)))
    if step == "int8":
        return row_scales.codes_of(values)[0]
    if step == "split":
        return halves.nearest(values)
    found = error_bound.integers_of(values, float(argument_of(step)))
    return values if found is None else found[0]


def keeps_fill(fill: Array, quantization: Quantization) -> bool:
    """Return whether a fill value, wherever it is stored, is read with the same bits.

    A purge writes it in place of what it takes away, and holds what is there afterwards against it.

    Parameters
    ----------
    fill : ndarray
        One element, of rank 0.
    quantization : Quantization
        Of the tensor.
    """
    step = quantization.codec_step
    if step == "split" or not any(fill.tobytes()):
        return True
    if step == "int8":  # finite ones are rounded as the greatest one of their row has it
        return not bool(np.isfinite(fill.astype(np.float64)))
    one = fill.reshape(1)
    if not step:
        return bit_rounding.within(one, quantization.bound or 0.5).tobytes() == one.tobytes()
    try:
        codec, values, index = encode(one, f"{step}+raw", "", (0,))
    except InvalidTensorError:
        return False
    if not parted(codec)[0]:  # what no integer comes near enough to keeps its bits
        return True
    return decode(values, index, codec, (1,), one.dtype).tobytes() == one.tobytes()


def decode(values: Any, index: Any, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return a whole block in the tensor's dtype.

    Parameters
    ----------
    values, index : bytes-like
        The columns; `index` is None but for ``split``.
    name : str
        The codec, whose first step quantises.
    shape, dtype
        Of the block.

    Raises
    ------
    CorruptDataError
        If the payload does not hold just this block.
    """
    step, inner = parted(name)
    if step.startswith("cast"):
        stored = codecs.decode(values, codecs.codec_of(inner), shape, dtype_of(argument_of(step)))
        return _cast(stored, np.empty(stored.shape, dtype))
    if step == "int8":
        codes, scales, kept = codes_in(values, inner, shape, dtype)
        out = np.empty(codes.shape, dtype)
        row_scales.put_floats(codes, scales, out)
        return _restored(out, kept)
    if step == "split":
        _check_float32(step, dtype)
        upper = upper_in(values, inner, shape)
        if index is None:
            raise CorruptDataError(f"a row of codec {name!r} has no index")
        return halves.join(upper, codecs.decode(index, _LOWER, shape, _HALF))
    bound = float(argument_of(step))
    integers, kept = integers_in(values, inner, shape, dtype)
    return _restored(error_bound.floats_of(integers, bound, dtype), kept)


def decode_into(
    values: Any,
    index: Any,
    name: str,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: Source,
    out: Array,
) -> None:
    """Decode a part of one block into `out`; the parameters are those of `decode` and `codec.decode_into`."""
    step, inner = parted(name)
    if step.startswith("cast"):
        part = np.empty(out.shape, dtype_of(argument_of(step)))
        codecs.decode_into(values, codecs.codec_of(inner), shape, part.dtype, src, part)
        _cast(part, out)
        return
    if step.startswith("error") and _floats(dtype):
        kind, payload, _, _, count = _integer_parts(values)
        if not count:
            part = np.empty(out.shape, kind)
            codecs.decode_into(payload, codecs.codec_of(inner), shape, kind, src, part)
            error_bound.put_floats(part, float(argument_of(step)), out)
            return
    out[...] = decode(values, index, name, shape, dtype)[src]


def _cast(stored: Array, out: Array) -> Array:
    with np.errstate(all="ignore"):
        out[...] = stored.astype(out.dtype, copy=False)
    return out


def _floats(dtype: np.dtype[Any]) -> bool:
    if dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        raise CorruptDataError(f"a row of dtype {dtype} is quantised, which only floats are")
    return True


def _check_float32(step: str, dtype: np.dtype[Any]) -> None:
    if dtype != np.float32:
        raise CorruptDataError(f"a row of dtype {dtype} has the step {step}, which is for float32")


def _restored(values: Array, kept: Kept | None) -> Array:
    if kept is not None:
        values.reshape(-1)[kept.places] = kept.values
    return values


def upper_in(values: Any, inner: str, shape: Sequence[int]) -> Array:
    """Return the upper halves of a block, uint16, of the column ``values`` alone."""
    view = memoryview(values).cast("B")
    if len(view) < CRC_BYTES:
        raise CorruptDataError(f"the upper halves of a row have {len(view)} bytes")
    return codecs.decode(view[CRC_BYTES:], codecs.codec_of(inner), shape, _HALF)


def _integer_parts(values: Any) -> tuple[np.dtype[Any], memoryview, memoryview, memoryview, int]:
    view = memoryview(values).cast("B")
    if len(view) < _INTEGERS.size:
        raise CorruptDataError(f"the integers of a row have {len(view)} bytes")
    width, count = _INTEGERS.unpack_from(view)
    if width not in error_bound.WIDTHS:
        raise CorruptDataError(f"a row says that its integers have {width} bytes")
    payload, places, bits = split(view[_INTEGERS.size :], 3)
    return np.dtype(f"i{width}"), payload, places, bits, count


def integers_in(
    values: Any, inner: str, shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[Array, Kept | None]:
    """Return the integers of a block of ``error``, and the elements that are kept apart."""
    _floats(dtype)
    kind, payload, places, bits, count = _integer_parts(values)
    integers = codecs.decode(payload, codecs.codec_of(inner), shape, kind)
    return integers, kept_elements.unpack(count, places, bits, math.prod(shape), dtype)


def codes_in(
    values: Any, inner: str, shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[Array, Array, Kept | None]:
    """Return the codes of a block of ``int8``, their scales stretched to one shape, and the elements kept apart."""
    _floats(dtype)
    view = memoryview(values).cast("B")
    if len(view) < _CODES.size:
        raise CorruptDataError(f"the codes of a row have {len(view)} bytes")
    (count,) = _CODES.unpack_from(view)
    payload, packed, places, bits = split(view[_CODES.size :], 4)
    codes = codecs.decode(payload, codecs.codec_of(inner), shape, np.dtype(np.int8))
    rows = math.prod(shape[:-1])
    scales = unpack_values([packed], [rows], np.dtype(np.float32)).reshape(shape[:-1])
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise CorruptDataError("a scale of a row is not a finite number of at least 0")
    kept = kept_elements.unpack(count, places, bits, math.prod(shape), dtype)
    stretched = scales[..., None] if len(shape) else scales
    return codes, np.broadcast_to(stretched, codes.shape), kept
