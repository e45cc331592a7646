"""What a codec does to the words of a block, and whether there is a loop for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

BAND = 32
"""Rows of a band of ``delta(-2)``; part of the format."""

GROUP = 16
"""Words of a group of ``pack``; part of the format."""

PREDICTED = {4: (27 << 23, 251 << 23), 8: (123 << 52, 2043 << 52)}
"""By bytes of a word: between which magnitudes, as words, floats lie that ``lorenzo(float)`` adds; part of the format.

That is 2**-100 and 2**124 for float32. Multiples of the last bit of the least one are no subnormals, and four times the
greatest one is finite.
"""


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
    floats : bool
        Whether lorenzo adds floats.
    """

    axis: int
    lorenzo: bool
    ordered: bool
    zigzag: bool
    shuffled: bool
    floats: bool = False

    @property
    def loop(self) -> str:
        """Name of the loop that does them."""
        if self.lorenzo:
            return "float_lorenzo" if self.floats else "lorenzo"
        return {0: "plain", -1: "lines", -2: "rows"}[self.axis]

    def takes(self, shape: Sequence[int], itemsize: int) -> bool:
        """Return whether there is a loop for blocks of such words, and anything to do in it."""
        if self.lorenzo:
            return has_planes(shape)
        return bool(self.axis) or self.zigzag or (self.shuffled and itemsize > 1)


def has_planes(shape: Sequence[int]) -> bool:
    """Return whether a block is at most planes of lines: then its beginning is coded as if the block were no longer.

    With more axes, which of them ``lorenzo(float)`` goes along is told from the whole block.

    Examples
    --------
    >>> has_planes((3, 1, 4, 5)), has_planes((2, 3, 4, 5))
    (True, False)
    """
    return len(long_axes(shape)) <= 3


def long_axes(shape: Sequence[int]) -> list[int]:
    """Return the axes that lorenzo goes along: one of length 1 changes nothing; the last one is always there.

    Examples
    --------
    >>> long_axes((1, 3, 1, 5))
    [1, 3]
    """
    return [k for k, n in enumerate(shape) if n > 1 or k == len(shape) - 1]
