"""An array cut into bands that follow its stored chunks, so that each is read alone and none is read twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BAND_BYTES = 16 << 20
"""What a band holds at the most, unless one chunk holds more."""

_LARGEST_CHUNK = 256 << 20
"""Chunks that hold more are cut, and read more than once."""


@dataclass(frozen=True)
class Tiling:
    """Boxes that tile a shape, numbered in C order.

    Attributes
    ----------
    shape : tuple of int
    step : tuple of int
        Shape of a box; those at the far ends are clipped.

    Examples
    --------
    >>> tiles = Tiling((5, 4), (2, 4))
    >>> [tiles.box(k) for k in range(tiles.count)]
    [((0, 0), (2, 4)), ((2, 0), (4, 4)), ((4, 0), (5, 4))]
    """

    shape: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many boxes lie along every axis; an axis without elements has one, which is empty."""
        return tuple(max(1, -(-n // s)) for n, s in zip(self.shape, self.step, strict=True))

    @property
    def count(self) -> int:
        """How many boxes there are."""
        return math.prod(self.counts)

    def box(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the lower and the upper corner of a box."""
        lo = []
        for count, step in zip(reversed(self.counts), reversed(self.step), strict=True):
            number, place = divmod(number, count)
            lo.append(place * step)
        corner = tuple(reversed(lo))
        sides = zip(corner, self.step, self.shape, strict=True)
        return corner, tuple(min(a + s, n) for a, s, n in sides)


def tiling(
    shape: Sequence[int], itemsize: int, chunks: Sequence[int] = (), block: Sequence[int] = ()
) -> Tiling:
    """Return bands of whole chunks of about `BAND_BYTES`, and of whole blocks of the tensor where that fits.

    Parameters
    ----------
    shape : sequence of int
        Of the array.
    itemsize : int
        Bytes of an element.
    chunks : sequence of int
        How it is stored; none for an array of which any part can be read.
    block : sequence of int
        How it will be stored.

    Examples
    --------
    >>> tiling((600, 3, 1024, 1024), 1, block=(1, 3, 256, 1024)).step
    (5, 3, 1024, 1024)
    >>> tiling((4096, 4096, 4096), 1, chunks=(64, 64, 64)).step
    (64, 64, 4096)
    """
    sides = tuple(max(1, n) for n in shape)
    chunk = _within(sides, chunks)
    target = _within(sides, block)
    both = [math.lcm(a, b) for a, b in zip(chunk, target, strict=True)]
    both = [min(a, n) for a, n in zip(both, sides, strict=True)]
    unit = both if math.prod(both) * itemsize <= BAND_BYTES else list(chunk)
    if math.prod(unit) * itemsize > _LARGEST_CHUNK:
        return Tiling(tuple(shape), _cut(unit, itemsize))
    step = list(unit)
    for axis in reversed(range(len(step))):
        others = itemsize * math.prod(step) // step[axis]
        fit = max(1, BAND_BYTES // others // unit[axis])
        step[axis] = min(sides[axis], fit * unit[axis])
        if step[axis] < sides[axis]:
            break
    return Tiling(tuple(shape), tuple(step))


def _within(sides: Sequence[int], lengths: Sequence[int]) -> tuple[int, ...]:
    given = lengths or (1,) * len(sides)
    return tuple(max(1, min(a, n)) for a, n in zip(given, sides, strict=True))


def _cut(chunk: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the largest part of a chunk with at most `BAND_BYTES` that has its last axes whole."""
    step = list(chunk)
    for axis in range(len(step)):
        others = itemsize * math.prod(step) // step[axis]
        step[axis] = max(1, min(step[axis], BAND_BYTES // max(1, others)))
    return tuple(step)
