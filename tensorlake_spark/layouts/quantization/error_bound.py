"""The step ``error(e)``: floats as integers that count ``2 e``, so that none is off by more than e."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.layouts.quantization.casts import rounded

Array = np.ndarray[Any, Any]

WIDTHS = (1, 2, 4, 8)
"""Bytes of the integers of a block."""

_EXACT = float(1 << 53)
_SLAB = 1 << 15
_MOST_KEPT = 8  # one finite element in so many may be kept apart


@np.errstate(invalid="ignore")  # a signalling NaN that is converted raises a flag
def integers_of(values: Array, bound: float) -> tuple[Array, Array] | None:
    """Return the integers of a block, as narrow as they may be, and which elements have to be kept apart.

    Parameters
    ----------
    values : float ndarray
        Of one of the dtypes that may be quantised.
    bound : float
        By how much an element may differ.

    Returns
    -------
    (integer ndarray, bool ndarray) or None
        None where nothing would be saved: the bound is finer than the dtype for more than one element in eight,
        or the integers need more bytes than the floats have.

    Examples
    --------
    >>> integers, kept = integers_of(np.array([0.1, 0.52, np.nan]), 0.05)
    >>> integers.tolist(), kept.tolist()
    ([1, 5, 5], [False, False, True])
    """
    counts, fits = _counted(values, bound)
    kept = ~fits
    if kept.any():
        if np.count_nonzero(kept & np.isfinite(values)) * _MOST_KEPT > values.size:
            return None
        counts = _filled(counts, fits)
    least, most = counts.min(), counts.max()
    width = next(w for w in WIDTHS if -(2.0 ** (8 * w - 1)) <= least and most < 2.0 ** (8 * w - 1))
    return None if width > values.itemsize else (counts.astype(f"i{width}"), kept)


def _counted(values: Array, bound: float) -> tuple[Array, Array]:
    """Return how often each value has twice the bound, float64, and whether what is read then is within the bound."""
    flat = values.reshape(-1)
    counts, fits = np.empty(flat.shape, np.float64), np.empty(flat.shape, bool)
    for start in range(0, flat.size, _SLAB):  # so many are in the cache from step to step
        some = slice(start, start + _SLAB)
        count = counts[some]
        with np.errstate(all="ignore"):
            exact = flat[some].astype(np.float64, copy=False)
            np.divide(exact, 2 * bound, out=count)
            np.rint(count, out=count)
            off = floats_of(count, bound, values.dtype).astype(np.float64, copy=False)
            off = np.subtract(off, exact)
            np.abs(off, out=off)
            # NaN is within no bound.
            np.less_equal(off, bound, out=fits[some])
            np.abs(count, out=off)
            fits[some] &= off <= _EXACT
    return counts.reshape(values.shape), fits.reshape(values.shape)


def _filled(counts: Array, fits: Array) -> Array:
    """Return counts where those that do not fit are that of the element before, so that differences are small."""
    flat, good = counts.reshape(-1), fits.reshape(-1)
    places = np.where(good, np.arange(len(flat)), 0)
    np.maximum.accumulate(places, out=places)
    if not good[0]:
        first = int(np.argmax(good))
        flat[0] = flat[first] if good[first] else 0.0
    return np.asarray(flat[places].reshape(counts.shape))


def floats_of(integers: Array, bound: float, dtype: np.dtype[Any]) -> Array:
    """Return integers times ``2 * bound``, a product of doubles, rounded to a dtype.

    Examples
    --------
    >>> floats_of(np.array([1, 5]), 0.05, np.dtype("f4")).tolist()
    [0.10000000149011612, 0.5]
    """
    out = np.empty(integers.shape, dtype)
    put_floats(integers, bound, out)
    return out


def put_floats(integers: Array, bound: float, out: Array) -> None:
    """Write what `floats_of` returns into an array of the same shape."""
    with np.errstate(all="ignore"):
        if issubclass(out.dtype.type, np.floating):
            np.multiply(integers, 2 * bound, out=out, dtype=np.float64, casting="unsafe")
        else:
            out[...] = rounded(np.multiply(integers, 2 * bound, dtype=np.float64), out.dtype)
