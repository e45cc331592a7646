"""Random numbers of a sample in an epoch: whatever batch it is in, whichever rank, thread or process asks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.loader.order.counter_random import F64, U64, hashed, uniform


def draw_starts(key: int, positions: NDArray[Any], repeats: NDArray[Any]) -> U64:
    """Return where the random numbers of each sample begin among those of `key`.

    Parameters
    ----------
    key : int
        Of seed and epoch; see `key_of`.
    positions : int64 ndarray, shape (n,)
        Of the samples in the dataset.
    repeats : int64 ndarray, shape (n,)
        How often each was drawn for this epoch before; see `EpochOrder.repeats`. A sample that comes several times
        has other numbers each time.

    Examples
    --------
    >>> first, second = draw_starts(7, np.array([4, 4]), np.array([0, 1]))
    >>> bool(first != second), bool(first == draw_starts(7, np.array([4]), np.array([0]))[0])
    (True, True)
    """
    # Two samples have overlapping numbers as seldom as two random integers of 64 bits lie side by side.
    return hashed(key, positions.astype(np.uint64) + (repeats.astype(np.uint64) << np.uint64(44)))


def draws_of(key: int, starts: U64, wanted: int) -> F64:
    """Return so many random numbers in [0, 1) for each sample: shape ``(len(starts), wanted)``.

    Examples
    --------
    >>> draws_of(7, draw_starts(7, np.array([4]), np.array([0])), 2).shape
    (1, 2)
    """
    counters = starts[:, None] + np.arange(wanted, dtype=np.uint64)
    return uniform(key, counters)


def generator_of(key: int, start: Any) -> np.random.Generator:
    """Return NumPy's generator for one sample.

    Its bits are the same with every version of NumPy; what NumPy makes of them, such as normal numbers, may change
    from version to version, as NumPy says.

    Examples
    --------
    >>> start = draw_starts(7, np.array([4]), np.array([0]))[0]
    >>> bool(generator_of(7, start).random() == generator_of(7, start).random())
    True
    """
    return np.random.Generator(np.random.Philox(key=int(start) << 64 | key & (1 << 64) - 1))
