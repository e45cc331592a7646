"""Parts cut out of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.decoding.region import Region
from tensorlake_spark.loader.transforms.image_transform import Fixed, check_inside, check_length

_TRIES = 10


@dataclass(frozen=True)
class CenterCrop(Fixed):
    """Take the middle of an image.

    Parameters
    ----------
    height, width : int
        In pixels.

    Raises
    ------
    InvalidOptionError
        If a length is not an integer above 0; and for an image that is smaller, when it is loaded.

    Examples
    --------
    >>> import numpy as np
    >>> CenterCrop(2, 4).region(6, 6, np.empty(0)).box
    (2, 1, 2, 4)
    """

    height: int
    width: int

    def __post_init__(self) -> None:
        check_length(self.height, "height")
        check_length(self.width, "width")

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return the middle of an image."""
        check_inside(self.height, self.width, height, width, "a crop")
        top, left = (height - self.height) // 2, (width - self.width) // 2
        return Region((top, left, self.height, self.width))


@dataclass(frozen=True)
class RandomCrop(Fixed):
    """Take a part of an image, anywhere in it.

    Parameters
    ----------
    height, width : int
        In pixels.

    Raises
    ------
    InvalidOptionError
        If a length is not an integer above 0; and for an image that is smaller, when it is loaded.

    Examples
    --------
    >>> import numpy as np
    >>> RandomCrop(2, 4).region(6, 6, np.array([0.99, 0.0])).box
    (4, 0, 2, 4)
    """

    height: int
    width: int
    n_random = 2

    def __post_init__(self) -> None:
        check_length(self.height, "height")
        check_length(self.width, "width")

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return a part of an image."""
        check_inside(self.height, self.width, height, width, "a crop")
        top = int(random[0] * (height - self.height + 1))
        left = int(random[1] * (width - self.width + 1))
        return Region((top, left, self.height, self.width))


@dataclass(frozen=True)
class RandomResizedCrop(Fixed):
    """Take a part of random area and proportions of an image, and resize it.

    The area is drawn uniformly from `scale`, and the logarithm of the proportions from that of `ratio`. If the part
    does not fit into the image, it is drawn again, up to ten times. After that, the middle of the image is taken, as
    in torchvision.

    Parameters
    ----------
    height, width : int
        Size of the result, in pixels.
    scale : tuple of float
        Smallest and largest area, as shares of the image's area.
    ratio : tuple of float
        Smallest and largest width / height of the part.
    exact : bool
        As for `Resize`.

    Raises
    ------
    InvalidOptionError
        If a length is not an integer above 0, or a range is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> crop = RandomResizedCrop(8, 8)
    >>> region = crop.region(100, 100, np.full(crop.n_random, 0.5))
    >>> region.box, region.size
    ((14, 14, 73, 73), (8, 8))
    """

    height: int
    width: int
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    exact: bool = False
    resizes = True
    n_random = 2 * _TRIES + 2

    def __post_init__(self) -> None:
        check_length(self.height, "height")
        check_length(self.width, "width")
        object.__setattr__(self, "scale", _range(self.scale, "scale", 1.0))
        object.__setattr__(self, "ratio", _range(self.ratio, "ratio", math.inf))

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return a part of an image, at the wanted size."""
        return self.regions(np.array([height]), np.array([width]), random[None])[0]

    def regions(self, heights: Array, widths: Array, random: Array) -> list[Region]:
        """Return a part of each image of a batch, at the wanted size.

        Parameters
        ----------
        heights, widths : int ndarray, shape (images,)
            Of the images.
        random : float64 ndarray, shape (images, n_random)
            Two numbers for each try, and two for the place.
        """
        logs = np.log(self.ratio)
        tries = random[:, :-2].reshape(-1, _TRIES, 2)
        areas = self.scale[0] + tries[..., 0] * (self.scale[1] - self.scale[0])
        areas *= (heights * widths)[:, None]
        ratios = np.exp(logs[0] + tries[..., 1] * (logs[1] - logs[0]))
        wide, high = np.rint(np.sqrt(areas * ratios)), np.rint(np.sqrt(areas / ratios))
        fits = (wide > 0) & (wide <= widths[:, None]) & (high > 0) & (high <= heights[:, None])
        first = np.arange(len(fits)), fits.argmax(axis=1)
        w, h, place = wide[first], high[first], random[:, -2:].copy()
        none = np.flatnonzero(~fits[first])
        if none.size:
            w[none], h[none] = self._largest(heights[none], widths[none])
            place[none] = 0.5
        tops = (place[:, 0] * (heights - h + 1)).astype(np.int64)
        lefts = (place[:, 1] * (widths - w + 1)).astype(np.int64)
        size, exact = (self.height, self.width), self.exact
        boxes = zip(tops.tolist(), lefts.tolist(), h.astype(int).tolist(), w.astype(int).tolist())
        return [Region(box, size, None, False, exact) for box in boxes]

    def _largest(self, heights: Array, widths: Array) -> tuple[Array, Array]:
        """Return width and height of the largest parts whose proportions are within the range."""
        low, high = self.ratio
        w = np.clip(np.rint(heights * high), 1, widths)
        h = np.clip(np.rint(widths / low), 1, heights)
        return w, h


def _range(value: Any, name: str, most: float) -> tuple[float, float]:
    try:
        low, high = (float(number) for number in value)
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0 < low <= high <= most or high == math.inf:
        bound = "above 0" if most == math.inf else "above 0 and up to 1"
        raise InvalidOptionError(
            f"{name}={value!r:.80} is not a pair of numbers {bound}, the smaller one first"
        )
    return low, high
