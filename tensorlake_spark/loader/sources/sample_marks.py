"""Marks of samples by position, a bit each."""

from __future__ import annotations

import numpy as np

from tensorlake_spark.loader.columns.values import Array


class SampleMarks:
    """Which samples are marked; none at first.

    Threads may share it. If two of them mark samples at the same time, a mark may be lost.

    Parameters
    ----------
    count : int
        How many samples there are.

    Examples
    --------
    >>> marks = SampleMarks(20)
    >>> marks.add(np.array([3, 17]))
    >>> marks.has(np.array([17, 3, 3])), marks.has(np.array([3, 4]))
    (True, False)
    """

    def __init__(self, count: int) -> None:
        self._bits = np.zeros(-(-count // 8), np.uint8)

    def has(self, positions: Array) -> bool:
        """Whether all of some samples are marked."""
        return bool(((self._bits[positions >> 3] >> (positions & 7)) & 1).all())

    def add(self, positions: Array) -> None:
        """Mark some samples."""
        np.bitwise_or.at(
            self._bits, positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8)
        )

    def clear(self) -> None:
        """Mark none any more."""
        self._bits[:] = 0
