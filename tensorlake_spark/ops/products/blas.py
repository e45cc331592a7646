"""BLAS of sparse vectors and matrices, with the names, the order of arguments and the options of `scipy.linalg.blas`.

Names have no letter for the dtype: it is NumPy's of the operands. Tensors cannot be changed, so what BLAS overwrites
is returned. Options are 0 or 1 as in SciPy (``trans`` also 2, the conjugate transpose); booleans do as well. A result
is sparse if all operands are, and dense otherwise. ``spmv`` and ``spmm`` are what sparse libraries call so: sparse
times dense, not the symmetric packed matrices of BLAS. Begin with `gemv`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.ops.elements import Elements, in_class_of_operands
from tensorlake_spark.ops.elementwise import apply
from tensorlake_spark.ops.products.contraction import Operand, elements_of, operand, transposed
from tensorlake_spark.ops.products.numpy_products import conjugate, matmul, scaled
from tensorlake_spark.ops.products.numpy_products import tensordot as _tensordot
from tensorlake_spark.ops.products.triangular_equations import solve

Array = np.ndarray[Any, Any]


# ------------------------------------------------------------------------------ level 1


def dot(x: Any, y: Any) -> Any:
    """Return the sum of products of two tensors of one shape, nothing conjugated.

    Examples
    --------
    >>> dot(elements_of(np.array([0, 2j])), np.array([5, 7]))
    np.complex128(14j)
    """
    x, y = _alike("dot", x, y)
    return _tensordot(x, y, x.ndim)


def nrm2(x: Any) -> Any:
    """Return the Euclidean norm, of more axes that of Frobenius. It does not overflow where the result does not.

    Examples
    --------
    >>> round(nrm2(elements_of(np.array([[3e200], [4e200]]))) / 1e200, 6)
    np.float64(5.0)
    """
    values = np.abs(elements_of(operand(x)).values)
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    most = values.max(initial=0)
    if not most or not np.isfinite(most):
        return most
    _, exponent = np.frexp(most)
    values = np.ldexp(values, -exponent)
    return np.ldexp(np.sqrt(np.dot(values, values)), exponent)


def asum(x: Any) -> Any:
    """Return the sum of magnitudes; of a complex number that is ``abs(real) + abs(imag)``, as in BLAS.

    Examples
    --------
    >>> asum(elements_of(np.array([-3.0, 0.0, 4.0])))
    np.float64(7.0)
    """
    return _magnitudes(operand(x)).sum()


def _magnitudes(x: Operand) -> Array:
    values = elements_of(x).values
    if values.dtype.kind == "c":
        return np.asarray(np.abs(values.real) + np.abs(values.imag))
    return np.abs(values)


def iamax(x: Any) -> int:
    """Return the place in C order of the first element of the largest magnitude, from 0 on; NaN counts as largest.

    Raises
    ------
    InvalidTensorError
        If there are no elements.

    Examples
    --------
    >>> iamax(elements_of(np.array([1, 0, -4, 4])))
    2
    """
    found = elements_of(operand(x))
    if not found.size:
        raise InvalidTensorError("iamax of a tensor without elements")
    sizes = _magnitudes(found)
    if not sizes.any():
        return 0
    return int(found.places[np.argmax(sizes)])


@in_class_of_operands
def axpy(x: Any, y: Any, a: Any = 1) -> Any:
    """Return ``a * x + y``.

    Raises
    ------
    DenseResultError
        If `a` is infinite or NaN, and `x` is sparse.
    InvalidTensorError
        If the shapes differ.

    Examples
    --------
    >>> axpy(elements_of(np.array([0, 2])), elements_of(np.array([5, 7])), 10).values.tolist()
    [5, 27]
    """
    x, y = _alike("axpy", x, y)
    return _plus(scal(a, x), y)


def _plus(x: Operand, y: Operand) -> Operand:
    """Return the sum of two tensors of one shape."""
    if not isinstance(x, Elements) and not isinstance(y, Elements):
        return np.asarray(x + y)
    found: Operand = apply(np.add, x, y)
    return found


@in_class_of_operands
def scal(a: Any, x: Any) -> Any:
    """Return ``a * x``.

    Raises
    ------
    DenseResultError
        If `a` is infinite or NaN, and `x` is sparse.

    Examples
    --------
    >>> scal(3, elements_of(np.array([0, 2]))).values.tolist()
    [6]
    """
    x = operand(x)
    return scaled(x, a) if isinstance(x, Elements) else x * a


def swap(x: Any, y: Any) -> tuple[Any, Any]:
    """Return ``y, x``: tensors cannot be changed, so nothing is swapped in place.

    Raises
    ------
    InvalidTensorError
        If the shapes differ.

    Examples
    --------
    >>> swap([1, 2], [3, 4])
    (array([3, 4]), array([1, 2]))
    """
    x, y = _alike("swap", x, y)
    return y, x


@in_class_of_operands
def rot(x: Any, y: Any, c: Any, s: Any) -> tuple[Any, Any]:
    """Return ``c * x + s * y`` and ``c * y - s * x``, new tensors: a plane turned.

    Raises
    ------
    InvalidTensorError
        If the shapes differ.

    Examples
    --------
    >>> rot(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0.0, 1.0)
    (array([3., 4.]), array([-1., -2.]))
    """
    x, y = _alike("rot", x, y)
    return _plus(scal(c, x), scal(s, y)), _plus(scal(c, y), scal(-s, x))


def _alike(name: str, x: Any, y: Any) -> tuple[Operand, Operand]:
    """Return two operands of one shape."""
    x, y = operand(x), operand(y)
    if x.shape != y.shape:
        raise InvalidTensorError(f"{name} of shapes {x.shape} and {y.shape}; they must be equal")
    return x, y


# ------------------------------------------------------------------------------ levels 2 and 3


@in_class_of_operands
def gemv(alpha: Any, a: Any, x: Any, beta: Any = 0, y: Any = None, trans: int = 0) -> Any:
    """Return ``alpha * op(a) @ x + beta * y``.

    Parameters
    ----------
    alpha, beta : scalar
        Factors.
    a : Elements or array_like, shape (m, n)
        The matrix.
    x : Elements or array_like, shape (n,), with `trans` (m,)
        The vector.
    y : Elements or array_like, optional
        What is added; without it nothing is.
    trans : {0, 1, 2}
        ``op(a)`` is `a`, its transpose, or its conjugate transpose.

    Returns
    -------
    Elements or ndarray
        Sparse if all operands are.

    Raises
    ------
    InvalidTensorError
        For ranks and lengths that do not fit.
    InvalidOptionError
        If `trans` is none of the three.

    Examples
    --------
    >>> a = elements_of(np.array([[0, 2], [3, 0]]))
    >>> gemv(1, a, [1, 10]).tolist(), gemv(2, a, [1, 10], 1, [5, 5], trans=1).tolist()
    ([20, 3], [65, 9])
    """
    return _added(alpha, matmul(_turned("gemv", a, trans), _of_rank("gemv", x, 1)), beta, y)


@in_class_of_operands
def spmv(a: Any, x: Any) -> Any:
    """Return ``a @ x`` of a matrix and a vector.

    Examples
    --------
    >>> spmv(elements_of(np.array([[0, 2], [3, 0]])), [1, 10]).tolist()
    [20, 3]
    """
    return gemv(1, a, x)


@in_class_of_operands
def gemm(
    alpha: Any, a: Any, b: Any, beta: Any = 0, c: Any = None, trans_a: int = 0, trans_b: int = 0
) -> Any:
    """Return ``alpha * op(a) @ op(b) + beta * c``.

    Parameters
    ----------
    alpha, beta : scalar
        Factors.
    a, b : Elements or array_like
        Matrices.
    c : Elements or array_like, optional
        What is added; without it nothing is.
    trans_a, trans_b : {0, 1, 2}
        ``op`` is nothing, the transpose, or the conjugate transpose.

    Returns
    -------
    Elements or ndarray
        Sparse if all operands are.

    Raises
    ------
    InvalidTensorError
        For ranks and lengths that do not fit.
    InvalidOptionError
        If `trans_a` or `trans_b` is none of the three.

    Examples
    --------
    >>> a = elements_of(np.array([[0, 2], [3, 0]]))
    >>> gemm(1, a, a, trans_b=1).values.tolist()
    [4, 9]
    """
    product = matmul(_turned("gemm", a, trans_a), _turned("gemm", b, trans_b))
    return _added(alpha, product, beta, c)


@in_class_of_operands
def spmm(a: Any, b: Any) -> Any:
    """Return ``a @ b`` of two matrices: of a sparse and a dense one dense, of two sparse ones sparse.

    Examples
    --------
    >>> spmm(elements_of(np.array([[0, 2], [3, 0]])), np.eye(2)).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    return gemm(1, a, b)


def _of_rank(name: str, x: Any, rank: int) -> Operand:
    found = operand(x)
    if found.ndim != rank:
        raise InvalidTensorError(
            f"{name} of an operand of shape {found.shape}; it takes rank {rank}"
        )
    return found


def _turned(name: str, a: Any, trans: int) -> Operand:
    """Return a matrix, its transpose or its conjugate transpose, which is kept."""
    matrix: Any = _of_rank(name, a, 2)
    if trans not in (0, 1, 2):
        raise InvalidOptionError(f"{name} with trans={trans!r}; it is 0, 1 or 2")
    if not trans:
        return matrix  # type: ignore[no-any-return]
    if not isinstance(matrix, Elements):
        return np.asarray(matrix.T if trans == 1 else matrix.T.conj())
    key = "turned", int(trans)
    if key not in matrix._cached:
        found = transposed(matrix, (1, 0))
        matrix._cached[key] = found if trans == 1 else conjugate(found)
    turned: Elements = matrix._cached[key]
    return turned


def _added(alpha: Any, product: Operand, beta: Any, y: Any) -> Operand:
    """Return ``alpha * product + beta * y``; a factor of one or nothing costs nothing."""
    found = product if isinstance(alpha, int) and alpha == 1 else scal(alpha, product)
    if y is None:
        return found
    return _plus(found, scal(beta, _alike("beta * y", product, y)[1]))


# ------------------------------------------------------------------------------ triangles


def trsv(a: Any, x: Any, lower: int = 0, trans: int = 0, diag: int = 0) -> Array:
    """Return the solution of ``op(a) @ solution = x`` for a triangle of a sparse matrix.

    Parameters
    ----------
    a : Elements, shape (n, n)
        Only the triangle is looked at.
    x : Elements or array_like, shape (n,)
        The right side.
    lower : {0, 1}
        Which triangle: the upper or the lower one.
    trans : {0, 1, 2}
        ``op(a)`` is the triangle, its transpose, or its conjugate transpose.
    diag : {0, 1}
        Whether the diagonal counts as ones.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    SingularMatrixError
        A `numpy.linalg.LinAlgError`, if the diagonal has a zero.
    InvalidTensorError
        If the matrix is not square, or lengths do not fit.

    Examples
    --------
    >>> trsv(elements_of(np.array([[2.0, 4.0], [9.0, 1.0]])), [8.0, 1.0])
    array([2., 1.])
    """
    return solve(a, _of_rank("trsv", x, 1), lower, trans, diag)


def trsm(
    alpha: Any, a: Any, b: Any, side: int = 0, lower: int = 0, trans_a: int = 0, diag: int = 0
) -> Array:
    """Return the solution of ``op(a) @ solution = alpha * b``, or with `side` of ``solution @ op(a) = alpha * b``.

    Parameters
    ----------
    alpha : scalar
        A factor.
    a : Elements, shape (n, n)
        Only the triangle is looked at.
    b : Elements or array_like, shape (n, m), with `side` (m, n)
        The right sides.
    side : {0, 1}
        Whether `a` stands on the left or on the right.
    lower, trans_a, diag
        As for `trsv`.

    Returns
    -------
    ndarray, of the shape of `b`

    Raises
    ------
    SingularMatrixError
        A `numpy.linalg.LinAlgError`, if the diagonal has a zero.
    InvalidTensorError
        If the matrix is not square, or lengths do not fit.

    Examples
    --------
    >>> trsm(1, elements_of(np.array([[2.0, 4.0], [9.0, 1.0]])), [[8.0], [1.0]]).tolist()
    [[2.0], [1.0]]
    """
    right: Any = scal(alpha, _of_rank("trsm", b, 2))
    if not side:
        return solve(a, right, lower, trans_a, diag)
    # The transpose of both sides; a conjugate transpose leaves the conjugate.
    right = transposed(right, (1, 0)) if isinstance(right, Elements) else right.T
    if trans_a == 2:
        return np.asarray(solve(a, conjugate(right), lower, 0, diag).conj().T)
    return np.asarray(solve(a, right, lower, 1 - trans_a, diag).T)
