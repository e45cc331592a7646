"""Functions of images: arrays of shape (height, width) or (height, width, channels)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensorlake_spark.query.functions.definitions import rowwise
from tensorlake_spark.query.functions.row_values import Array, Constant
from tensorlake_spark.query.functions.summaries import numbers

LARGEST = 1 << 28
"""A larger image is not made by `resize`."""

WEIGHTS = (0.299, 0.587, 0.114)
"""Of red, green and blue in the brightness: ITU-R BT.601, as Pillow has it."""


def clip(x: Any, low: Any, high: Any) -> Array:
    """Return the elements, with those below `low` or above `high` set to these.

    Examples
    --------
    >>> clip(np.array([1, 200, 300]), 0, 255)
    array([  1, 200, 255])
    """
    array = numbers(x)
    return np.asarray(np.clip(array, low, high))


def _clipped(x: Any, low: Any, high: Any) -> Any:
    if isinstance(x, Constant) or not isinstance(low, Constant) or not isinstance(high, Constant):
        return None
    if np.ndim(low.value) or np.ndim(high.value) or low.value is None or high.value is None:
        return None
    return clip(x, low.value, high.value)


def resize(image: Any, height: Any, width: Any) -> Array:
    """Return an image of another size, each pixel interpolated between the four that are nearest.

    Parameters
    ----------
    image : ndarray, shape (height, width, ...)
    height, width : int
        Of the result, together at most 268,435,456 elements.

    Returns
    -------
    ndarray
        Of the same dtype; whole numbers are rounded.

    Raises
    ------
    ValueError
        If the image has fewer than two axes or no pixels, or a size is out of its range.

    Examples
    --------
    >>> resize(np.array([[0, 100]], np.uint8), 1, 4)
    array([[  0,  25,  75, 100]], dtype=uint8)
    """
    array = numbers(image)
    rows, columns = operator.index(height), operator.index(width)
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"an image has a height and a width of at least 1, not the shape {array.shape}"
        )
    if rows < 1 or columns < 1:
        raise ValueError(f"the size {rows} x {columns} is not at least 1 x 1")
    if rows * columns * int(np.prod(array.shape[2:])) > LARGEST:
        raise ValueError(f"an image of {rows} x {columns} has more than {LARGEST} elements")
    kind = array.dtype
    wide = array if kind.kind in "fc" and kind != np.float16 else array.astype(np.float64)
    wide = _between(_between(wide, rows, 0), columns, 1)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.clip(np.rint(wide), limits.min, limits.max).astype(kind)
    return np.asarray(wide >= 0.5) if kind.kind == "b" else wide.astype(kind)


def _between(x: Array, length: int, axis: int) -> Array:
    """Interpolate along an axis; the centres of the pixels are where they would be on paper."""
    old = x.shape[axis]
    if old == length:
        return x
    where = ((np.arange(length) + 0.5) * (old / length) - 0.5).clip(0, old - 1)
    low = np.floor(where).astype(np.int64)
    high = np.minimum(low + 1, old - 1)
    share = (
        (where - low).astype(x.real.dtype).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    )
    return np.asarray(np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share)


def to_gray(image: Any) -> Array:
    """Return the brightness of an image of colours.

    Parameters
    ----------
    image : ndarray, shape (height, width, channels)
        1, 3 (red, green, blue) or 4 channels (the last is left out). An image of shape (height, width) is gray.

    Returns
    -------
    ndarray, shape (height, width)
        Of the same dtype; whole numbers are rounded.

    Raises
    ------
    ValueError
        If it has another shape.

    Examples
    --------
    >>> to_gray(np.full((1, 1, 3), 10, np.uint8))
    array([[10]], dtype=uint8)
    """
    array = numbers(image)
    if array.ndim == 2:
        return array
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise ValueError(
            f"an image has the shape (height, width) or (height, width, 1, 3 or 4), not {array.shape}"
        )
    if array.shape[2] == 1:
        return array[..., 0]
    kind = array.dtype
    wide = np.float32 if kind.itemsize <= 2 or kind == np.float32 else np.float64
    gray = array[..., :3].astype(wide) @ np.array(WEIGHTS, wide)
    if kind.kind in "iu":
        return np.rint(gray).astype(kind)
    return np.asarray(gray >= 0.5) if kind.kind == "b" else gray.astype(kind)


rowwise("clip", clip, "array", (3, 3), (), _clipped, about="the elements between two bounds")
rowwise("resize", resize, "array", (3, 3), about="an image of another height and width")
rowwise("to_gray", to_gray, "array", (1, 1), ("to_grayscale",), about="the brightness of an image")
