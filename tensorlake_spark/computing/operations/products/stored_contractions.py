"""Products of two stored tensors: of the second one a band at a time is in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Block, Fold, Place
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.products.array_contractions import Contraction
from tensorlake_spark.computing.operations.products.sparse_contractions import SparseContraction
from tensorlake_spark.computing.operations.products.sums_of_products import SumOfProducts, cut, free
from tensorlake_spark.indexing import Box
from tensorlake_spark.ops.elements import Elements, canonical
from tensorlake_spark.reading.read import check_rows, is_full
from tensorlake_spark.writing import source

Pieces = dict[Box, Any]
"""Partials of pieces of the answer, by what they have of the second factor's free axes."""


def contraction(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    factor: Any,
    numbers: tuple[int, ...],
    is_sparse: bool,
) -> SumOfProducts:
    """Return the fold of a product with a second factor in memory; see `StoredContraction`."""
    operands, axes = ((factor, numbers),), tuple(free(numbers, len(shape)))
    if isinstance(factor, Elements):
        return SparseContraction(shape, dtype, operands, axes, is_sparse)
    return Contraction(shape, dtype, operands, axes)


def is_small(stored: Stored) -> bool:
    """Whether a stored tensor takes no more memory than a band would."""
    return nbytes_of(stored) <= source.REGION_BYTES


def nbytes_of(stored: Stored) -> float:
    """Return about how many bytes a stored tensor takes in memory."""
    return math.prod(stored.shape) * _cell_bytes(stored)


@dataclass(frozen=True, eq=False)
class StoredContraction(Fold[Pieces]):
    """A sum of products of two stored tensors.

    The second one is read once, in bands. They are cut along the summed axes as long as that is enough: then every
    band adds to the whole answer, and needs only a part of the first factor. Where a summed index alone is too large,
    bands are cut along free axes too, and give pieces of the answer. Bands end with blocks of both tensors where that
    is possible. Blocks of the first one that lie in several bands are read again for each.

    Attributes
    ----------
    shape : tuple of int
        Of the first factor, whose axes have the numbers from 0 on.
    dtype : dtype
        Of the answer.
    other : Stored
        The second factor.
    numbers : tuple of int
        A number for each of its axes: below the first factor's rank it is that axis of it, over which is summed.
    is_sparse : bool
        Whether the answer is sparse.
    block : tuple of int
        What a stored block of the first factor takes of each axis.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    other: Stored
    numbers: tuple[int, ...]
    is_sparse: bool
    block: tuple[int, ...]

    def steps(self, stored: Stored) -> Iterator[tuple[Fold[Pieces], Stored]]:
        """Yield the fold with each band of the second factor, and what of the first one meets it."""
        if 0 in self.shape:
            return
        for tensor in (stored, self.other):
            if tensor.verify and tensor.is_whole and not is_full(tensor.meta):
                check_rows(tensor.snapshot, tensor.meta)  # which bands alone could not tell
        for band in self._bands():
            for tensor in (stored, self.other):  # what was read for the band before counts no more
                tensor.snapshot.maps.give_back()
            yield self._step(stored, band)

    def map(self, place: Place, block: Block) -> Pieces:
        raise NotImplementedError("blocks are mapped by the folds of its steps")

    def combine(self, one: Pieces, other: Pieces) -> Pieces:
        for box, partial in other.items():
            one[box] = self._piece(box).combine(one[box], partial) if box in one else partial
        return one

    def finish(self, partial: Pieces | None) -> Any:
        pieces, whole = partial or {}, Box.whole(self._lengths)
        if not pieces or whole in pieces:
            return self._piece(whole).finish(pieces.get(whole))
        if self.is_sparse:
            return self._united(pieces)
        out = np.zeros(self.answer_shape, self.dtype)
        while pieces:
            box, found = pieces.popitem()
            key: Any = (..., *box.slices())
            out[key] = self._piece(box).finish(found)
        return out

    @property
    def answer_shape(self) -> tuple[int, ...]:
        kept = (n for k, n in enumerate(self.shape) if k not in self.numbers)
        return (*kept, *self._lengths)

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        axes = free(self.numbers, len(self.shape))
        sides = dict(zip(axes, box.slices(), strict=True))
        key, shape = cut(self.shape, sides)
        other = self.other.part(tuple(sides.get(k, slice(None)) for k in self.numbers))
        return key, replace(self, shape=shape, other=other)

    @property
    def n_bytes(self) -> int:
        return self.other.plan().n_bytes

    @property
    def _lengths(self) -> tuple[int, ...]:
        """Lengths of the second factor's free axes."""
        return self._free(self.other.shape)

    def _free(self, entries: tuple[int, ...]) -> tuple[int, ...]:
        """Return the entries of the second factor's free axes, of entries for all."""
        ndim = len(self.shape)
        return tuple(n for n, k in zip(entries, self.numbers, strict=True) if k >= ndim)

    def _step(self, stored: Stored, band: Box) -> tuple[Fold[Pieces], Stored]:
        sides = dict(zip(self.numbers, band.slices(), strict=True))
        part = stored.part((*(sides.get(k, slice(None)) for k in range(len(self.shape))), ...))
        factor = self.other.part((*band.slices(), ...)).read()
        fold = contraction(part.shape, self.dtype, factor, self.numbers, self.is_sparse)
        return _Band(Box(self._free(band.lo), self._free(band.hi)), fold), part

    def _bands(self) -> Iterator[Box]:
        """Yield boxes that tile the second factor, cut along summed axes first."""
        ndim, other = len(self.shape), self.other
        order = sorted(range(len(self.numbers)), key=lambda axis: self.numbers[axis] >= ndim)
        shape = [other.shape[axis] for axis in order]
        own = [min(other.block[axis], other.shape[axis]) for axis in order]
        both = [
            min(n, math.lcm(step, self.block[self.numbers[axis]]))
            if self.numbers[axis] < ndim
            else step
            for n, step, axis in zip(shape, own, order, strict=True)
        ]
        cell = _cell_bytes(other)
        fits = math.prod(both) * cell <= source.REGION_BYTES
        for box in source.bands(shape, both if fits else own, cell):
            yield Box(*(tuple(ends[order.index(axis)] for axis in range(len(order)))
                        for ends in (box.lo, box.hi)))  # fmt: skip

    def _piece(self, box: Box) -> SumOfProducts:
        """Return the fold that gives a piece of the answer from the partials of all its bands."""
        lengths = iter(box.shape)
        ndim = len(self.shape)
        shape = tuple(next(lengths) if k >= ndim else self.shape[k] for k in self.numbers)
        factor: Any = np.broadcast_to(np.zeros((), self.dtype), shape)
        if self.other.is_sparse:
            none = np.zeros((len(shape), 0), np.int64)
            factor = Elements._trusted(none, np.zeros(0, self.dtype), shape)
        return contraction(self.shape, self.dtype, factor, self.numbers, self.is_sparse)

    def _united(self, pieces: Pieces) -> Elements:
        """Return a sparse answer from its pieces."""
        coords, values, kept = [], [], len(self.answer_shape) - len(self._lengths)
        while pieces:
            box, partial = pieces.popitem()
            found = self._piece(box).finish(partial)
            coords.append(found.coords + np.array((0,) * kept + box.lo, np.int64).reshape(-1, 1))
            values.append(found.values)
        return canonical(np.concatenate(coords, axis=1), np.concatenate(values), self.answer_shape)


@dataclass(frozen=True, eq=False)
class _Band(Fold[Pieces]):
    """The product with a band of the second factor, which is in memory.

    Attributes
    ----------
    box : Box
        What it has of the second factor's free axes.
    fold : Fold
        The product.
    """

    box: Box
    fold: Fold[Any]

    @property
    def in_order(self) -> bool:
        return self.fold.in_order

    def map(self, place: Place, block: Block) -> Pieces:
        return {self.box: self.fold.map(place, block)}

    def add(self, partial: Pieces | None, place: Place, block: Block) -> Pieces:
        out = {} if partial is None else partial
        out[self.box] = self.fold.add(out.pop(self.box, None), place, block)
        return out

    def combine(self, one: Pieces, other: Pieces) -> Pieces:
        return {self.box: self.fold.combine(one[self.box], other[self.box])}

    def cut(self, partial: Pieces, count: int) -> Iterator[tuple[int, Pieces]]:
        for number, part in self.fold.cut(partial[self.box], count):
            yield number, {self.box: part}

    def finish(self, partial: Pieces | None) -> Any:
        return self.fold.finish(partial and partial[self.box])

    @property
    def answer_shape(self) -> tuple[int, ...] | None:
        return self.fold.answer_shape

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        key, fold = self.fold.part(box)
        return key, replace(self, fold=fold)


def _cell_bytes(stored: Stored) -> float:
    """Return the bytes that a cell takes in memory; of a sparse tensor it is a share of what an element takes."""
    spec = stored.meta.spec
    if not stored.is_sparse:
        return spec.dtype.itemsize
    nbytes = max(1, stored.meta.totals.nnz) * (8 * spec.ndim + spec.dtype.itemsize)
    return nbytes / max(1, spec.size)
