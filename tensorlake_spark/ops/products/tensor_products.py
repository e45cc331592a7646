"""Kernels of tensor decompositions: a tensor times vectors, times matrices, times Khatri-Rao products.

Axes, shapes and the order of columns are those of TensorLy and, for ``ttv``, ``ttm`` and ``mttkrp``, of pyttb: a
factor of axis k has the shape (length of axis k, rank). Unfoldings and Khatri-Rao products are in C order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops.elements import Elements, elements_at, in_class_of_operands
from tensorlake_spark.ops.numpy_arguments import axes_of, axis_of, dtype_of_product
from tensorlake_spark.ops.products.contraction import (
    Operand,
    elements_of,
    loops_for,
    multiply,
    operand,
    scipy_dtype,
)
from tensorlake_spark.ops.products.numpy_products import scalar_of

Array = np.ndarray[Any, Any]

_AT_ONCE = 1 << 16  # fibres whose rows stay in the cache


def ttv(x: Elements, vectors: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Return a tensor times vectors: summed along each axis with the weights of its vector.

    Parameters
    ----------
    x : Elements
        The tensor.
    vectors : array_like or Elements, or a list of them
        A vector for each axis of `axis`.
    axis : int or sequence of int, optional
        Without it, there is a vector for each axis of the tensor.

    Returns
    -------
    ndarray, Elements or scalar
        Without these axes. Sparse if all vectors are.

    Raises
    ------
    AxisError
        If there is no such axis.
    InvalidTensorError
        If a vector does not fit its axis.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> ttv(x, [1, 10], axis=1).tolist(), ttv(x, [[1, 1], [1, 10]])
    ([20, 3], np.int64(23))
    """
    vectors_of = _paired("ttv", x, vectors, axis, 1, 0)
    labels, result = list(range(x.ndim)), x
    # Sparse ones first: with all but one the tensor stays sparse.
    order = sorted(vectors_of, key=lambda k: not isinstance(vectors_of[k], Elements))
    for k in order:
        vector = vectors_of[k] if k == order[-1] else elements_of(vectors_of[k])
        left = [label for label in labels if label != k]
        result, labels = multiply(result, labels, vector, [k], left), left
    return scalar_of(result)


def ttm(
    x: Elements, matrices: Any, axis: int | Sequence[int] | None = None, transpose: bool = False
) -> Any:
    """Return a tensor times matrices: each takes the vectors along its axis to others.

    Parameters
    ----------
    x : Elements
        The tensor.
    matrices : array_like or Elements, or a list of them
        A matrix of shape (m, length of the axis) for each axis of `axis`.
    axis : int or sequence of int, optional
        Without it, there is a matrix for each axis of the tensor.
    transpose : bool
        Whether the matrices have the shape (length of the axis, m).

    Returns
    -------
    ndarray or Elements
        With axes of length m. Sparse if all matrices are.

    Raises
    ------
    AxisError
        If there is no such axis.
    InvalidTensorError
        If a matrix does not fit its axis.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> ttm(x, [[1, 10]], axis=1).tolist()
    [[20], [3]]
    """
    fit = 0 if transpose else 1
    matrices_of = _paired("ttm", x, matrices, axis, 2, fit)
    labels, result = list(range(x.ndim)), x
    # The axis that becomes shortest goes first.
    for k, matrix in sorted(
        matrices_of.items(), key=lambda pair: pair[1].shape[1 - fit] / max(1, x.shape[pair[0]])
    ):
        of, out = (
            ([k, -1] if transpose else [-1, k]),
            [-1 if label == k else label for label in labels],
        )
        if isinstance(result, Elements) or isinstance(matrix, Elements):
            result = multiply(result, labels, matrix, of, out)
        else:
            result = np.moveaxis(np.tensordot(result, matrix, ([k], [fit])), -1, k)
    return result


def mttkrp(x: Elements, factors: Sequence[Any], mode: int) -> Array:
    """Return the unfolding of a mode times the Khatri-Rao product of the other modes' factors.

    It is the costly step of a CP decomposition by alternating least squares. The Khatri-Rao product is not made.

    Parameters
    ----------
    x : Elements
        Of rank 2 at least.
    factors : sequence of array_like
        For each axis a matrix of shape (its length, rank). That of `mode` is not looked at, and may be None.
    mode : int
        The axis that is left.

    Returns
    -------
    ndarray, shape (length of `mode`, rank)

    Raises
    ------
    AxisError
        If there is no such axis.
    InvalidTensorError
        If a factor does not fit.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> mttkrp(x, [None, [[1, 5], [10, 50]]], 0).tolist()
    [[20, 100], [3, 15]]
    """
    mode = axis_of(mode, x.ndim)
    matrices = _factors(x, factors, mode)
    rank = next(iter(matrices.values())).shape[1]
    dtype = dtype_of_product(x.dtype, *(u.dtype for u in matrices.values()))
    work = scipy_dtype(dtype)
    matrices = {
        k: u.astype(dtype, copy=False).astype(work, copy=False) for k, u in matrices.items()
    }
    out = np.zeros((x.shape[mode], rank), work)
    heads, fibres = _fibres(x)
    loops = loops_for("mttkrp", out.dtype, x.values.nbytes)
    if loops is not None:
        _add_compiled(out, x, heads, fibres.indptr, matrices, mode, loops)
    else:
        for first in range(0, heads.shape[1], _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            _add_fibres(out, heads[:, some], fibres[some], matrices, mode)
    return out.astype(dtype, copy=False)


def _add_fibres(
    out: Array, heads: Array, fibres: Any, matrices: dict[int, Array], mode: int
) -> None:
    """Add what some fibres of the last axis give."""
    from scipy import sparse

    last, count = len(heads), heads.shape[1]
    others = [matrices[k][heads[k]] for k in range(last) if k != mode]
    if mode == last:
        out += fibres.T @ reduce(np.multiply, others)
        return
    rows = reduce(np.multiply, others, fibres @ matrices[last])
    ends = np.arange(count + 1, dtype=fibres.indptr.dtype)
    one = np.ones(count, out.dtype), heads[mode].astype(ends.dtype), ends
    out += sparse.csr_array(one, (count, len(out))).T @ rows


def _add_compiled(
    out: Array, x: Elements, heads: Array, ends: Array, matrices: dict[int, Array], mode: int, loops: Any
) -> None:  # fmt: skip
    """Add what all fibres of the last axis give."""
    last = len(heads)
    others = [k for k in range(last) if k != mode]
    # The factors of the other axes, one below the other.
    table = np.concatenate([np.ones((0, out.shape[1]), out.dtype), *(matrices[k] for k in others)])
    above = np.cumsum([0, *(x.shape[k] for k in others)])[:-1]
    near = heads[others] + above[:, None]
    values = x.values.astype(out.dtype, copy=False)
    factor, to = (table, ends) if mode == last else (matrices[last], heads[mode])
    loops.fibres(values, x.coords[last], ends, factor, table, near, to, out, mode == last)


def listed(name: str, factors: Any) -> list[Any]:
    """Return the factors of several axes as a list.

    Raises
    ------
    InvalidTensorError
        If they cannot be listed, as None, or a number in the place of one factor whose axis was not named.

    Examples
    --------
    >>> listed("ttv", iter([1, 2]))
    [1, 2]
    """
    try:
        several = iter(factors)
    except TypeError:
        raise InvalidTensorError(
            f"{name} takes a list with a factor for each axis, not {type(factors).__name__}"
        ) from None
    return [*several]


def _factors(x: Elements, factors: Sequence[Any], mode: int) -> dict[int, Array]:
    """Return the factors of all axes but one."""
    if x.ndim < 2:
        raise InvalidTensorError(f"mttkrp of a tensor of rank {x.ndim}; it takes 2 axes or more")
    factors = listed("mttkrp", factors)
    if len(factors) != x.ndim:
        raise InvalidTensorError(f"mttkrp with {len(factors)} factors for {x.ndim} axes; one each")
    found: dict[int, Any] = {k: operand(u) for k, u in enumerate(factors) if k != mode}
    ranks = {u.shape[1:] for u in found.values()}
    for k, u in found.items():
        if u.ndim != 2 or u.shape[0] != x.shape[k] or len(ranks) > 1 or isinstance(u, Elements):
            raise InvalidTensorError(
                f"factor {k} has shape {u.shape}; it is a dense matrix of shape ({x.shape[k]}, rank), and all "
                "ranks are equal"
            )
    return found


def _fibres(x: Elements) -> tuple[Array, Any]:
    """Return the fibres of the last axis that hold anything: coordinates, and the rows of a matrix; both kept."""
    if "fibres" not in x._cached:
        from scipy import sparse

        fresh = np.ones(x.nnz, bool)
        if x.nnz:
            fresh[1:] = (x.coords[:-1, 1:] != x.coords[:-1, :-1]).any(axis=0)
        first = np.flatnonzero(fresh)
        word = np.int32 if max(x.nnz, x.shape[-1]) < 1 << 31 else np.int64
        values = x.values.astype(scipy_dtype(x.dtype), copy=False)
        parts = values, x.coords[-1].astype(word), np.append(first, x.nnz).astype(word)
        x._cached["fibres"] = (
            x.coords[:-1, first],
            sparse.csr_array(parts, (len(first), x.shape[-1])),
        )
    found: tuple[Array, Any] = x._cached["fibres"]
    return found


@in_class_of_operands
def khatri_rao(matrices: Sequence[Any]) -> Any:
    """Return the Kronecker products of matrices' columns, as columns; the last matrix is the fastest.

    Parameters
    ----------
    matrices : sequence of array_like or Elements
        Of shapes (n, rank), with one rank.

    Returns
    -------
    ndarray or Elements
        Of shape (product of all n, rank); sparse if one of them is.

    Raises
    ------
    InvalidTensorError
        If there is none, or they are no matrices of one rank.

    Examples
    --------
    >>> khatri_rao([[[1, 2], [3, 4]], [[1, 1], [10, 10]]]).tolist()
    [[1, 2], [10, 20], [3, 4], [30, 40]]
    """
    found = [operand(matrix) for matrix in matrices]
    shapes = [matrix.shape for matrix in found]
    if not found or any(matrix.ndim != 2 for matrix in found) or len({s[-1] for s in shapes}) > 1:
        raise InvalidTensorError(
            f"khatri_rao of shapes {shapes}; it takes matrices with equally many columns"
        )
    return reduce(_column_wise, found)


def _column_wise(a: Operand, b: Operand) -> Operand:
    shape = check_shape((a.shape[0] * b.shape[0], a.shape[1]))
    if isinstance(a, Elements) or isinstance(b, Elements):
        cells = multiply(a, "ir", b, "jr", "ijr")
        return elements_at(cells.places, cells.values, shape)
    return (a[:, None] * b).reshape(shape)


def _paired(
    name: str, x: Elements, factors: Any, axis: int | Sequence[int] | None, rank: int, fit: int
) -> dict[int, Operand]:
    """Return for each axis what it is multiplied by, of which axis `fit` is as long."""
    if isinstance(axis, (int, np.integer)):
        factors = [factors]
    axes = axes_of(axis, x.ndim)
    factors = listed(name, factors)
    if len(factors) != len(axes):
        raise InvalidTensorError(
            f"{name} with {len(factors)} factors for {len(axes)} axes; one each"
        )
    found = {k: operand(factor) for k, factor in zip(axes, factors, strict=True)}
    for k, factor in found.items():
        if factor.ndim != rank or factor.shape[fit] != x.shape[k]:
            raise InvalidTensorError(
                f"{name} of axis {k}, of length {x.shape[k]}, by a factor of shape {factor.shape}; it has rank {rank}, "
                f"and its axis {fit} is as long"
            )
    return found
