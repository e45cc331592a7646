"""Parts cut out of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.decoding.region import Region
from tensorlake_spark.loader.transforms.image_transform import Fixed, check_inside, check_length

_TRIES = 10


@dataclass(frozen=True)
class CenterCrop(Fixed):
    """The middle of an image.

    Parameters
    ----------
    height, width : int
        In pixels.

    Raises
    ------
    InvalidOptionError
        If a length is no whole number above 0; for an image that is smaller, when it is met.

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
    """A part of an image, anywhere in it.

    Parameters
    ----------
    height, width : int
        In pixels.

    Raises
    ------
    InvalidOptionError
        If a length is no whole number above 0; for an image that is smaller, when it is met.

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
    """A part of an image of random area and proportions, resized.

    The area is uniform within `scale`, the logarithm of the proportions within that of `ratio`. What does not fit in
    the image is drawn again, up to ten times; then it is the middle of the image, as torchvision does.

    Parameters
    ----------
    height, width : int
        Of the result, in pixels.
    scale : tuple of float
        Least and most area, as parts of the image's.
    ratio : tuple of float
        Least and most width / height of the part.
    exact : bool
        As for `Resize`.

    Raises
    ------
    InvalidOptionError
        If a length is no whole number above 0, or a range is none.

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
        logs = math.log(self.ratio[0]), math.log(self.ratio[1])
        numbers = random.tolist()
        size = self.height, self.width
        for number in range(_TRIES):
            area = (
                (self.scale[0] + numbers[2 * number] * (self.scale[1] - self.scale[0]))
                * height
                * width
            )
            ratio = math.exp(logs[0] + numbers[2 * number + 1] * (logs[1] - logs[0]))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top = int(numbers[-2] * (height - h + 1))
                left = int(numbers[-1] * (width - w + 1))
                return Region((top, left, h, w), size, exact=self.exact)
        h, w = height, width
        if width / height < self.ratio[0]:
            h = max(1, min(height, round(width / self.ratio[0])))
        elif width / height > self.ratio[1]:
            w = max(1, min(width, round(height * self.ratio[1])))
        return Region(((height - h) // 2, (width - w) // 2, h, w), size, exact=self.exact)


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
