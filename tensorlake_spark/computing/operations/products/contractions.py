"""Products of a stored tensor: tensordot, dot, and those of tensor decompositions, each as one fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.products.array_contractions import Contraction
from tensorlake_spark.computing.operations.products.stored_contractions import (
    StoredContraction,
    contraction,
    is_small,
)
from tensorlake_spark.computing.operations.products.sums_of_products import Operand
from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import axes_of, axis_of, dtype_of_product
from tensorlake_spark.ops.products.contraction import operand
from tensorlake_spark.ops.products.numpy_products import paired_axes
from tensorlake_spark.ops.products.tensor_products import listed
from tensorlake_spark.tensor.sparse.array import sparse_of

Array = np.ndarray[Any, Any]


def tensordot(stored: Stored, other: Any, axes: Any = 2) -> Fold[Any]:
    """Return the fold of `numpy.tensordot` with an array, a sparse tensor, or another stored tensor.

    A stored one that is large is not read at once: see `StoredContraction`.

    Raises
    ------
    InvalidTensorError
        If the lengths of paired axes differ. AxisError if there is no such axis.
    """
    factor = _factor(other)
    ndim = len(stored.shape)
    mine, theirs = paired_axes(axes, ndim, len(factor.shape))
    for a, b in zip(mine, theirs, strict=True):
        _check_length("tensordot", stored.shape, a, factor.shape[b])
    numbers = [ndim + k for k in range(len(factor.shape))]
    for a, b in zip(mine, theirs, strict=True):
        numbers[b] = a
    is_sparse = False
    if isinstance(factor, Elements) or (isinstance(factor, Stored) and factor.is_sparse):
        rest = np.delete(factor.shape, theirs).tolist()
        check_shape([*(n for k, n in enumerate(stored.shape) if k not in mine), *rest])
        is_sparse = stored.is_sparse or not mine
    dtype = dtype_of_product(stored.dtype, factor.dtype)
    if isinstance(factor, Stored):
        of = stored.shape, dtype, factor, tuple(numbers), is_sparse
        return StoredContraction(*of, stored.block)
    return contraction(stored.shape, dtype, factor, tuple(numbers), is_sparse)


def dot(stored: Stored, other: Any) -> Fold[Any]:
    """Return the fold of `numpy.dot`: over the last axis, and the last but one of the other.

    Raises
    ------
    InvalidTensorError
        If their lengths differ.
    """
    factor = _factor(other)
    ndim = len(factor.shape)
    if not ndim or not stored.shape:
        return tensordot(stored, factor, 0)
    return tensordot(stored, factor, ([-1], [max(ndim - 2, 0)]))


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
    factors = listed("mttkrp", factors)
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
    dtype = dtype_of_product(stored.dtype, *(array.dtype for array, _ in operands))
    return Contraction(stored.shape, dtype, tuple(operands), tuple(axes))


def _paired(
    name: str, stored: Stored, factors: Any, axis: Any, rank: int
) -> list[tuple[int, Array]]:
    """Return axes with the vector or matrix of each."""
    ndim = len(stored.shape)
    if axis is not None and np.ndim(axis) == 0:
        factors, axis = [factors], [axis]
    axes = axes_of(None if axis is None else tuple(axis), ndim)
    factors = listed(name, factors)
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


def _factor(other: Any) -> Any:
    """Return a second factor: an array, a sparse tensor, or a stored one that is too large to be read at once."""
    if isinstance(other, Stored):
        if not is_small(other):
            return other
        other = other.read()
    sparse = sparse_of(other)
    return operand(other) if sparse is None else sparse


def _array(name: str, data: Any) -> Array:
    """Return an operand as an array. Sparse ones are not made dense unasked."""
    stored = getattr(data, "_stored", None)  # of a reference or a view
    is_sparse = isinstance(stored, Stored) and stored.is_sparse
    sparse = stored if is_sparse else sparse_of(data)
    if sparse is not None:
        nbytes = math.prod(sparse.shape) * sparse.dtype.itemsize
        raise UnsupportedFunctionError(
            f"{name} of a stored tensor takes arrays; a sparse one of shape {sparse.shape} becomes one with "
            f"{'[...].' if is_sparse else ''}todense(), which takes {nbytes} bytes"
        )
    return np.asarray(operand(data))
