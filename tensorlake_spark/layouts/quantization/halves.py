"""The step ``split``: a float32 as the nearest bfloat16, and what its bits differ by.

Ties are rounded away from zero: so each upper half stands for just as many floats as a lower half has bit
patterns. The halves of a NaN are the upper and the lower bits themselves, because rounding would make other
numbers of some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.kernel_switch import compiled

Array = np.ndarray[Any, Any]

HALVES = "tensorlake_spark.layouts.kernels.half_loops"
"""What `kernel_switch` loads for halves."""

SHORT = 16 << 10
"""Bytes of floats below which NumPy is as fast as a call of a compiled loop."""

_INFINITY = 0x7F80


def part(values: Array) -> tuple[Array, Array] | None:
    """Return the two halves of floats, uint16 both, or None where a NaN would have the upper half of infinity.

    Parameters
    ----------
    values : float32 ndarray

    Examples
    --------
    >>> upper, lower = part(np.array([1.0, 3.14159], np.float32))
    >>> join(upper, lower).tolist() == np.array([1.0, 3.14159], np.float32).tolist()
    True
    """
    bits = values.view(np.uint32)
    upper = ((bits + np.uint32(0x8000)) >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(values)
    if nan.any():
        upper[nan] = (bits[nan] >> np.uint32(16)).astype(np.uint16)
        if ((upper[nan] & 0x7FFF) == _INFINITY).any():
            return None
    return upper, bits.astype(np.uint16)


def join(upper: Array, lower: Array) -> Array:
    """Return the float32 that `part` parted, bit by bit."""
    if 2 * upper.nbytes > SHORT:
        loops = compiled(HALVES, nbytes=2 * upper.nbytes)
        if loops is not None:
            out = np.empty(upper.shape, np.float32)
            loops.join(upper.reshape(-1), lower.reshape(-1), out.reshape(-1).view(np.uint32))
            return out
    bits = upper.astype(np.uint32)
    # A lower half of 0x8000 and more belongs to the number before, where the upper half was rounded up.
    bits -= (lower >> np.uint16(15)) & ((upper & np.uint16(0x7FFF)) <= _INFINITY)
    bits <<= np.uint32(16)
    bits |= lower
    return bits.view(np.float32)


def nearest(values: Array) -> Array:
    """Return the bits of the bfloat16 that is nearest to each float32, ties away from zero; NaN stays NaN.

    Examples
    --------
    >>> nearest(np.array([1.0], np.float32)).tolist() == [0x3F80]
    True
    """
    bits = values.view(np.uint32)
    up = (bits + np.uint32(0x8000)) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.asarray(np.where(np.isnan(values), quiet, up).astype(np.uint16))
