"""Products with what is in memory: tensordot, dot, and those of tensor decompositions, as one fold."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Block, Fold, Place
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.element_reductions import (
    Cells,
    run_starts,
)
from tensorlake_spark.computing.operations.sparse_contractions import (
    SparseContraction,
    SumOfProducts,
)
from tensorlake_spark.computing.operations.tiles import Tiles, whole
from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import check_shape, ravel, sort_places
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import axes_of, axis_of

Array = np.ndarray[Any, Any]

Operand = tuple[Array, tuple[int, ...]]
"""An array, and a number for each of its axes: below the tensor's rank it is that axis of it, else a new one."""

_AT_ONCE = 4 << 20  # products of sparse elements that are in memory at a time


@dataclass(frozen=True, eq=False)
class Contraction(SumOfProducts):
    """A sum of products over the axes that the answer does not have.

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

    def map(self, place: Place, block: Block) -> Any:
        if isinstance(block, Elements):
            return self._cells(block)
        args: list[Any] = [block.astype(self.dtype, copy=False), list(range(block.ndim))]
        for array, numbers in self.operands:
            args += [_part(array, numbers, place), list(numbers)]
        found = np.asarray(np.einsum(*args, list(self.axes), optimize=len(self.operands) > 0))
        lengths = self._lengths
        where = tuple(place[k] if k < len(self.shape) else slice(0, lengths[k]) for k in self.axes)
        return Tiles.of(tuple(lengths[k] for k in self.axes), where, (found,))

    def finish(self, partial: Any) -> Any:
        lengths = self._lengths
        shape = tuple(lengths[k] for k in self.axes)
        if isinstance(partial, Tiles):
            (out,) = whole(partial, self._adding)
        else:
            own, new = self._own, self._new
            out = np.zeros([lengths[k] for k in (*own, *new)], self.dtype)
            width = math.prod(lengths[k] for k in new)
            rows = out.reshape(math.prod(self.shape[k] for k in own), width)
            for cells, _, found in self._reduction._merged(partial or Cells([])):
                rows[cells] = found.reshape(len(cells), width)
            order = [*own, *new]
            out = out.transpose([order.index(k) for k in self.axes])
        out = np.asarray(out, self.dtype).reshape(shape)
        return out[()] if not out.ndim else out

    @property
    def answer_shape(self) -> tuple[int, ...]:
        lengths = self._lengths
        return tuple(lengths[k] for k in self.axes)

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        sides = dict(zip(self.axes, box.slices(), strict=True))
        key, shape = self._cut(sides)
        operands = tuple(
            (array[tuple(sides.get(k, slice(None)) for k in numbers)], numbers)
            for array, numbers in self.operands
        )
        return key, replace(self, shape=shape, operands=operands)

    def _cells(self, block: Elements) -> Cells:
        """Return the products of elements, summed for each cell of the axes of theirs that stay."""
        step = max(1, _AT_ONCE // max(1, math.prod(self._lengths[k] for k in self._new)))
        found = [
            self._products(
                block.coords[:, first : first + step], block.values[first : first + step]
            )
            for first in range(0, block.nnz, step)
        ]
        out: Cells = self._reduction.combine_all(found) or Cells([])
        return out

    def _products(self, coords: Array, values: Array) -> Cells:
        own, new, ndim = self._own, self._new, len(self.shape)
        cells = ravel(coords[list(own)], [self.shape[k] for k in own])
        if (cells[1:] < cells[:-1]).any():
            cells, by = sort_places(cells)
            coords, values = coords[:, by], values[by]
        out = values.astype(self.dtype, copy=False).reshape(-1, *(1,) * len(new))
        for array, numbers in self.operands:
            mine = [k for k in numbers if k < ndim]
            rest = [k for k in numbers if k >= ndim]
            turned = array.transpose(
                [numbers.index(k) for k in (*mine, *sorted(rest, key=new.index))]
            )
            rows = turned[tuple(coords[k] for k in mine)] if mine else turned[None]
            lengths = [self._lengths[k] if k in rest else 1 for k in new]
            out = out * rows.reshape(len(rows), *lengths)
        starts = run_starts(cells)
        counts = np.diff(starts, append=len(cells))
        with np.errstate(all="ignore"):
            sums = out if len(starts) == len(cells) else np.add.reduceat(out, starts, axis=0)
        return Cells([(cells[starts], counts, sums.astype(self.dtype, copy=False))])

    @property
    def _own(self) -> tuple[int, ...]:
        """Axes of the selection that the answer has."""
        return tuple(k for k in self.axes if k < len(self.shape))

    @property
    def _new(self) -> tuple[int, ...]:
        """Axes of operands that the answer has."""
        return tuple(k for k in self.axes if k >= len(self.shape))

    @property
    def _lengths(self) -> dict[int, int]:
        out = dict(enumerate(self.shape))
        for array, numbers in self.operands:
            out.update({k: n for k, n in zip(numbers, array.shape, strict=True) if k not in out})
        return out


def tensordot(stored: Stored, other: Any, axes: Any = 2) -> Fold[Any]:
    """Return the fold of `numpy.tensordot` with an array, or with a sparse tensor.

    Raises
    ------
    InvalidTensorError
        If the lengths of paired axes differ. AxisError if there is no such axis.
    """
    array = other if isinstance(other, Elements) else np.asarray(other)
    ndim = len(stored.shape)
    if not isinstance(axes, (tuple, list)):
        count = operator.index(axes)
        pairs: Any = range(ndim - count, ndim), range(count)
    else:
        pairs = ([axis] if np.ndim(axis) == 0 else [*axis] for axis in axes)
    mine, theirs = (
        axes_of(tuple(some), rank) for some, rank in zip(pairs, (ndim, array.ndim), strict=True)
    )
    if len(mine) != len(theirs):
        raise InvalidTensorError(
            f"tensordot pairs {len(mine)} axes with {len(theirs)}; name as many of both"
        )
    for a, b in zip(mine, theirs, strict=True):
        _check_length("tensordot", stored.shape, a, array.shape[b])
    numbers = [ndim + k for k in range(array.ndim)]
    for a, b in zip(mine, theirs, strict=True):
        numbers[b] = a
    kept = [k for k in range(ndim) if k not in mine]
    if isinstance(array, Elements):
        check_shape([*(stored.shape[k] for k in kept), *np.delete(array.shape, theirs).tolist()])
        dtype = np.result_type(stored.dtype, array.dtype)
        is_sparse = stored.is_sparse or not mine
        return SparseContraction(stored.shape, dtype, array, tuple(numbers), is_sparse)
    return _contraction(
        stored, [(array, tuple(numbers))], [*kept, *(k for k in numbers if k >= ndim)]
    )


def dot(stored: Stored, other: Any) -> Fold[Any]:
    """Return the fold of `numpy.dot`: over the last axis, and the last but one of the other.

    Raises
    ------
    InvalidTensorError
        If their lengths differ.
    """
    array = other if isinstance(other, Elements) else np.asarray(other)
    if not array.ndim or not stored.shape:
        return tensordot(stored, array, 0)
    return tensordot(stored, array, ([-1], [max(array.ndim - 2, 0)]))


def ttv(stored: Stored, vectors: Any, axis: Any = None) -> Contraction:
    """Return the fold of a tensor times vectors: each axis is summed with the weights of its vector.

    Raises
    ------
    InvalidTensorError
        If a vector does not fit its axis. AxisError if there is no such axis.
    """
    pairs = _paired("ttv", stored, vectors, axis, 1)
    kept = [k for k in range(len(stored.shape)) if k not in dict(pairs)]
    for k, vector in pairs:
        _check_length("ttv", stored.shape, k, vector.shape[0])
    return _contraction(stored, [(vector, (k,)) for k, vector in pairs], kept)


def ttm(stored: Stored, matrices: Any, axis: Any = None, transpose: bool = False) -> Contraction:
    """Return the fold of a tensor times matrices of shape (m, length of the axis); transposed, of (length, m).

    Raises
    ------
    InvalidTensorError
        If a matrix does not fit its axis. AxisError if there is no such axis.
    """
    ndim, operands, axes = len(stored.shape), [], list(range(len(stored.shape)))
    for k, given in _paired("ttm", stored, matrices, axis, 2):
        matrix = given.T if transpose else given
        _check_length("ttm", stored.shape, k, matrix.shape[1])
        operands.append((matrix, (ndim + k, k)))
        axes[k] = ndim + k
    return _contraction(stored, operands, axes)


def mttkrp(stored: Stored, factors: Sequence[Any], mode: int) -> Contraction:
    """Return the fold of an unfolded tensor times the Khatri-Rao product of all factors but that of one axis.

    Parameters
    ----------
    stored : Stored
        The tensor.
    factors : sequence of array_like
        For each axis a matrix of shape (length of the axis, rank); that of `mode` may be None.
    mode : int
        The axis that stays.

    Raises
    ------
    InvalidTensorError
        If a factor does not fit its axis, or ranks differ. AxisError if there is no such axis.
    """
    ndim = len(stored.shape)
    mode = axis_of(mode, ndim)
    if len(factors) != ndim:
        raise InvalidTensorError(
            f"mttkrp takes a factor for each of {ndim} axes, not {len(factors)}"
        )
    operands = []
    for k, factor in enumerate(factors):
        if k == mode:
            continue
        matrix = _array("mttkrp", factor)
        if matrix.ndim != 2:
            raise InvalidTensorError(f"mttkrp: factor {k} has rank {matrix.ndim}, a matrix has 2")
        _check_length("mttkrp", stored.shape, k, matrix.shape[0])
        operands.append((matrix, (k, ndim)))
    if len({matrix.shape[1] for matrix, _ in operands}) != 1:
        raise InvalidTensorError(
            "mttkrp: factors have as many columns each; these differ, or there are none"
        )
    return _contraction(stored, operands, [mode, ndim])


def _contraction(stored: Stored, operands: Sequence[Operand], axes: Sequence[int]) -> Contraction:
    dtype = np.result_type(stored.dtype, *(array.dtype for array, _ in operands))
    return Contraction(stored.shape, dtype, tuple(operands), tuple(axes))


def _paired(
    name: str, stored: Stored, factors: Any, axis: Any, rank: int
) -> list[tuple[int, Array]]:
    """Return axes with the vector or matrix of each."""
    ndim = len(stored.shape)
    if axis is not None and np.ndim(axis) == 0:
        factors, axis = [factors], [axis]
    axes = axes_of(None if axis is None else tuple(axis), ndim)
    if len(factors) != len(axes):
        raise InvalidTensorError(
            f"{name}: {len(factors)} factors for {len(axes)} axes; give one for each"
        )
    arrays = [_array(name, factor) for factor in factors]
    for k, array in zip(axes, arrays, strict=True):
        if array.ndim != rank:
            raise InvalidTensorError(
                f"{name}: the factor of axis {k} has rank {array.ndim}; it has to be {rank}"
            )
    return [*zip(axes, arrays, strict=True)]


def _check_length(name: str, shape: Sequence[int], axis: int, length: int) -> None:
    if shape[axis] != length:
        raise InvalidTensorError(
            f"{name}: axis {axis} has length {shape[axis]}, and is to meet one of length {length}"
        )


def _array(name: str, data: Any) -> Array:
    """Return an operand as an array. Sparse ones are not made dense unasked."""
    if isinstance(data, Elements):
        raise UnsupportedFunctionError(
            f"{name} of a stored tensor takes arrays; a sparse one of {data.nnz} elements becomes one with todense(), "
            f"which takes {data.size * data.dtype.itemsize} bytes"
        )
    return np.asarray(data)


def _part(array: Array, numbers: Sequence[int], place: Place) -> Array:
    """Return what of an operand meets a block."""
    for axis, number in enumerate(numbers):
        if number < len(place):
            part = place[number]
            array = array[(slice(None),) * axis + (part,)]
    return array
