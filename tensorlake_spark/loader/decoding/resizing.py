"""Pixels cut, resized and flipped. The filter is Pillow's BILINEAR: a triangle as wide as the pixels that become one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media.image_codecs import pillow
from tensorlake_spark.loader.decoding.region import Region

_BILINEAR = 2  # PIL.Image.Resampling.BILINEAR


def shaped(image: Array, region: Region) -> Array:
    """Return what a region says of an image that is decoded.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, channels)
        All of it.
    region : Region
        What is wanted.

    Returns
    -------
    ndarray
        A view of `image` where nothing is resized.

    Examples
    --------
    >>> image = np.arange(16, dtype="u1").reshape(4, 4)
    >>> shaped(image, Region((1, 1, 2, 2), flip=True)).tolist()
    [[6, 5], [10, 9]]
    >>> shaped(image, Region(size=(2, 2))).shape
    (2, 2)
    """
    if region.box is not None:
        top, left, height, width = region.box
        image = image[top : top + height, left : left + width]
    if region.size is not None and region.size != image.shape[:2]:
        image = resized(image, region.size, region.window)
    elif region.window is not None:
        top, left, height, width = region.window
        image = image[top : top + height, left : left + width]
    return image[:, ::-1] if region.flip else image


def resized(image: Array, size: tuple[int, int], window: Any = None) -> Array:
    """Return an image of another size, or a window of that.

    uint8 with up to four channels is Pillow's own; other dtypes are resized in float32, channel by channel, and whole
    numbers are rounded.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, channels)
        Any dtype of numbers.
    size : tuple of int
        Height and width.
    window : tuple of int, optional
        Top, left, height and width of the part of the result that is wanted.
    """
    scale = image.shape[0] / size[0], image.shape[1] / size[1]
    top, left, height, width = window or (0, 0, *size)
    box = (
        left * scale[1],
        top * scale[0],
        (left + width) * scale[1],
        (top + height) * scale[0],
    )
    if image.dtype == np.uint8 and (image.ndim == 2 or image.shape[2] in (3, 4)):
        return np.asarray(_resized(np.ascontiguousarray(image), (width, height), box))
    planes = image[..., None] if image.ndim == 2 else image
    out = np.empty((height, width, planes.shape[2]), image.dtype)
    for channel in range(planes.shape[2]):
        plane = np.ascontiguousarray(planes[..., channel], np.float32)
        found = np.asarray(_resized(plane, (width, height), box))
        if image.dtype.kind in "iu":
            bounds = np.iinfo(image.dtype)
            found = np.clip(np.rint(found.astype(np.float64)), bounds.min, bounds.max)
        elif image.dtype.kind == "b":
            found = found >= 0.5
        out[..., channel] = found
    return out[..., 0] if image.ndim == 2 else out


def _resized(image: Array, size: tuple[int, int], box: tuple[float, ...]) -> Any:
    return pillow().fromarray(image).resize(size, _BILINEAR, box)
