"""A relative bound: mantissas are rounded to as many bits as it needs, and zeros after them compress to nothing.

This is bit rounding (Kloewer, Razinger, Dominguez, Dueben and Palmer, 2021). The dtype and the codec stay as they
are, so a reader has nothing to undo.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def within(values: Array, bound: float) -> Array:
    """Return values, each of them within `bound` times its own size, with as few bits as that takes.

    NaN, infinities, subnormal numbers and what would round to infinity keep all their bits.

    Parameters
    ----------
    values : float ndarray
        Of one of the dtypes that may be quantised.
    bound : float
        Above 0 and below 1.

    Examples
    --------
    >>> within(np.array([3.14159265, 100.0]), 0.01).tolist()
    [3.15625, 100.0]
    """
    mantissa = _MANTISSA[values.dtype.name]
    # Rounding to k bits moves a value by half of its last bit at most: 2 ** -(k + 1) of its size.
    keep = max(0, math.ceil(-math.log2(bound)) - 1)
    drop = mantissa - keep
    if drop <= 0:
        return values
    word = np.dtype(f"u{values.itemsize}").type
    bits = np.ascontiguousarray(values).reshape(values.shape).view(word)
    half, one, shift = word((1 << (drop - 1)) - 1), word(1), word(drop)
    with np.errstate(all="ignore"):
        out = bits + (half + ((bits >> shift) & one))
        out &= ~word((1 << drop) - 1)
        found = out.view(values.dtype)
        far, near = values.astype(np.float64), found.astype(np.float64)
        fits = np.abs(near - far) <= bound * np.abs(far)
    magnitude = word((1 << (8 * values.itemsize - 1)) - 1)
    is_normal = (bits & magnitude) >= word(1 << mantissa)
    fits &= np.isfinite(near) & is_normal
    return np.asarray(np.where(fits, out, bits).astype(word).view(values.dtype))
