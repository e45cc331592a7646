"""Diagonals and triangles of the matrices in two axes of a sparse tensor, as NumPy defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyTypeError, InvalidTensorError
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops.elements import Elements, canonical, elements_at
from tensorlake_spark.ops.numpy_arguments import axes_of, integer_of, refuse_out
from tensorlake_spark.ops.reducing import reductions
from tensorlake_spark.ops.shapes.shaping import arranged, broadcast_to

Array = np.ndarray[Any, Any]


def diagonal(x: Elements, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Elements:
    """Return the diagonals of the matrices in two axes, along a new last axis, as `numpy.diagonal`.

    Raises
    ------
    InvalidTensorError
        If the tensor has fewer than two axes. AxisError if there is no such axis, or both are the same.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 1]]), np.array([5, 7]), (3, 2))
    >>> diagonal(x, 1).values.tolist(), diagonal(x, -1).coords.tolist()
    ([5], [[1]])
    """
    if x.ndim < 2:
        raise InvalidTensorError(f"a diagonal needs two axes, this tensor has {x.ndim}")
    one, other = axes_of((axis1, axis2), x.ndim)
    offset = integer_of(offset, "offset")
    columns = x.coords[other] - offset if offset else x.coords[other]
    kept = np.flatnonzero(x.coords[one] == columns)
    rest = [k for k in range(x.ndim) if k not in (one, other)]
    low = max(0, -offset)
    length = max(0, min(x.shape[one] - low, x.shape[other] - max(0, offset)))
    rows = [x.coords[k][kept] for k in rest] + [x.coords[one][kept] - low]
    return arranged(rows, x.values[kept], (*(x.shape[k] for k in rest), length))


def diag(x: Elements, k: int = 0) -> Elements:
    """Return a diagonal of a matrix, or the matrix with a diagonal, as `numpy.diag`.

    Examples
    --------
    >>> diag(Elements._trusted(np.array([[1]]), np.array([5]), (2,))).coords.tolist()
    [[1], [1]]
    """
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise InvalidTensorError(f"diag is of one axis or two, not of {x.ndim}")
    coords = np.stack((x.coords[0] + max(0, -k), x.coords[0] + max(0, k)))
    return canonical(coords, x.values, check_shape((x.shape[0] + abs(k),) * 2))


def tril(m: Elements, k: int = 0) -> Elements:
    """Return the lower triangles of the matrices in the last two axes, up to diagonal `k`, as `numpy.tril`.

    Raises
    ------
    InvalidKeyTypeError
        For a tensor without axes. It is a TypeError.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 1], [1, 0]]), np.array([5, 7]), (2, 2))
    >>> tril(x).values.tolist(), triu(x).values.tolist()
    ([7], [5])
    """
    return _triangle(m, lambda apart: apart <= k)


def triu(m: Elements, k: int = 0) -> Elements:
    """Return the upper triangles, from diagonal `k` on, as `numpy.triu`. It raises as `tril`.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 1], [1, 0]]), np.array([5, 7]), (2, 2))
    >>> triu(x, 2).nnz
    0
    """
    return _triangle(m, lambda apart: apart >= k)


def trace(
    x: Elements,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: None = None,
) -> Any:
    """Return the sums of the diagonals of the matrices in two axes, as `numpy.trace`. It raises as `diagonal`.

    Examples
    --------
    >>> trace(Elements._trusted(np.array([[0, 1], [1, 1]]), np.array([5, 7]), (2, 2)))
    np.int64(7)
    """
    refuse_out(out)
    return reductions.sum(diagonal(x, offset, axis1, axis2), -1, dtype)


def _triangle(x: Elements, chosen: Callable[[Array], Array]) -> Elements:
    if not x.ndim:
        raise InvalidKeyTypeError("a triangle needs an axis, and this tensor has none")
    if x.ndim == 1:  # each row of a square matrix is it
        x = broadcast_to(x, x.shape * 2)
    kept = chosen(x.coords[-1] - x.coords[-2])
    return elements_at(x.places[kept], x.values[kept], x.shape)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.diag: diag,
    np.diagonal: diagonal,
    np.trace: trace,
    np.tril: tril,
    np.triu: triu,
}
"""Functions of NumPy, and what computes them."""
