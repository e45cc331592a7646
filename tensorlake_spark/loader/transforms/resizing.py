"""Images made larger or smaller."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.loader.decoding.region import Region
from tensorlake_spark.loader.transforms.image_transform import Fixed, check_length


@dataclass(frozen=True)
class Resize(Fixed):
    """Resize images to one size.

    Parameters
    ----------
    height : int
        In pixels. Without `width`: the length of the shorter side, and the other keeps the proportions.
    width : int, optional
        In pixels.
    exact : bool
        Decode a JPEG in full before it is resized. Else it is decoded at a half, a quarter or an eighth of its size
        where that is large enough, which is several times as fast and gives slightly other pixels.

    Raises
    ------
    InvalidOptionError
        If a length is not an integer above 0.

    Examples
    --------
    >>> import numpy as np
    >>> Resize(224, 224).region(480, 640, np.empty(0)).size
    (224, 224)
    >>> Resize(256).region(480, 640, np.empty(0)).size
    (256, 341)
    """

    height: int
    width: int | None = None
    exact: bool = False
    resizes = True

    def __post_init__(self) -> None:
        check_length(self.height, "height")
        if self.width is not None:
            check_length(self.width, "width")

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return all of an image, at the wanted size."""
        return Region(size=self._size(height, width), exact=self.exact)

    def _size(self, height: int, width: int) -> tuple[int, int]:
        if self.width is not None:
            return self.height, self.width
        if height <= width:
            return self.height, max(1, self.height * width // height)
        return max(1, self.height * height // width), self.height
