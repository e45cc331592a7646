"""The step ``decimal(k)``: floats that are decimal numbers of k places, as the integers that they are then.

A price of 12.34 has 52 bits of fraction that look random; as 1234 it has eleven. The reader divides by
``10 ** k``: one division in double precision, rounded as IEEE 754 says, and so the same everywhere. The writer
takes the step only for blocks whose every bit comes back. NaN, infinities and -0.0 do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

PLACES = range(10)
"""How many decimal places the step knows."""

_EXACT = float(1 << 53)
_FIRST = 256  # what so many values do not fit need not be tried on all


def fits(dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype may be decimal numbers: NumPy's own floats of at most 8 bytes.

    Examples
    --------
    >>> fits(np.dtype("f8")), fits(np.dtype("c16"))
    (True, False)
    """
    return dtype.kind == "f" and dtype.itemsize <= 8 and issubclass(dtype.type, np.floating)


def integers_of(values: Array, places: int) -> Array | None:
    """Return values times ``10 ** places`` as integers of their size, or None if not every bit comes back.

    Examples
    --------
    >>> integers_of(np.array([12.34, 5.0]), 2)
    array([1234,  500])
    >>> integers_of(np.array([12.34, np.nan]), 2) is None
    True
    """
    if not fits(values.dtype):
        return None
    word = np.dtype(f"i{values.itemsize}")
    with np.errstate(all="ignore"):
        scaled = np.rint(values.astype(np.float64) * 10.0**places)
        limit = min(_EXACT, float(np.iinfo(word).max))
        if not bool((np.abs(scaled) <= limit).all()):
            return None
        found = scaled.astype(word)
        back = np.empty_like(values)
        put_floats(found, places, back)
    return found if np.array_equal(back.view(word), values.view(word)) else None


def put_floats(integers: Array, places: int, out: Array) -> None:
    """Write what `integers_of` made integers of, as floats, into an array of the same shape.

    Examples
    --------
    >>> out = np.empty(2)
    >>> put_floats(np.array([1234, 500]), 2, out)
    >>> out.tolist()
    [12.34, 5.0]
    """
    # Damaged rows may hold integers that overflow a float16: infinity, as the division says.
    with np.errstate(all="ignore"):
        np.divide(integers, 10.0**places, out=out, dtype=np.float64, casting="unsafe")


def places_of(values: Array) -> int | None:
    """Return with how few decimal places all values can be written, or None if they cannot.

    Examples
    --------
    >>> places_of(np.array([12.34, 5.0])), places_of(np.array([0.1 + 0.2]))
    (2, None)
    """
    if not fits(values.dtype):
        return None
    flat = values.reshape(-1)
    for places in PLACES:
        if integers_of(flat[:_FIRST], places) is not None:
            return places if integers_of(flat, places) is not None else None
    return None
