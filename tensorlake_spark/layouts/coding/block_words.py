"""What a codec sees of a dense block: unsigned words, their shapes, and the steps that are done to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.chain import Codec
from tensorlake_spark.layouts.coding.filters import decimals, float_lorenzo, lorenzo
from tensorlake_spark.layouts.kernels.steps import Steps

Array = np.ndarray[Any, Any]


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


def shape_of_words(
    shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of `words` of an array of `shape` and `dtype`."""
    out = tuple(shape) or (1,)
    if dtype.kind == "c":
        return (*out[:-1], out[-1] * 2), np.dtype(f"<u{dtype.itemsize // 2}")
    return out, np.dtype(f"<u{dtype.itemsize}")


def delta_axis(codec: Codec, ndim: int) -> int:
    """0 where the block has no such axis: the step then does nothing."""
    return codec.delta if -codec.delta <= ndim else 0


def steps_of(codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]) -> Steps:
    """Return what a codec does to the words of a block of `shape` and `dtype`."""
    floats = codec.floats and bool(shape)
    ordered = codec.lorenzo and not codec.floats and lorenzo.has_order(dtype)
    axis = delta_axis(codec, len(shape))
    has_lorenzo = codec.lorenzo and bool(shape)
    return Steps(axis, has_lorenzo, ordered, codec.zigzag, codec.shuffle, floats)


def rows_first(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in which delta(-2) stores words: the axis before the last comes first."""
    return (shape[-2], *shape[:-2], shape[-1])


def stored_dtype(codec: Codec, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of what is stored: integers, where ``decimal`` made them of floats.

    Raises
    ------
    CorruptDataError
        If the codec is none for the dtype.
    """
    if codec.floats and not float_lorenzo.takes(dtype):
        raise CorruptDataError(
            f"codec {codec.name!r} adds floats of 4 or 8 bytes, and dtype {dtype} is none"
        )
    if codec.places is None:
        return dtype
    if not decimals.fits(dtype):
        raise CorruptDataError(f"codec {codec.name!r} stores floats, and dtype {dtype} is none")
    return np.dtype(f"i{dtype.itemsize}")
