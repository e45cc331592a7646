"""The step ``int8``: each row of the last axis as integers of -127 to 127, and the float32 that they count.

An element that is read differs from what was written by half of the scale of its row at most, and what rounding to
the tensor's dtype adds: 2 ** -8 of its size for bfloat16, 2 ** -11 for float16, 2 ** -24 for float32 and 2 ** -53 for
float64, or half of the dtype's least number. What would miss that is kept apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.layouts.quantization.casts import rounded

Array = np.ndarray[Any, Any]

MOST = 127
"""The greatest code."""

_SLAB = 1 << 15


@np.errstate(invalid="ignore")  # a signalling NaN that is converted raises a flag
def codes_of(values: Array) -> tuple[Array, Array, Array]:
    """Return the codes of a block, the scale of each row, and which elements have to be kept apart.

    Parameters
    ----------
    values : float ndarray
        Of one of the dtypes that may be quantised.

    Returns
    -------
    codes : int8 ndarray of the same shape
    scales : float32 ndarray, shape ``values.shape[:-1]``
        The greatest finite size of the row's elements by 127; infinite where a float32 does not reach that far.
    kept : bool ndarray of the shape of the values
        NaN and infinities.

    Examples
    --------
    >>> codes, scales, kept = codes_of(np.array([[127.0, -1.2], [0.0, 0.0]]))
    >>> codes.tolist(), scales.tolist()
    ([[127, -1], [0, 0]], [1.0, 0.0])
    """
    width = values.shape[-1] if values.ndim else 1
    rows = values.reshape(-1, width)
    codes, kept = np.empty(rows.shape, np.int8), np.empty(rows.shape, bool)
    scales = np.empty(len(rows), np.float32)
    step = max(1, _SLAB // width)
    for start in range(0, len(rows), step):  # so many are in the cache from step to step
        some = slice(start, start + step)
        codes[some], scales[some], kept[some] = _rows(rows[some])
    return (
        codes.reshape(values.shape),
        scales.reshape(values.shape[:-1]),
        kept.reshape(values.shape),
    )


def _rows(values: Array) -> tuple[Array, Array, Array]:
    """Return `codes_of` some rows."""
    exact = values.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(exact)
        finite = exact if is_finite.all() else np.where(is_finite, exact, 0)
        # No size is -0.0: a code of 0 would become that.
        scales = _scales(np.abs(np.maximum(finite.max(axis=-1), -finite.min(axis=-1))))
        wide = scales.astype(np.float64)[..., None]
        counts = np.rint(finite / np.where(wide > 0, wide, 1))
        off = floats_of(counts, scales, values.dtype).astype(np.float64, copy=False) - exact
        kept = ~(np.abs(off, out=off) <= _tolerance(wide, finite, values.dtype))
        counts[kept] = 0
    return counts.astype(np.int8), scales, kept


def _scales(most: Array) -> Array:
    """Return a scale for rows whose greatest element has a size: rounded up where rounding would make it too small."""
    scales: Array = np.asarray((most / MOST).astype(np.float32))
    short = np.rint(most / scales.astype(np.float64)) > MOST
    short |= (most > 0) & (scales == 0)
    return np.asarray(np.where(short, np.nextafter(scales, np.float32(np.inf)), scales))


def _tolerance(scales: Array, rows: Array, dtype: np.dtype[Any]) -> Array:
    """Return by how much an element may differ: half of its scale, and the rounding of the dtype."""
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    tiny = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
    step = np.maximum((np.abs(rows) + scales) * 2.0**-digits, tiny[dtype.name])
    return np.asarray(scales * 0.5 + step)


def floats_of(codes: Array, scales: Array, dtype: np.dtype[Any]) -> Array:
    """Return codes times the scale of their row, a product of doubles, rounded to a dtype."""
    out = np.empty(codes.shape, dtype)
    put_floats(codes, scales[..., None], out)
    return out


def put_floats(codes: Array, scales: Array, out: Array) -> None:
    """Write codes times scales that have been stretched to their shape into an array of that shape."""
    with np.errstate(all="ignore"):
        if out.dtype == np.float32:  # the product of 8 and 24 bits is rounded once, so or so
            np.multiply(codes, scales, out=out, dtype=np.float32, casting="unsafe")
        elif issubclass(out.dtype.type, np.floating):
            np.multiply(codes, scales, out=out, dtype=np.float64, casting="unsafe")
        else:
            out[...] = rounded(np.multiply(codes, scales, dtype=np.float64), out.dtype)
