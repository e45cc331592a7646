"""The step ``cast``: a smaller float, rounded to the nearest; ties to even."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def rounded(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return floats as the nearest of another dtype, ties to even.

    What is too large becomes infinity, or NaN where the dtype has no infinity.

    Examples
    --------
    >>> rounded(np.array([1.0, 1e6]), np.dtype("f2"))
    array([ 1., inf], dtype=float16)
    """
    with np.errstate(all="ignore"):
        if values.dtype == np.float64 and dtype.name not in ("float16", "float32", "float64"):
            values = _to_odd(values)
        return np.asarray(values.astype(dtype, copy=False))


def _to_odd(values: Array) -> Array:
    """Return doubles as float32, inexact ones with an odd last bit.

    ml_dtypes goes by way of float32. Rounded twice to the nearest, a value just above the middle of two
    neighbours would become the lower one.
    """
    out = values.astype(np.float32)
    back = out.astype(np.float64)
    bits = out.view(np.uint32)
    inexact = (back != values) & np.isfinite(out)
    away = np.abs(back) > np.abs(values)
    bits -= (inexact & away).astype(np.uint32)
    bits |= inexact.astype(np.uint32)
    return out


@np.errstate(invalid="ignore")  # a signalling NaN that is converted raises a flag
def lost(values: Array, cast: Array) -> Array:
    """Return which elements a cast does not hold: finite ones that are not any more, infinities and NaN likewise.

    Examples
    --------
    >>> x = np.array([1.0, 1e6, np.inf])
    >>> lost(x, rounded(x, np.dtype("f2"))).tolist()
    [False, True, False]
    """
    found = np.isfinite(values) != np.isfinite(cast)
    found |= np.isnan(values) != np.isnan(cast)
    return np.asarray(found)


def greatest(dtype: np.dtype[Any]) -> float:
    """Return the greatest finite value of a float dtype.

    Examples
    --------
    >>> greatest(np.dtype("f2"))
    65504.0
    """
    if issubclass(dtype.type, np.floating):
        return float(np.finfo(dtype).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).max)


def wider(dtype: np.dtype[Any]) -> str:
    """Return a quantisation that has larger values than a float dtype has, as users write it.

    Examples
    --------
    >>> wider(np.dtype("f2"))
    "quantize='bfloat16'"
    """
    return "quantize={'relative': 0.01}" if dtype.name == "bfloat16" else "quantize='bfloat16'"
