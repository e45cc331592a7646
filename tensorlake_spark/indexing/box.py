"""A box: one half-open range of every axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tensorlake_spark.errors import InvalidKeyError


@dataclass(frozen=True, slots=True)
class Box:
    """A hyper-rectangle of a tensor, ``lo`` inclusive and ``hi`` exclusive.

    Attributes
    ----------
    lo, hi : tuple of int
        Corners, ``0 <= lo <= hi`` on every axis.

    Raises
    ------
    InvalidKeyError
        If the corners differ in rank, or one of them is out of order.

    Examples
    --------
    >>> Box((0, 2), (4, 3)).shape
    (4, 1)
    """

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.lo) != len(self.hi):
            raise InvalidKeyError(f"corners {self.lo} and {self.hi} differ in rank")
        for axis, (a, b) in enumerate(zip(self.lo, self.hi, strict=True)):
            if not 0 <= a <= b:
                raise InvalidKeyError(
                    f"axis {axis}: {a}:{b} is not a range of non-negative numbers"
                )

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        """Return the box of a whole tensor.

        Examples
        --------
        >>> Box.whole((2, 3))
        Box(lo=(0, 0), hi=(2, 3))
        """
        return cls((0,) * len(shape), tuple(shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.lo)

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""
        return tuple(b - a for a, b in zip(self.lo, self.hi, strict=True))

    @property
    def size(self) -> int:
        """Number of elements; 1 for a box without axes."""
        return math.prod(self.shape)

    @property
    def is_empty(self) -> bool:
        """Whether it holds no element."""
        return any(a == b for a, b in zip(self.lo, self.hi, strict=True))

    def slices(self) -> tuple[slice, ...]:
        """Return the box as a NumPy key.

        Examples
        --------
        >>> Box((1,), (3,)).slices()
        (slice(1, 3, None),)
        """
        return tuple(slice(a, b) for a, b in zip(self.lo, self.hi, strict=True))

    def intersect(self, other: Box) -> Box:
        """Return what both have in common; an empty box where that is nothing.

        Examples
        --------
        >>> Box((0,), (4,)).intersect(Box((3,), (9,)))
        Box(lo=(3,), hi=(4,))
        """
        lo = tuple(max(a, b) for a, b in zip(self.lo, other.lo, strict=True))
        hi = tuple(max(c, min(a, b)) for a, b, c in zip(self.hi, other.hi, lo, strict=True))
        return Box(lo, hi)

    def overlaps(self, other: Box) -> bool:
        """Return whether they have an element in common.

        Examples
        --------
        >>> Box((0,), (4,)).overlaps(Box((4,), (9,)))
        False
        """
        return not self.intersect(other).is_empty

    def contains(self, other: Box) -> bool:
        """Return whether every element of `other` is in this box.

        Examples
        --------
        >>> Box((0,), (4,)).contains(Box((1,), (4,)))
        True
        """
        return other.is_empty or self.intersect(other) == other

    def subtract(self, other: Box) -> list[Box]:
        """Return disjoint boxes that make up what is in this box and not in `other`.

        Examples
        --------
        >>> Box((0,), (9,)).subtract(Box((3,), (5,)))
        [Box(lo=(0,), hi=(3,)), Box(lo=(5,), hi=(9,))]
        """
        if not self.overlaps(other):
            return [self]
        out = []
        lo, hi = list(self.lo), list(self.hi)
        for axis, (a, b) in enumerate(zip(other.lo, other.hi, strict=True)):
            if lo[axis] < a:
                out.append(Box(tuple(lo), (*hi[:axis], a, *hi[axis + 1 :])))
                lo[axis] = a
            if b < hi[axis]:
                out.append(Box((*lo[:axis], b, *lo[axis + 1 :]), tuple(hi)))
                hi[axis] = b
        return out

    def ranges(self, shape: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
        """Return ``(axis, lo, hi)`` for every axis of a tensor that the box does not cover whole.

        Examples
        --------
        >>> Box((1, 0), (8, 4)).ranges((9, 4))
        ((0, 1, 8),)
        """
        sides = zip(self.lo, self.hi, shape, strict=True)
        is_empty = self.is_empty
        return tuple((k, a, b) for k, (a, b, n) in enumerate(sides) if is_empty or a > 0 or b != n)

    def shift(self, offset: Sequence[int]) -> Box:
        """Return the box moved by `offset`.

        Examples
        --------
        >>> Box((1,), (3,)).shift((-1,))
        Box(lo=(0,), hi=(2,))
        """
        return Box(
            tuple(a + o for a, o in zip(self.lo, offset, strict=True)),
            tuple(b + o for b, o in zip(self.hi, offset, strict=True)),
        )
