"""Pixels cut, resized and flipped. The filter is a triangle as wide as the pixels that become one (BILINEAR of Pillow).

One axis is resized after the other, the height first where it becomes smaller. Pillow chooses the order by its version,
so its own numbers may be one or two apart. Images of uint8 go through a compiled loop where there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media.image_codecs import pillow
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.loader.decoding.region import Region

_BILINEAR = 2  # PIL.Image.Resampling.BILINEAR
_LOOPS = "tensorlake_spark.loader.decoding.resize_loops"

FloatBox = tuple[float, float, float, float]
"""Top, left, bottom and right; pixels may be cut through."""


def shaped(
    image: Array,
    region: Region,
    scale: int = 1,
    whole: tuple[int, int] | None = None,
    out: Array | None = None,
    nearest: bool = False,
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
    nearest : bool
        Whether a pixel of what is resized is the one that lies in its middle, for numbers that have no mean.

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
    rows, columns = -(-(top + height) // scale) - first, -(-(left + width) // scale) - start
    size = region.size
    is_cut = not (top % scale or left % scale)  # no pixel is cut through
    is_cut = is_cut and size is not None and (size[0] * scale, size[1] * scale) == (height, width)
    if size is not None and not is_cut:
        wanted = region.window or (0, 0, *size)
        y, x = top / scale - first, left / scale - start
        step = height / scale / size[0], width / scale / size[1]
        box = (
            y + wanted[0] * step[0],
            x + wanted[1] * step[1],
            min(rows, y + (wanted[0] + wanted[2]) * step[0]),
            min(columns, x + (wanted[1] + wanted[3]) * step[1]),
        )
        if not nearest:
            return resized(image, (first, start, rows, columns), box, wanted[2:], region.flip, out)
        image = image[first : first + rows, start : start + columns]
        image = image[_middles(box[0], box[2], wanted[2])][:, _middles(box[1], box[3], wanted[3])]
        return _flipped(image, region.flip, out)
    image = image[first : first + rows, start : start + columns]
    if region.window is not None:
        top, left, height, width = region.window
        image = image[top : top + height, left : left + width]
    return _flipped(image, region.flip, out)


def _flipped(image: Array, flip: bool, out: Array | None) -> Array:
    if flip:
        image = image[:, ::-1]
    if out is None:
        return image
    out[...] = image
    return out


def _middles(low: float, high: float, count: int) -> Array:
    """Return the old pixels in which the middles of new ones lie."""
    return np.asarray(low + (np.arange(count) + 0.5) * ((high - low) / count)).astype(np.int64)


def resized(
    image: Array,
    part: tuple[int, int, int, int],
    box: FloatBox,
    size: tuple[int, int],
    flip: bool = False,
    out: Array | None = None,
) -> Array:
    """Return a part of an image at another size.

    Other dtypes than uint8 are resized as float32, channel by channel; whole numbers are then rounded.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, channels)
        Any dtype of numbers.
    part : tuple of int
        Top, left, height and width of the part that is looked at.
    box : tuple of float
        What is resized, from the corner of that part on. Pixels beside it count where the filter reaches them.
    size : tuple of int
        Height and width of the result.
    flip : bool
        Whether left and right change places.
    out : ndarray, optional
        Where the result is written.

    Examples
    --------
    >>> resized(np.array([[0.0, 1.0]]), (0, 0, 1, 2), (0, 0, 1, 2), (1, 1)).tolist()
    [[0.5]]
    """
    if out is None:
        out = np.empty((*size, *image.shape[2:]), image.dtype)
    channels = 1 if image.ndim == 2 else image.shape[2]
    if image.dtype == np.uint8 and channels in (1, 3):
        loops = compiled(_LOOPS, "resize", nbytes=part[2] * part[3] * channels)
        if loops is not None and image.flags.c_contiguous and out.flags.c_contiguous:
            plain = image.reshape(*image.shape[:2], channels)
            plain.flags.writeable = False  # numba compiles a loop for each kind of array
            loops.resize(plain, *part, *box, flip, out.reshape(*size, channels))
            return out
    top, left, height, width = part
    image = image[top : top + height, left : left + width]
    if image.dtype == np.uint8 and channels in (1, 3, 4):
        plain = image.reshape(height, width) if channels == 1 else image
        whole = pillow().fromarray(np.ascontiguousarray(plain))
        found = np.asarray(_by_pillow(whole, box, size))
        out[...] = (found[:, ::-1] if flip else found).reshape(out.shape)
        return out
    planes, target = (x.reshape(*x.shape[:2], channels) for x in (image, out))
    for channel in range(channels):
        plane = pillow().fromarray(np.ascontiguousarray(planes[..., channel], np.float32))
        found = np.asarray(_by_pillow(plane, box, size))
        if image.dtype.kind in "iu":
            bounds = np.iinfo(image.dtype)
            found = np.clip(np.rint(found.astype(np.float64)), bounds.min, bounds.max)
        elif image.dtype.kind == "b":
            found = found >= 0.5
        target[..., channel] = found[:, ::-1] if flip else found
    return out


def _by_pillow(image: Any, box: FloatBox, size: tuple[int, int]) -> Any:
    top, left, bottom, right = box
    height, width = size
    if (
        image.mode == "RGBA"
    ):  # weighted by its transparency: at once, or that would be rounded twice
        return image.resize(size[::-1], _BILINEAR, (left, top, right, bottom))
    if bottom - top > height:
        image = image.resize((image.width, height), _BILINEAR, (0, top, image.width, bottom))
        return image.resize(size[::-1], _BILINEAR, (left, 0, right, height))
    image = image.resize((width, image.height), _BILINEAR, (left, 0, right, image.height))
    return image.resize(size[::-1], _BILINEAR, (0, top, width, bottom))
