"""What a transform of images is: first it says which part is decoded, then it may work on the pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError
from tensorlake_spark.loader.decoding.region import Region


@runtime_checkable
class ImageTransform(Protocol):
    """A transform of the images of one column.

    It is pure: the same image and the same random numbers give the same result. The random numbers are the sample's
    own, so threads, ranks and workers make no difference.

    Attributes
    ----------
    n_random : int
        How many random numbers it takes for an image.
    """

    @property
    def n_random(self) -> int: ...

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return what is decoded of an image of this height and width.

        Parameters
        ----------
        height, width : int
            In pixels.
        random : float64 ndarray, shape (n_random,)
            From 0 to 1, 1 excluded.
        """
        ...

    def apply(self, image: Array, random: Array) -> Array:
        """Return the result from the pixels that `region` asked for, with the same random numbers."""
        ...


class TransformFailed(InvalidSampleError):
    """A transform raised something, or gave what it must not; nothing is wrong with the image."""


def regions_of(
    transform: ImageTransform, heights: Array, widths: Array, random: Array
) -> list[Region]:
    """Return what is decoded of each image of a batch.

    A transform may have a method ``regions`` with the same parameters, which does it for all at once.

    Parameters
    ----------
    transform : ImageTransform
        Of the column.
    heights, widths : int ndarray, shape (images,)
        In pixels.
    random : float64 ndarray, shape (images, n_random)
        A row for each image.
    """
    at_once = getattr(transform, "regions", None)
    if at_once is not None:
        found: list[Region] = _called(at_once, heights, widths, random)
        return found
    sizes = zip(heights.tolist(), widths.tolist(), random)
    return [_region(transform, height, width, row) for height, width, row in sizes]


def region_of(transform: ImageTransform, image: Array, random: Array) -> Region:
    """Return what a transform wants of one image that is in memory, as `regions_of` does of many."""
    heights, widths = np.array(image.shape[:1]), np.array(image.shape[1:2])
    (found,) = regions_of(transform, heights, widths, random[None])
    return found


def _region(transform: ImageTransform, height: int, width: int, random: Array) -> Region:
    found = _called(transform.region, height, width, random)
    if not isinstance(found, Region):
        raise TransformFailed(f"region gave {type(found).__name__}, and has to return a Region")
    lengths = [*(found.box or ()), *(found.size or ()), *(found.window or ())]
    if not all(hasattr(length, "__index__") for length in lengths) or min(found.size or (1,)) < 1:
        raise TransformFailed(
            f"region gave {found}, and has to return whole numbers, sizes above 0"
        )
    return found


def applied(transform: ImageTransform, image: Array, random: Array) -> Array:
    """Return what a transform makes of pixels.

    Raises
    ------
    TransformFailed
        If it raises something, or returns no array.
    """
    found = _called(transform.apply, image, random)
    if found is not image and not isinstance(found, np.ndarray):
        raise TransformFailed(f"apply gave {type(found).__name__}, and has to return an array")
    return found


def _called(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function of a transform gives; an error of ours says itself what to change."""
    try:
        return function(*given)
    except (InvalidOptionError, TransformFailed):
        raise
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise TransformFailed(said) from error


class Fixed:
    """A transform that is done when its region is decoded."""

    n_random = 0
    resizes: ClassVar[bool] = False
    """Whether its regions have a size."""

    def apply(self, image: Array, random: Array) -> Array:
        """Return the image: nothing is left to do."""
        return image


def check_length(value: Any, name: str) -> int:
    """Return a height or width that a user gave.

    Raises
    ------
    InvalidOptionError
        If it is no whole number above 0.
    """
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 0 < value.__index__() < 1 << 31
    ):
        raise InvalidOptionError(f"{name}={value!r:.80} is not a number of pixels above 0")
    return int(value.__index__())


def check_inside(height: int, width: int, most_height: int, most_width: int, what: str) -> None:
    """Raise InvalidOptionError if a crop is larger than an image."""
    if height > most_height or width > most_width:
        raise InvalidOptionError(
            f"{what} of {height} x {width} does not fit in an image of {most_height} x {most_width}; put Resize before "
            "it, or make it smaller"
        )
