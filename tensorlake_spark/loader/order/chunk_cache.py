"""The last part of a long sequence that was computed, because the next question is about what follows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidKeyError

I64 = NDArray[np.int64]


class ChunkCache:
    """Parts of a sequence of `count` numbers that `compute` gives, computed some thousand at a time.

    Several threads may ask; each gets what is right, and now and then one computes what another had.

    Parameters
    ----------
    compute : callable
        Called with the first place and the last, which is exclusive; gives an int64 array.
    count, length : int
        Of the sequence, and of what is computed at once.

    Examples
    --------
    >>> asked = []
    >>> cache = ChunkCache(lambda a, b: asked.append((a, b)) or np.arange(a, b) ** 2, count=1000, length=100)
    >>> cache.at(5, 7), cache.at(7, 9), asked
    (array([25, 36]), array([49, 64]), [(5, 105)])
    """

    __slots__ = ("_compute", "_kept", "count", "length")

    def __init__(self, compute: Callable[[int, int], I64], count: int, length: int) -> None:
        self._compute = compute
        self.count = count
        self.length = length
        # Replaced as one, never changed.
        self._kept: tuple[int, I64] = (0, np.empty(0, np.int64))

    def at(self, start: int, stop: int) -> I64:
        """Return the numbers at the places `start` to `stop`, exclusive, as an array that cannot be written.

        Raises
        ------
        InvalidKeyError
            The places are not in the sequence, or `stop` lies before `start`.
        """
        if not 0 <= start <= stop <= self.count:
            raise InvalidKeyError(
                f"places {start}:{stop} are not in an epoch of {self.count} samples"
            )
        first, found = self._kept
        if start < first or stop > first + len(found):
            first, found = (
                start,
                self._compute(start, min(self.count, max(stop, start + self.length))),
            )
            found.flags.writeable = False
            self._kept = first, found
        return found[start - first : stop - first]
