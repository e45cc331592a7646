"""A fold: how an answer comes from the blocks of a stored tensor, whoever brings the blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from tensorlake_spark.indexing import Box
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.reducing.reduction_mask import Mask

Array = np.ndarray[Any, Any]

Block = Array | Elements
"""What a map takes: a dense part of the selection, or stored elements of it."""

Place = tuple[slice | Array, ...]
"""Where a block lies in the selection, as NumPy would answer it: for each axis of that answer a slice with a start, a
stop and no step, or ascending indices. The place of `Elements` is the whole selection, in which their coordinates are.
"""

Partial = TypeVar("Partial")
Entry = TypeVar("Entry")


def indices_at(part: slice | Array, at: Any) -> Any:
    """Return the indices in a selection that positions along an axis of a block have.

    Examples
    --------
    >>> indices_at(slice(5, 9), np.array([0, 2])), indices_at(np.array([3, 8]), 1)
    (array([5, 7]), np.int64(8))
    """
    return part.start + at if isinstance(part, slice) else part[at]


class Fold(ABC, Generic[Partial]):
    """An operation on the blocks of a selection: map each, combine what comes of them, finish the last one.

    Laws, for blocks that hold each element of the selection once (elements of a sparse tensor that are not stored are
    in none):

    1. *associative*: ``combine(combine(a, b), c)`` is ``combine(a, combine(b, c))``, up to the rounding of floats;
    2. *commutative*: so is ``combine(b, a)``; blocks come in any order;
    3. *cut as you like*: larger or smaller blocks of the same elements give the same answer;
    4. *portable*: the fold and its partials can be pickled, and a partial is not larger than a few answers.

    A fold is stateless: all that changes is in partials.
    """

    @property
    def in_order(self) -> bool:
        """Whether it wants the elements of a block in C order; they are sorted for it."""
        return True

    @abstractmethod
    def map(self, place: Place, block: Block) -> Partial:
        """Return the partial of one block. The block is not kept: its memory is used again."""

    def add(self, partial: Partial | None, place: Place, block: Block) -> Partial:
        """Return the partial of what came before, which may be changed for it, and of one more block.

        It is what `map` and `combine` give. A fold that has a way without an array in between takes that.
        """
        new = self.map(place, block)
        return new if partial is None else self.combine(partial, new)

    @abstractmethod
    def combine(self, one: Partial, other: Partial) -> Partial:
        """Return the partial of the blocks of both. Either may be changed for it, and is not used again."""

    @abstractmethod
    def finish(self, partial: Partial | None) -> Any:
        """Return the answer from the partial of all blocks; None where no block had anything.

        The answer is an array, a scalar, `Elements`, or a tuple of these.
        """

    @property
    def answer_shape(self) -> tuple[int, ...] | None:
        """Shape of the answer, None where no part of it can be computed without the rest."""
        return None

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        """Return what a box of the answer takes of the selection, as a key, and the fold of it that gives the box."""
        raise NotImplementedError

    def cut(self, partial: Partial, count: int) -> Iterator[tuple[int, Partial]]:
        """Yield parts of a partial, each with a number below `count`; all together they are the partial.

        Parts that have the same number, of any partials, can be combined without the others. A partial that cannot be
        cut is the first part.
        """
        yield 0, partial

    def packed(self, partial: Partial) -> Partial:
        """Return a partial as it is sent to another process: in few bytes."""
        return partial

    @property
    def n_bytes(self) -> int:
        """Bytes of the table that it reads itself, beside what is selected."""
        return 0

    def steps(self, stored: Any) -> Iterator[tuple[Fold[Partial], Any]]:
        """Yield folds of parts of a selection. All their partials together are those of this fold."""
        yield self, stored

    def combine_all(self, partials: Iterable[Partial]) -> Partial | None:
        """Return the partial of all blocks, None if there are none."""
        out: Partial | None = None
        for partial in partials:
            out = partial if out is None else self.combine(out, partial)
        return out


class AxesFold(Fold[Partial]):
    """A fold over some axes of a selection, which go, or stay with length 1. It is a dataclass with these attributes.

    Attributes
    ----------
    shape : tuple of int
        Of the selection.
    axes : tuple of int
        Those that are reduced, ascending.
    keepdims : bool
        Whether they stay, with length 1.
    mask : Mask, optional
        Which elements take part, by default all.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keepdims: bool
    mask: Mask | None = None

    @property
    def answer_shape(self) -> tuple[int, ...]:
        if self.keepdims:
            return tuple(1 if k in self.axes else n for k, n in enumerate(self.shape))
        return self.kept(self.shape)

    def kept(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Return the entries of axes that are not reduced, of entries for all axes."""
        return tuple(entry for k, entry in enumerate(entries) if k not in self.axes)

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        sides = [*box.slices()]
        if not self.keepdims:
            for k in self.axes:
                sides.insert(k, slice(None))
        key = tuple(slice(None) if k in self.axes else side for k, side in enumerate(sides))
        return key, self.within(key)

    def within(self, key: Sequence[slice]) -> Fold[Any]:
        """Return the same of what a key, a slice for each axis, picks of the selection."""
        fold: Any = self
        shape = tuple(len(range(n)[side]) for n, side in zip(self.shape, key, strict=True))
        cut = {} if self.mask is None else {"mask": self.mask.part(key)}
        out: Fold[Any] = replace(fold, shape=shape, **cut)
        return out
