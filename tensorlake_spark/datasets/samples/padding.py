"""Ragged samples as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.media.masks import BinaryMask, SegmentMask
from tensorlake_spark.datasets.types.tensors import ArrayType
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]

Blank = tuple[np.dtype[Any], tuple[int, ...]]
"""Dtype and shape of the smallest array that a type takes."""


def blank_of(kind: Type) -> Blank | None:
    """Return the smallest array that a type takes; None if it has no arrays, or arrays of any rank.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types import BoundingBox, Tensor
    >>> blank_of(BoundingBox("xyxy")), blank_of(Tensor("int16"))
    ((dtype('float32'), (0, 4)), None)
    """
    if isinstance(kind, ArrayType):
        dtype, shape = kind.fixed()
        return None if shape is None else (dtype_of(dtype), tuple(n or 0 for n in shape))
    if isinstance(kind, Image) and kind.channels is not None:
        return dtype_of(kind.dtype), (0, 0) if kind.channels == 1 else (0, 0, kind.channels)
    if isinstance(kind, (BinaryMask, SegmentMask)):
        return np.dtype(bool if isinstance(kind, BinaryMask) else kind.dtype), (0, 0)
    return None


def padded(samples: Sequence[Array | None], fill: Any = 0, blank: Blank | None = None) -> Array:
    """Return arrays of one rank as one array, each filled up at the end of its axes to the longest.

    Parameters
    ----------
    samples : sequence of ndarray or None
        None is all fill.
    fill : scalar
        What stands where a sample has nothing.
    blank : (dtype, tuple of int), optional
        What the array is like where no sample tells; see `blank_of`.

    Returns
    -------
    ndarray, shape (samples, longest of axis 0, ...)

    Raises
    ------
    InvalidSampleError
        If samples have different ranks or dtypes, or if all of them are None and there is no `blank`.
    InvalidOptionError
        If their dtype has no such value as `fill`.

    Examples
    --------
    >>> padded([np.array([1, 2]), None, np.array([3])], -1).tolist()
    [[1, 2], [-1, -1], [3, -1]]
    """
    arrays = [None if one is None else np.asarray(one) for one in samples]
    known = [(one.dtype, one.shape) for one in arrays if one is not None]
    if not known and blank is not None:
        known = [blank]
    kinds = {(len(shape), dtype) for dtype, shape in known}
    if len(kinds) != 1:
        said = ", ".join(f"{dtype} with {ndim} axes" for ndim, dtype in sorted(kinds, key=str))
        raise InvalidSampleError(
            "samples are padded to one array if they have one dtype and rank; there are "
            f"{said or 'none that are not null'}"
        )
    ((_, dtype),) = kinds
    longest = np.array([shape for _, shape in known], np.int64).max(axis=0)
    try:
        _check_kept(fill, dtype)
        out = np.full((len(arrays), *longest.tolist()), fill, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidOptionError(
            f"fill={fill!r:.60} is no value of {dtype}, which the samples have: {error}"
        ) from error
    for place, one in enumerate(arrays):
        if one is not None:
            here: Any = (place, *map(slice, one.shape))
            out[here] = one[()]  # of an object, what it is, not an array around it
    return out


def _check_kept(fill: Any, dtype: np.dtype[Any]) -> None:
    """Raise ValueError for what would become another number in a dtype: NumPy cuts it without a word."""
    given = np.asarray(fill)
    if given.ndim:
        raise ValueError("it is not one value")
    if given.dtype.kind not in "biufc" or dtype.kind not in "biufc":
        return
    if given.dtype.kind == "c" and dtype.kind != "c":
        raise ValueError("it is complex")
    with np.errstate(all="ignore"):
        found = given.astype(dtype)
    is_whole = dtype.kind in "biu"
    if found != given if is_whole else np.isfinite(found) != np.isfinite(given):
        raise ValueError(f"it would be {found}")
