"""Triangles of a sparse matrix, and equations that they solve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import dtype_of_product
from tensorlake_spark.ops.products.contraction import (
    Operand,
    dense_of,
    elements_of,
    loops_for,
    operand,
    to_csr,
    transposed,
)

Array = np.ndarray[Any, Any]


class SingularMatrixError(InvalidTensorError, np.linalg.LinAlgError):
    """A triangle has a zero on its diagonal, so that it solves nothing."""


class Triangle(NamedTuple):
    """A triangle of a matrix, ready to solve.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array
        The triangle without its diagonal.
    diagonal : ndarray, shape (n,)
        Its diagonal.
    lower : bool
        Which triangle it is.
    whole : dict
        The triangle with its diagonal, and with ones for it, once SciPy needed them.
    """

    matrix: Any
    diagonal: Array
    lower: bool
    whole: dict[bool, Any]


def solve(a: Any, right: Operand, lower: int = 0, trans: int = 0, diag: int = 0) -> Array:
    """Return the solution of ``op(a) @ solution = right`` for a triangle of a matrix.

    Parameters
    ----------
    a : Elements or array_like, shape (n, n)
        Only the triangle is looked at.
    right : Elements or ndarray, shape (n,) or (n, m)
        The right side, or several.
    lower : {0, 1}
        Which triangle of `a`: the upper or the lower one.
    trans : {0, 1, 2}
        ``op(a)`` is the triangle, its transpose, or its conjugate transpose.
    diag : {0, 1}
        Whether the diagonal counts as ones.

    Returns
    -------
    ndarray, of the shape of `right`

    Raises
    ------
    SingularMatrixError
        If the diagonal has a zero.
    InvalidTensorError
        If the matrix is not square, or lengths do not fit.
    InvalidOptionError
        If an option is none of those.

    Examples
    --------
    >>> solve([[2.0, 4.0], [9.0, 1.0]], np.array([8.0, 1.0]))
    array([2., 1.])
    """
    for name, given, known in (("lower", lower, 2), ("trans", trans, 3), ("diag", diag, 2)):
        if given not in range(known):
            raise InvalidOptionError(
                f"{name}={given!r}; it is one of {', '.join(map(str, range(known)))}"
            )
    x = elements_of(operand(a))
    if x.ndim != 2 or x.shape[0] != x.shape[1] or right.shape[:1] != x.shape[:1]:
        raise InvalidTensorError(
            f"a matrix of shape {x.shape} for right sides of shape {right.shape}; it must be square, and as long"
        )
    dtype = dtype_of_product(x.dtype, right.dtype)
    if dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    worked = dtype if dtype.char in "fdFD" else np.result_type(dtype, np.float32)
    dense = np.array(dense_of(right), worked, order="C")
    triangle = _triangle(x, bool(lower), int(trans), worked)
    if not diag:
        _check_diagonal(triangle.diagonal)
    return _solved(triangle, dense, bool(diag)).astype(dtype, copy=False)


def _triangle(x: Elements, lower: bool, trans: int, dtype: np.dtype[Any]) -> Triangle:
    """Return a triangle, which is kept."""
    key = "triangle", lower, trans, dtype
    if key not in x._cached:
        row, col = x.coords
        inside = row > col if lower else row < col
        values = x.values.astype(dtype, copy=False)
        part = Elements._trusted(x.coords[:, inside], values[inside], x.shape)
        diagonal = np.zeros(x.shape[0], dtype)
        diagonal[row[row == col]] = values[row == col]
        if trans:
            part = transposed(part, (1, 0))
        matrix = to_csr(part)
        if trans == 2:
            matrix, diagonal = matrix.conj(), diagonal.conj()
        x._cached[key] = Triangle(matrix, diagonal, lower != bool(trans), {})
    found: Triangle = x._cached[key]
    return found


def _check_diagonal(diagonal: Array) -> None:
    """Raise SingularMatrixError for a zero."""
    zero = np.flatnonzero(diagonal == 0)
    if len(zero):
        raise SingularMatrixError(
            f"the triangle is singular: {len(zero)} zeros on its diagonal, the first in row {zero[0]}; "
            "diag=1 takes the diagonal for ones"
        )


def _solved(triangle: Triangle, right: Array, unit: bool) -> Array:
    """Return the solution; `right` may be written to."""
    matrix, lower = triangle.matrix, triangle.lower
    diagonal = np.ones_like(triangle.diagonal) if unit else triangle.diagonal
    loops = loops_for("triangle", right.dtype, matrix.data.nbytes)
    if loops is not None:
        loops.solve(matrix.indptr, matrix.indices, matrix.data, diagonal, right, lower)
        return right
    from scipy import sparse
    from scipy.sparse.linalg import spsolve_triangular

    if unit not in triangle.whole:
        triangle.whole[unit] = (matrix + sparse.diags_array(diagonal)).tocsr()
    return np.asarray(spsolve_triangular(triangle.whole[unit], right, lower=lower))
