"""Images turned over."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.decoding.region import Region
from tensorlake_spark.loader.transforms.image_transform import Fixed


@dataclass(frozen=True)
class RandomFlip(Fixed):
    """Mirror some images, left to right.

    Parameters
    ----------
    share : float
        The probability, from 0 to 1.

    Raises
    ------
    InvalidOptionError
        If `share` is not a probability.

    Examples
    --------
    >>> import numpy as np
    >>> RandomFlip().region(4, 4, np.array([0.2])).flip, RandomFlip().region(4, 4, np.array([0.7])).flip
    (True, False)
    """

    share: float = 0.5
    n_random = 1

    def __post_init__(self) -> None:
        if (
            isinstance(self.share, bool)
            or not isinstance(self.share, (int, float))
            or not 0 <= self.share <= 1
        ):
            raise InvalidOptionError(f"share={self.share!r:.80} is not a probability from 0 to 1")

    def region(self, height: int, width: int, random: Array) -> Region:
        """Return all of an image, flipped or not."""
        return Region(flip=bool(random[0] < self.share))
