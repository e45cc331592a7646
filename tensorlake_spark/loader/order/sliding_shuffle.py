"""A shuffle that moves every item by less than a bound, so that a stream can be shuffled while it is read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.counter_random import hashed
from tensorlake_spark.loader.order.permutation import Permutation

I64 = NDArray[np.int64]

MOST_BUFFER = 1 << 30
"""Items among which a shuffle moves them, at most."""

_FRACTION = 16  # bits of a sort key behind the point


class SlidingShuffle:
    """A permutation of ``range(count)`` that moves no item by `buffer` places or more.

    Item `i` is sorted by ``i + buffer * u`` with its own random `u` in [0, 1), ties by `i`. So a reader who holds
    `buffer` items on either side of where it is can go on, and what comes at a place depends on these alone. When all
    items fit into the buffer, it is a `Permutation`: a true shuffle.

    Laws: every number comes once; ``|at(i) - i| < buffer``; `at(a, b)` is that part of the whole, however it is cut.

    Parameters
    ----------
    count : int
    key : int
        64 bits; see `key_of`.
    buffer : int
        In items, 1 to 2**30. With 1 nothing moves.

    Raises
    ------
    InvalidOptionError
        `count` or `buffer` is out of range.

    Examples
    --------
    >>> SlidingShuffle(12, key=1, buffer=4).at(0, 12).tolist()
    [0, 1, 3, 4, 2, 5, 7, 8, 6, 10, 9, 11]
    """

    __slots__ = ("buffer", "count", "key")

    def __init__(self, count: int, key: int, buffer: int) -> None:
        if count < 0:
            raise InvalidOptionError(f"count={count} of a shuffle is negative")
        if not 1 <= buffer <= MOST_BUFFER:
            raise InvalidOptionError(f"buffer={buffer} of a shuffle is not in 1 to 2**30 samples")
        self.count = count
        self.key = key
        self.buffer = buffer

    def __len__(self) -> int:
        return self.count

    def at(self, start: int, stop: int) -> I64:
        """Return the items at the places `start` to `stop`, which is exclusive.

        Raises
        ------
        InvalidKeyError
            The places are not in the range, or `stop` lies before `start`.
        """
        if not 0 <= start <= stop <= self.count:
            raise InvalidKeyError(f"places {start}:{stop} are not in a shuffle of {self.count}")
        if start == stop:
            return np.empty(0, np.int64)
        if self.count <= self.buffer:
            return Permutation(self.count, self.key).at(np.arange(start, stop))
        # Nothing moves by `buffer`: what lies further off than that is below all of these, or above.
        low, high = max(0, start - self.buffer), min(self.count, stop + self.buffer)
        return _smallest(self._keys(low, high), start - low, stop - low) + low

    def _keys(self, low: int, high: int) -> NDArray[np.uint64]:
        """Return the sort keys of items `low` to `high`, counted from that of `low` were it not moved."""
        chance = hashed(self.key, np.arange(low, high)) >> np.uint64(32)
        chance *= np.uint64(self.buffer)
        chance >>= np.uint64(32 - _FRACTION)
        chance += np.arange(high - low, dtype=np.uint64) << np.uint64(_FRACTION)
        return np.asarray(chance)


def _smallest(keys: NDArray[np.uint64], start: int, stop: int) -> I64:
    """Return where the keys lie that come `start`-th to `stop`-th by size, ties by where they lie."""
    bits = (len(keys) - 1).bit_length()
    if int(keys.max()) >> (64 - bits):
        return np.argsort(keys, kind="stable")[start:stop]
    # The place rides in the lower bits: so nothing is equal, and what comes before and after is left unsorted.
    keys <<= np.uint64(bits)
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.partition((start, stop - 1))
    found = np.sort(keys[start:stop])
    found &= np.uint64((1 << bits) - 1)
    return found.astype(np.int64)
