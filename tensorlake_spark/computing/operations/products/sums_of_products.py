"""What every product has: its answer is a sum, which is kept in tiles where it is dense, else in cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Fold, Place
from tensorlake_spark.computing.operations.element_reductions import ElementReduction
from tensorlake_spark.computing.operations.reduction_kernels import UfuncKernel
from tensorlake_spark.computing.operations.tiles import Tiles, unite
from tensorlake_spark.indexing import Box

Operand = tuple[Any, tuple[int, ...]]
"""An array or a `SparseTensor`, and a number for each of its axes: below the selection's rank it is that axis of it,
else a new one."""


@dataclass(frozen=True, eq=False)
class SumOfProducts(Fold[Any]):
    """A sum of products over the axes that the answer does not have. Partials of dense answers are tiles, others cells.

    Attributes
    ----------
    shape : tuple of int
        Of the selection, whose axes have the numbers from 0 on.
    dtype : dtype
        Of the answer.
    operands : tuple of Operand
        What its elements are multiplied by.
    axes : tuple of int
        Axes of the answer.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    operands: tuple[Operand, ...]
    axes: tuple[int, ...]

    def combine(self, one: Any, other: Any) -> Any:
        if isinstance(one, Tiles):
            return unite(one, other, self._adding)
        return self._reduction.combine(one, other)

    def cut(self, partial: Any, count: int) -> Iterator[tuple[int, Any]]:
        return partial.cut(count) if isinstance(partial, Tiles) else super().cut(partial, count)

    @property
    def answer_shape(self) -> tuple[int, ...]:
        lengths = self._lengths
        return tuple(lengths[k] for k in self.axes)

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        sides = dict(zip(self.axes, box.slices(), strict=True))
        key, shape = cut(self.shape, sides)
        operands = tuple(
            (one[tuple(sides.get(k, slice(None)) for k in numbers)] if numbers else one, numbers)
            for one, numbers in self.operands
        )
        return key, replace(self, shape=shape, operands=operands)

    @property
    def _lengths(self) -> dict[int, int]:
        """The length of every axis, by its number."""
        out = dict(enumerate(self.shape))
        for one, numbers in self.operands:
            out.update({k: n for k, n in zip(numbers, one.shape, strict=True) if k not in out})
        return out

    @property
    def _adding(self) -> UfuncKernel:
        return UfuncKernel(np.add, self.dtype, self.dtype)

    @property
    def _cell_shape(self) -> tuple[int, ...]:
        """Shape whose places cells are."""
        return self.shape

    @property
    def _reduction(self) -> ElementReduction:
        return ElementReduction(self._adding, self._cell_shape, ())


def cut(
    shape: tuple[int, ...], sides: dict[int, slice]
) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    """Return what sides of some axes take of a tensor, as a key, and the shape of that.

    Examples
    --------
    >>> cut((4, 6), {1: slice(2, 5)})
    ((slice(None, None, None), slice(2, 5, None)), (4, 3))
    """
    key = tuple(sides.get(k, slice(None)) for k in range(len(shape)))
    return key, tuple(len(range(n)[side]) for n, side in zip(shape, key, strict=True))


def free(numbers: Sequence[int], ndim: int) -> list[int]:
    """Return the axes of a product that are not summed: those of the first factor, then those of the second.

    Parameters
    ----------
    numbers : sequence of int
        A number for each axis of the second factor: below `ndim` it is that axis of the first, else its own.
    ndim : int
        Rank of the first factor.

    Examples
    --------
    >>> free((1, 3), 2)
    [0, 3]
    """
    return [*(k for k in range(ndim) if k not in numbers), *(k for k in numbers if k >= ndim)]


def part_of(operand: Any, numbers: Sequence[int], place: Place) -> Any:
    """Return what of an operand, an array or a `SparseTensor`, meets a block.

    Parameters
    ----------
    operand : ndarray or SparseTensor
        The operand.
    numbers : sequence of int
        A number for each of its axes: below the rank of the block it is that axis of it.
    place : Place
        Where the block lies.

    Examples
    --------
    >>> part_of(np.arange(6).reshape(2, 3), (5, 0), (slice(1, 3),)).tolist()
    [[1, 2], [4, 5]]
    """
    for axis, number in enumerate(numbers):
        if number < len(place):
            key = (*(slice(None) for _ in range(axis)), place[number])
            operand = operand[key]
    return operand
