"""The values of sparse elements, rounded before they are stored: in the tensor's own dtype, with zeros after few bits.

No row has another form for it, so a reader has nothing to undo. Bytes of zeros are what the codec of sparse values
leaves out. Which elements there are does not change: one whose value is rounded to zero is stored as zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.layouts.coding.chain import CASTS
from tensorlake_spark.layouts.quantization import bit_rounding, casts
from tensorlake_spark.layouts.quantization.kinds import Quantization, grid_step, quantization_in
from tensorlake_spark.tensor.spec import TensorSpec, dtype_of

Array = np.ndarray[Any, Any]


def rounded_for(spec: TensorSpec, values: Array, coords: Array) -> Array:
    """Return values as a sparse tensor stores them: themselves, if it is not quantised.

    Parameters
    ----------
    spec : TensorSpec
        The tensor.
    values : ndarray, shape (n,)
        In the machine's byte order.
    coords : int64 ndarray, shape (ndim, n)
        Where they are, for the message.

    Raises
    ------
    InvalidTensorError
        If a value does not fit the dtype that it is rounded to; names the element.
    InvalidOptionError
        If several stored values may add up to one element, whose bound none of them knows.
    """
    known = quantization_in(spec)
    if known is None:
        return values
    if spec.params.get("duplicates") == "sum":
        raise InvalidOptionError(
            f"quantize={known.to_json()!r} is not for tensor {spec.id!r}, which has duplicates='sum': values that are "
            "rounded one by one would add up to more than the bound; leave one of both out"
        )
    try:
        return rounded(values, known)
    except OverflowError as error:
        [place] = error.args
        index = tuple(int(k) for k in coords[:, place])
        value, kind = values[place], known.kind
        why = (
            f"beyond the greatest value of {kind}, {casts.greatest(dtype_of(kind)):g}"
            if np.isfinite(value)
            else f"which {kind} does not have"
        )
        raise InvalidTensorError(
            f"tensor {spec.id!r}: element {index} is {value!s}, {why}; scale or clip the values, or take another "
            f"quantisation, such as {casts.wider(dtype_of(kind))}"
        ) from None


def rounded(values: Array, known: Quantization) -> Array:
    """Return values of the same dtype, rounded.

    Raises
    ------
    OverflowError
        If one does not fit; with its place.

    Examples
    --------
    >>> rounded(np.array([0.1, 3.0]), Quantization("error", 0.1)).tolist()
    [0.125, 3.0]
    >>> rounded(np.array([0.1, 3.0]), Quantization("float8_e4m3fn")).tolist()
    [0.1015625, 3.0]
    """
    if known.kind in CASTS:
        cast = casts.rounded(values, dtype_of(known.kind))
        lost = casts.lost(values, cast)
        if lost.any():
            raise OverflowError(int(np.argmax(lost)))
        return np.asarray(cast.astype(values.dtype))
    bound = known.bound or 0.0
    return bit_rounding.within(values, bound) if known.kind == "relative" else within(values, bound)


def within(values: Array, bound: float) -> Array:
    """Return values, each of them within `bound`: multiples of the greatest power of two that is no more than twice it.

    NaN, infinities, and what the bound is too fine for keep all their bits.

    Parameters
    ----------
    values : float ndarray
        Of one of the dtypes that may be quantised.
    bound : float
        Above 0.

    Examples
    --------
    >>> within(np.array([1.26, -7.1]), 0.25).tolist()
    [1.5, -7.0]
    """
    # A power of two as the step: the division is exact, and a multiple of it needs few bits.
    step = grid_step(bound)
    exact = values.astype(np.float64)
    with np.errstate(all="ignore"):
        near = (np.rint(exact / step) * step).astype(values.dtype)
        far = near.astype(np.float64)
        fits = np.isfinite(far) & (np.abs(far - exact) <= bound)
    return np.asarray(np.where(fits, near, values))
