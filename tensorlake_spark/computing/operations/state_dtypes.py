"""The dtypes of states: which integers hold a sum, and what changes nothing in a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def narrow(dtype: np.dtype[Any], count: int, widest: np.dtype[Any] | None = None) -> np.dtype[Any]:
    """Return the narrowest integers that hold a sum of so many integers of a dtype.

    Of integers that may be negative it is `widest` if that is unsigned, where they wrap around.

    Examples
    --------
    >>> narrow(np.dtype("u1"), 200), narrow(np.dtype("i2"), 4, np.dtype("i8"))
    (dtype('uint16'), dtype('int32'))
    """
    widest = np.dtype("i8") if widest is None else widest
    if (dtype.kind, widest.kind) == ("i", "u"):
        return widest  # NumPy would add narrower ones to it as floats
    kind, bits = ("u", 1) if dtype.kind == "b" else (dtype.kind, 8 * dtype.itemsize)
    needed = bits + max(0, count - 1).bit_length()
    for itemsize in (2, 4):
        if needed <= 8 * itemsize and itemsize < widest.itemsize:
            return np.dtype(f"{kind}{itemsize}")
    return widest


def shortened(values: Array) -> Array:
    """Return integers in the shortest dtype that holds all of them; other values as they are.

    Examples
    --------
    >>> shortened(np.array([3, 70000, 200])).dtype, shortened(np.array([-3, 200])).dtype
    (dtype('uint32'), dtype('int16'))
    """
    if values.dtype.kind not in "iu" or not values.size:
        return values
    least, most = int(values.min()), int(values.max())
    short = np.min_scalar_type(most if least >= 0 else min(least, -1 - most))
    return values.astype(short) if short.itemsize < values.itemsize else values


def holds_moments(dtype: np.dtype[Any], count: int) -> bool:
    """Return whether int64 holds what `IntegerMoments` computes of so many elements.

    Examples
    --------
    >>> holds_moments(np.dtype("u1"), 1000), holds_moments(np.dtype("i4"), 1000)
    (True, False)
    """
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        return False
    return (count << (8 * dtype.itemsize)) ** 2 < 1 << 63


def identity(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Any:
    """Return what changes nothing where it is reduced together with others."""
    if ufunc in (np.fmin, np.fmax) and dtype.kind in "fcV":  # V: bfloat16
        return np.nan
    if ufunc not in (np.minimum, np.maximum, np.fmin, np.fmax):
        return ufunc.identity
    least = ufunc in (np.maximum, np.fmax)
    if dtype.kind == "b":
        return not least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    if dtype.kind in "mM":  # the least int64 is NaT
        skips = ufunc in (np.fmin, np.fmax)
        number = -(2**63) if skips else -(2**63) + 1 if least else 2**63 - 1
        return np.array(number, np.int64).view(dtype)
    infinite = -np.inf if least else np.inf
    if dtype.kind == "V" and np.isnan(np.array(infinite).astype(dtype)):
        import ml_dtypes  # which has made this dtype: it has no infinities, such as float8_e4m3fn

        info = ml_dtypes.finfo(dtype)
        return float(info.min if least else info.max)
    return complex(infinite, infinite) if dtype.kind == "c" else infinite
