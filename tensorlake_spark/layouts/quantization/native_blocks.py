"""What is stored of a quantised tensor, for those who read that: its dtype, its fill value, and a block of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError, did_you_mean
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.chain import CASTS, argument_of, parted
from tensorlake_spark.layouts.quantization import casts, error_bound, halves, row_scales
from tensorlake_spark.layouts.quantization.kinds import (
    DENSE,
    Quantization,
    quantization_in,
    stored_dtype,
)
from tensorlake_spark.layouts.quantization.quantized_block import codes_in, integers_in, upper_in
from tensorlake_spark.tensor.spec import TensorSpec, dtype_of

Array = np.ndarray[Any, Any]

INTEGERS = np.dtype(np.int64)
"""Dtype of the integers of ``error`` where blocks of several widths meet."""

CODES = np.dtype([("code", np.int8), ("scale", np.float32)])
"""Dtype in which codes and their scales are decoded together."""


class Codes(NamedTuple):
    """What is stored of a tensor that is quantised as ``int8``: an element is ``codes * scales``.

    Attributes
    ----------
    codes : int8 ndarray
        Of the shape of the result. An element that is kept apart, such as NaN, is 0.
    scales : float32 ndarray
        Of the same shape: the scale of each element's row.
    """

    codes: Array
    scales: Array


def native_dtype(spec: TensorSpec, native: bool | str) -> np.dtype[Any] | None:
    """Return the dtype of a read with ``native=``, None where that is a plain read.

    Parameters
    ----------
    spec : TensorSpec
        The tensor.
    native : bool or str
        True for what is stored; or the name of its dtype, which is ``"bfloat16"`` for the upper halves of a
        tensor that was split.

    Raises
    ------
    InvalidOptionError
        If it is neither, or another dtype is stored.
    """
    known = quantization_in(spec)
    if isinstance(native, str):
        return _named(spec, known, native)
    if not isinstance(native, bool):
        raise InvalidOptionError(
            f"native={native!r:.80} is not True, False or the name of a dtype; native=True reads what is stored"
        )
    if not native or known is None or spec.layout != DENSE:  # stored in the tensor's own dtype
        return None
    if known.kind == "error":
        return INTEGERS
    return CODES if known.kind == "int8" else stored_dtype(known)


def _named(spec: TensorSpec, known: Quantization | None, native: str) -> np.dtype[Any] | None:
    stored = spec.dtype.name
    if known is not None and spec.layout == DENSE:
        stored = known.kind if known.kind in CASTS else stored
        stored = "bfloat16" if known.kind == "split" else stored
    if native != stored:
        raise InvalidOptionError(
            f"native={native!r:.80} is not what is stored of tensor {spec.id!r}{did_you_mean(native, [stored])}: it "
            f"has dtype {spec.dtype} and is {'not quantised' if known is None else known}; native=True reads what "
            "is stored"
        )
    return None if stored == spec.dtype.name else dtype_of(stored)


def native_fill(spec: TensorSpec, dtype: np.dtype[Any]) -> Array:
    """Return the fill value as it would be stored, in the dtype of a native read."""
    try:
        return native_of(spec.fill_value, spec, dtype)
    except InvalidOptionError:  # as an element that is kept apart
        return np.zeros((), dtype)


def native_of(values: Array, spec: TensorSpec, dtype: np.dtype[Any]) -> Array:
    """Return floats as they would be stored, in the dtype of a native read."""
    known = quantization_in(spec)
    if known is not None and known.kind == "split":
        return halves.nearest(np.ascontiguousarray(values).reshape(values.shape)).view(dtype)
    if dtype == CODES:
        codes, scales, _ = row_scales.codes_of(values)
        return _paired(
            codes, np.broadcast_to(scales[..., None] if codes.ndim else scales, codes.shape)
        )
    if dtype == INTEGERS and known is not None and known.bound is not None:
        found = error_bound.integers_of(values, known.bound)
        if found is None:
            raise InvalidOptionError(
                f"native=True is not for all of tensor {spec.id!r}: the bound {known.bound!r} is finer than the "
                f"precision of {spec.dtype} for some values, which are stored as they are; read them without native"
            )
        integers, kept = found
        return np.asarray(np.where(kept, 0, integers).astype(INTEGERS))
    return casts.rounded(values, dtype)


def _paired(codes: Array, scales: Array) -> Array:
    out = np.empty(codes.shape, CODES)
    out["code"], out["scale"] = codes, scales
    return out


def decode_native(
    values: Any, name: str, shape: Sequence[int], spec: TensorSpec, dtype: np.dtype[Any]
) -> Array:
    """Return a whole block as it is stored, in the dtype of a native read; the column ``index`` is not needed.

    Raises
    ------
    CorruptDataError
        If the payload does not hold just this block, or is quantised in another way than its tensor.
    InvalidOptionError
        If the block is stored without loss, and has no such form.
    """
    step, inner = parted(name)
    if not step:
        return native_of(
            codecs.decode(values, codecs.codec_of(name), shape, spec.dtype), spec, dtype
        )
    known = quantization_in(spec)
    if known is None or known.codec_step != step:
        raise CorruptDataError(f"a row has codec {name!r:.80}, and its tensor {spec.codec!r:.80}")
    if step == "int8":
        codes, scales, _ = codes_in(values, inner, shape, spec.dtype)
        return _paired(codes, scales)
    if step == "split":
        return upper_in(values, inner, shape).view(dtype)
    if step.startswith("cast"):
        return codecs.decode(values, codecs.codec_of(inner), shape, dtype_of(argument_of(step)))
    integers, kept = integers_in(values, inner, shape, spec.dtype)
    wide = integers.astype(INTEGERS)
    if kept is not None:
        wide.reshape(-1)[kept.places] = 0
    return wide
