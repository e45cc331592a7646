"""Random numbers for each sample: a pure function of the seed, the epoch and the sample's place in the order."""

from __future__ import annotations

import numpy as np

from tensorlake_spark.datasets.types.base import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio, as SplitMix64 has it
_OTHER = np.uint64(0xD1B54A32D192ED03)
_WORD = 1 << 64


def random_numbers(seed: int, epoch: int, places: Array, count: int) -> Array:
    """Return random numbers for some samples, each with SplitMix64 on a counter.

    Parameters
    ----------
    seed, epoch : int
        From 0 to 2 ** 64.
    places : int ndarray, shape (samples,)
        The place of each sample in the epoch's order.
    count : int
        How many numbers a sample takes.

    Returns
    -------
    float64 ndarray, shape (samples, count)
        From 0 to 1, 1 excluded.

    Examples
    --------
    >>> both = random_numbers(7, 0, np.arange(2), 3)
    >>> both.shape, bool((random_numbers(7, 0, np.array([1]), 3)[0] == both[1]).all())
    ((2, 3), True)
    """
    key = _mixed(np.array([seed % _WORD], np.uint64) + _STEP)
    key = _mixed(key ^ _mixed(np.array([epoch % _WORD], np.uint64) + _OTHER))
    rows = _mixed(key ^ _mixed(places.astype(np.uint64) + _STEP))
    steps = np.arange(1, count + 1, dtype=np.uint64) * _STEP
    found = _mixed(rows[:, None] + steps)
    return np.asarray((found >> np.uint64(11)) * (1.0 / (1 << 53)))


def _mixed(numbers: Array) -> Array:
    """Return whole numbers of 64 bits whose every bit depends on all bits of those given."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))
