"""What a codec does to the words of a block, and whether there is a loop for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

BAND = 32
"""Rows of a band of ``delta(-2)``; part of the format."""


class Steps(NamedTuple):
    """What is done to the words of a block, before they are compressed.

    Attributes
    ----------
    axis : int
        -1 or -2 for a delta along that axis, 0 for none.
    lorenzo, ordered : bool
        Whether there are differences along all axes, and whether words go by the order of floats then.
    zigzag, shuffled : bool
        Whether these steps follow.
    """

    axis: int
    lorenzo: bool
    ordered: bool
    zigzag: bool
    shuffled: bool

    @property
    def loop(self) -> str:
        """Name of the loop that does them."""
        return "lorenzo" if self.lorenzo else {0: "plain", -1: "lines", -2: "rows"}[self.axis]

    def takes(self, shape: Sequence[int], itemsize: int) -> bool:
        """Return whether there is a loop for blocks of such words, and anything to do in it."""
        if self.lorenzo:
            return len(long_axes(shape)) <= 3
        return bool(self.axis) or self.zigzag or (self.shuffled and itemsize > 1)


def long_axes(shape: Sequence[int]) -> list[int]:
    """Return the axes that lorenzo goes along: one of length 1 changes nothing; the last one is always there.

    Examples
    --------
    >>> long_axes((1, 3, 1, 5))
    [1, 3]
    """
    return [k for k, n in enumerate(shape) if n > 1 or k == len(shape) - 1]
