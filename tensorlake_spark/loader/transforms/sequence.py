"""Transforms one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.decoding.image_shaping import shaped
from tensorlake_spark.loader.decoding.region import WHOLE, Box, Region
from tensorlake_spark.loader.transforms.image_transform import (
    Fixed,
    ImageTransform,
    applied,
    region_of,
    regions_of,
)


class Compose:
    """Apply several transforms, one after the other.

    As many transforms as possible become one region, so that only this region is decoded. A transform that works on
    pixels, or a second one that resizes, ends this. It and all after it are applied to the decoded pixels.

    Parameters
    ----------
    *transforms : ImageTransform
        The transforms, in their order.

    Raises
    ------
    InvalidOptionError
        If one is not a transform of images.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlake_spark.loader import CenterCrop, Resize
    >>> Compose(Resize(256), CenterCrop(224, 224)).region(512, 512, np.empty(0))
    Region(box=None, size=(256, 256), window=(16, 16, 224, 224), flip=False, exact=False)
    """

    def __init__(self, *transforms: ImageTransform) -> None:
        flat: list[ImageTransform] = []
        for transform in transforms:
            if isinstance(transform, type) or not isinstance(transform, ImageTransform):
                raise InvalidOptionError(
                    f"{transform!r:.80} is not a transform of images, which has n_random, region and apply; give "
                    "objects one after the other, as in Compose(Resize(256), RandomFlip())"
                )
            flat += transform.transforms if isinstance(transform, Compose) else [transform]
        self.transforms: tuple[ImageTransform, ...] = tuple(flat)
        self.n_random = sum(transform.n_random for transform in flat)
        self._first = _first(flat)

    def __repr__(self) -> str:
        return f"Compose({', '.join(map(repr, self.transforms))})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Compose) and self.transforms == other.transforms

    def __hash__(self) -> int:
        return hash(self.transforms)

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return what the first transforms ask for."""
        return self.regions(np.array([height]), np.array([width]), random[None])[0]

    def regions(self, heights: Array, widths: Array, random: Array) -> list[Region]:
        """Return what the first transforms ask for of each image of a batch.

        Parameters
        ----------
        heights, widths : int ndarray, shape (images,)
            Of the images.
        random : float64 ndarray, shape (images, n_random)
            A row for each image.
        """
        if not self._first:
            return [WHOLE] * len(heights)
        found: list[Region] = []
        used = 0
        for transform in self.transforms[: self._first]:
            own = random[:, used : used + transform.n_random]
            used += transform.n_random
            then = regions_of(transform, heights, widths, own)
            if found:
                then = [
                    joined(first, one, width)
                    for first, one, width in zip(found, then, widths.tolist())
                ]
            sizes = zip(then, heights.tolist(), widths.tolist())
            found = then
            if transform is not self.transforms[self._first - 1]:
                heights, widths = np.array([r.shape(h, w) for r, h, w in sizes], np.int64).T
        return found

    def apply(self, image: Array, random: Array) -> Array:
        """Return what the others make of the pixels."""
        used = 0
        for number, transform in enumerate(self.transforms):
            own = random[used : used + transform.n_random]
            used += transform.n_random
            if number >= self._first:
                image = shaped(image, region_of(transform, image, own))
            if number >= self._first - 1:
                image = applied(transform, image, own)
        return image


def _first(transforms: list[ImageTransform]) -> int:
    """Return how many transforms at the beginning become one region."""
    resized = False
    for number, transform in enumerate(transforms):
        if not isinstance(transform, Fixed):
            return number if resized else number + 1
        if resized and transform.resizes:
            return number
        resized = resized or transform.resizes
    return len(transforms)


def joined(first: Region, then: Region, width: int) -> Region:
    """Return two regions as one.

    Parameters
    ----------
    first : Region
        Of an image.
    then : Region
        Of what `first` gives; it does not resize what is resized already.
    width : int
        Of what `first` gives.

    Examples
    --------
    >>> joined(Region((5, 5, 20, 20), flip=True), Region((1, 2, 10, 10), (4, 4)), 20)
    Region(box=(6, 13, 10, 10), size=(4, 4), window=None, flip=True, exact=False)
    """
    if then.box is None and then.size is None and then.window is None:
        return Region(*first[:3], first.flip != then.flip, first.exact or then.exact)
    box, size, window = first.box, first.size, first.window
    for part in (then.box, then.window if then.size is None else None):
        if part is not None:
            if first.flip:
                part = part[0], width - part[1] - part[3], part[2], part[3]
            width = part[3]
            if size is None:
                box = _within(box, part)
            else:
                window = _within(window, part)
    if then.size is not None:
        size, window = then.size, then.window
        if window is not None and first.flip:
            window = window[0], size[1] - window[1] - window[3], window[2], window[3]
    return Region(box, size, window, first.flip != then.flip, first.exact or then.exact)


def _within(outer: Box | None, inner: Box) -> Box:
    return inner if outer is None else (outer[0] + inner[0], outer[1] + inner[1], *inner[2:])
