"""Pixels cut, resized and flipped. The filter is Pillow's BILINEAR: a triangle as wide as the pixels that become one."""

from __future__ import annotations

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media.image_codecs import pillow
from tensorlake_spark.loader.decoding.region import Region

_BILINEAR = 2  # PIL.Image.Resampling.BILINEAR

FloatBox = tuple[float, float, float, float]
"""Top, left, bottom and right; pixels may be cut through."""


def shaped(
    image: Array,
    region: Region,
    scale: int = 1,
    whole: tuple[int, int] | None = None,
    out: Array | None = None,
) -> Array:
    """Return what a region says of an image that is decoded.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, channels)
        All of it.
    region : Region
        What is wanted; its box lies within the image.
    scale : int
        How many pixels of what the region speaks of are one pixel of `image`, along each axis.
    whole : tuple of int, optional
        Height and width of what the region speaks of, where `scale` is not 1.
    out : ndarray, optional
        Where the result is written.

    Returns
    -------
    ndarray
        `out`; without it a view of `image` where nothing is resized.

    Examples
    --------
    >>> image = np.arange(16, dtype="u1").reshape(4, 4)
    >>> shaped(image, Region((1, 1, 2, 2), flip=True)).tolist()
    [[6, 5], [10, 9]]
    >>> shaped(image, Region(size=(2, 2))).shape
    (2, 2)
    """
    height, width = whole or image.shape[:2]
    top, left, height, width = region.box or (0, 0, height, width)
    first, start = top // scale, left // scale
    if region.box is not None:
        bottom, right = -(-(top + height) // scale), -(-(left + width) // scale)
        image = image[first:bottom, start:right]
    size = region.size
    if size is not None and (size != image.shape[:2] or size != (height / scale, width / scale)):
        y, x = top / scale - first, left / scale - start
        step = height / scale / size[0], width / scale / size[1]
        wanted = region.window or (0, 0, *size)
        box = (
            y + wanted[0] * step[0],
            x + wanted[1] * step[1],
            y + (wanted[0] + wanted[2]) * step[0],
            x + (wanted[1] + wanted[3]) * step[1],
        )
        image = resized(image, wanted[2:], box)
    elif region.window is not None:
        top, left, height, width = region.window
        image = image[top : top + height, left : left + width]
    if region.flip:
        image = image[:, ::-1]
    if out is None:
        return image
    out[...] = image
    return out


def resized(image: Array, size: tuple[int, int], box: FloatBox) -> Array:
    """Return a part of an image at another size.

    uint8 with one, three or four channels is Pillow's own. Other dtypes are resized as float32, channel by channel;
    whole numbers are then rounded.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, channels)
        Any dtype of numbers.
    size : tuple of int
        Height and width of the result.
    box : tuple of float
        The part. Pixels beside it count where the filter reaches them.

    Examples
    --------
    >>> resized(np.array([[0.0, 1.0]]), (1, 1), (0, 0, 1, 2)).tolist()
    [[0.5]]
    """
    edges = box[1], box[0], min(box[3], image.shape[1]), min(box[2], image.shape[0])
    if image.dtype == np.uint8 and (image.ndim == 2 or image.shape[2] in (3, 4)):
        whole = pillow().fromarray(np.ascontiguousarray(image))
        return np.asarray(whole.resize(size[::-1], _BILINEAR, edges))
    planes = image[..., None] if image.ndim == 2 else image
    out = np.empty((*size, planes.shape[2]), image.dtype)
    for channel in range(planes.shape[2]):
        plane = pillow().fromarray(np.ascontiguousarray(planes[..., channel], np.float32))
        found = np.asarray(plane.resize(size[::-1], _BILINEAR, edges))
        if image.dtype.kind in "iu":
            bounds = np.iinfo(image.dtype)
            found = np.clip(np.rint(found.astype(np.float64)), bounds.min, bounds.max)
        elif image.dtype.kind == "b":
            found = found >= 0.5
        out[..., channel] = found
    return out[..., 0] if image.ndim == 2 else out
