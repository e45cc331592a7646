"""Products of tensors: dot, matmul, tensordot, vdot, inner, outer and kron, as NumPy has them.

A product of two sparse tensors is sparse. Where a dense one takes part and something is summed, the result is a dense
array, as in SciPy. Where nothing is summed it is sparse. An element that is not stored counts as zero also beside an
infinite one, where NumPy would give NaN; SciPy does the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import DenseResultError, InvalidKeyTypeError, InvalidTensorError
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops.elements import Elements, canonical, nonzero
from tensorlake_spark.ops.numpy_arguments import axes_of, dtype_of_product, refused_dtypes
from tensorlake_spark.ops.products.contraction import (
    Operand,
    elements_of,
    multiply,
    operand,
    same_lengths,
)
from tensorlake_spark.ops.products.product_labels import check_summed, inner_labels, matmul_labels

Array = np.ndarray[Any, Any]

_AT_ONCE = 1 << 16  # elements that are computed together


def scalar_of(result: Any) -> Any:
    """Return a result without axes as a scalar, all else as it is.

    Examples
    --------
    >>> scalar_of(elements_of(np.array(3)))
    np.int64(3)
    """
    if result.ndim:
        return result
    if isinstance(result, Elements):
        return result.values[0] if result.nnz else np.zeros((), result.dtype)[()]
    return result[()]


def scaled(x: Elements, by: Any) -> Elements:
    """Return a tensor times a number.

    Raises
    ------
    DenseResultError
        If the number is infinite or not one: times zero it is NaN. UnsupportedDtypeError if it is no number.

    Examples
    --------
    >>> scaled(elements_of(np.array([0, 2])), 3).values.tolist()
    [6]
    """
    with refused_dtypes(np.multiply, [x, by]):
        is_finite = np.all(np.isfinite(by))
    if not is_finite and x.nnz < x.size:
        dtype = np.result_type(x.dtype, by)
        raise DenseResultError(
            f"a sparse tensor times {by} has NaN for every zero: {x.size * dtype.itemsize} bytes; todense() first"
        )
    return canonical(x.coords, x.values * by, x.shape)


def matmul(a: Any, b: Any) -> Any:
    """Return the matrix product ``a @ b``; axes before the last two are stacks of matrices, which broadcast.

    Parameters
    ----------
    a, b : Elements or array_like
        Of rank 1 at least. A vector stands for one row on the left, for one column on the right.

    Returns
    -------
    Elements, ndarray or scalar
        Sparse if both are; a scalar for two vectors.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's: for scalars, and lengths that do not fit.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> matmul(x, x).values.tolist(), matmul(x, [1, 1]).tolist()
    ([6, 6], [2, 3])
    """
    a, b = operand(a), operand(b)
    *labels, out = matmul_labels(a.shape, b.shape)
    (a, b), (of_a, of_b), _ = same_lengths((a, b), labels)
    return scalar_of(multiply(a, of_a, b, of_b, out))


def dot(a: Any, b: Any) -> Any:
    """Return the dot product: the last axis of `a` with the last but one of `b`, or with its only one.

    Parameters
    ----------
    a, b : Elements or array_like
        A scalar multiplies.

    Returns
    -------
    Elements, ndarray or scalar
        Of shape ``a.shape[:-1] + b.shape[:-2] + b.shape[-1:]``.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's, if the lengths of the two axes differ.

    Examples
    --------
    >>> dot(elements_of(np.array([0, 2])), elements_of(np.array([5, 7])))
    np.int64(14)
    """
    by_number = _by_number(a, b)
    if by_number is not None:
        return by_number
    a, b = operand(a), operand(b)
    axis = max(0, b.ndim - 2)
    check_summed("dot", a.shape, -1, b.shape, axis)
    return _contracted(a, [a.ndim - 1], b, [axis])


def inner(a: Any, b: Any) -> Any:
    """Return the inner product: a sum over the last axis of both.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's, if the last axes differ in length.

    Examples
    --------
    >>> inner(elements_of(np.eye(2)), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    by_number = _by_number(a, b)
    if by_number is not None:
        return by_number
    a, b = operand(a), operand(b)
    of_a, of_b, out = inner_labels(a.shape, b.shape)
    return scalar_of(multiply(a, of_a, b, of_b, out))


def _by_number(a: Any, b: Any) -> Any:
    """Return the product with a number or a tensor without axes; None if neither is one."""
    for x, by in ((a, b), (b, a)):
        if (by.ndim if isinstance(by, Elements) else np.ndim(by)) == 0:
            by = scalar_of(by) if isinstance(by, Elements) else by
            with refused_dtypes(np.multiply, [x, by]):
                return (
                    np.multiply(x, by) if not isinstance(x, Elements) else scalar_of(scaled(x, by))
                )
    return None


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the sum of products over axes of both.

    Parameters
    ----------
    a, b : Elements or array_like
        The operands.
    axes : int or pair of int or sequences of int
        So many last axes of `a` and first ones of `b`; or those of `a` and those of `b`, in the order in which
        they belong together.

    Returns
    -------
    Elements, ndarray or scalar
        The other axes of `a`, then those of `b`.

    Raises
    ------
    AxisError
        If there is no such axis. InvalidKeyTypeError if the number of axes, or one of them, is not an integer.
    InvalidTensorError
        A ValueError: for axes that differ in length or number, or are given twice.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> tensordot(x, x, ([0], [1])).values.tolist()
    [6, 6]
    """
    a, b = operand(a), operand(b)
    of_a, of_b = paired_axes(axes, a.ndim, b.ndim)
    for k, m in zip(of_a, of_b, strict=True):
        check_summed("tensordot", a.shape, k, b.shape, m)
    return _contracted(a, of_a, b, of_b)


def paired_axes(axes: Any, ndim: int, other: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes that `tensordot` sums over: those of a tensor, and those of another one.

    Raises
    ------
    AxisError
        If there is no such axis. InvalidKeyTypeError if the number of axes, or one of them, is not an integer.
    InvalidTensorError
        A ValueError: for axes that differ in number, or are not of two operands.

    Examples
    --------
    >>> paired_axes(1, 3, 2), paired_axes(([0, 1], [1, 0]), 3, 2)
    (((2,), (0,)), ((0, 1), (1, 0)))
    """
    wanted = "axes of tensordot are a number of axes, or two sequences of them"
    try:
        count = operator.index(axes)
    except TypeError:
        try:
            first, second = axes
        except TypeError:
            raise InvalidKeyTypeError(f"{wanted}, not {axes!r}") from None
        except ValueError:
            raise InvalidTensorError(f"{wanted}, not {axes!r}") from None
    else:
        first, second = range(-count, 0), range(count)
    mine, theirs = axes_of(first, ndim), axes_of(second, other)
    if len(mine) != len(theirs):
        raise InvalidTensorError(
            f"tensordot over {len(mine)} axes of the first operand and {len(theirs)} of the second; "
            "name as many of both"
        )
    return mine, theirs


def _contracted(a: Operand, axes_a: Sequence[int], b: Operand, axes_b: Sequence[int]) -> Any:
    """Return the product summed over pairs of axes; the others follow each other."""
    of_a, of_b = list(range(a.ndim)), [a.ndim + k for k in range(b.ndim)]
    for k, m in zip(axes_a, axes_b, strict=True):
        of_b[m] = of_a[k]
    out = [n for n in (*of_a, *of_b) if not (n in of_a and n in of_b)]
    return scalar_of(multiply(a, of_a, b, of_b, out))


def vdot(a: Any, b: Any) -> Any:
    """Return the dot product of two tensors as vectors in C order, the first one conjugated.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's, if they differ in size.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2j], [3, 0]]))
    >>> vdot(x, x)
    np.complex128(13+0j)
    """
    a, b = operand(a), operand(b)
    if a.size != b.size:
        raise InvalidTensorError(
            f"vdot of shapes {a.shape} and {b.shape}: {a.size} elements and {b.size}"
        )
    return _contracted(_flat(conjugate(a)), [0], _flat(b), [0])


def conjugate(x: Operand) -> Operand:
    if x.dtype.kind != "c":
        return x
    if isinstance(x, Elements):
        return Elements._trusted(x.coords, x.values.conj(), x.shape, x._places)
    return np.asarray(x.conj())


def _flat(x: Operand) -> Operand:
    """Return a tensor as a vector in C order."""
    if not isinstance(x, Elements):
        return x.reshape(-1)
    return Elements._trusted(x.places[None], x.values, (x.size,), x.places)


def outer(a: Any, b: Any) -> Elements:
    """Return the product of every element of one with every element of the other, both as vectors in C order.

    Returns
    -------
    Elements
        Of shape (elements of `a`, elements of `b`); sparse also if one of them is dense.

    Raises
    ------
    InvalidTensorError
        If it has 2**63 elements or more.

    Examples
    --------
    >>> outer(elements_of(np.array([0, 2])), [5, 7]).coords.tolist()
    [[1, 1], [0, 1]]
    """
    x, y = elements_of(_flat(operand(a))), elements_of(_flat(operand(b)))
    shape = check_shape((x.size, y.size))
    coords = np.empty((2, x.nnz, y.nnz), np.int64)
    coords[0], coords[1] = x.coords[0][:, None], y.coords[0]
    values = np.multiply.outer(x.values, y.values).reshape(-1)
    return canonical(coords.reshape(2, -1), values, shape)


def kron(a: Any, b: Any) -> Elements:
    """Return the Kronecker product: every element of `a` times all of `b`.

    Parameters
    ----------
    a, b : Elements or array_like
        The one with fewer axes gets axes of length 1 in front.

    Returns
    -------
    Elements
        Sparse also if one of them is dense. The lengths of each axis are multiplied.

    Raises
    ------
    InvalidTensorError
        If it has 2**63 elements or more.

    Examples
    --------
    >>> kron(elements_of(np.eye(2, dtype=int)), [[5, 7]]).coords.tolist()
    [[0, 0, 1, 1], [0, 1, 2, 3]]
    """
    x, y = elements_of(operand(a)), elements_of(operand(b))
    rank = max(x.ndim, y.ndim)
    long_x, long_y = ((1,) * (rank - z.ndim) + z.shape for z in (x, y))
    shape = check_shape([n * m for n, m in zip(long_x, long_y, strict=True)])
    if x.ndim == y.ndim == 2 and shape[0] <= x.nnz * y.nnz:
        return _kron_of_matrices(x, y, (shape[0], shape[1]))
    grid = np.zeros((rank, x.nnz, y.nnz), np.int64)
    for axis, row in zip(grid[rank - x.ndim :], x.coords, strict=True):
        axis += row[:, None]
    grid *= np.array(long_y, np.int64)[:, None, None]
    for axis, row in zip(grid[rank - y.ndim :], y.coords, strict=True):
        axis += row
    values = np.multiply.outer(x.values, y.values).reshape(-1)
    coords = grid.reshape(rank, len(values))
    return canonical(coords, values, shape)


def _kron_of_matrices(x: Elements, y: Elements, shape: tuple[int, int]) -> Elements:
    """Return the Kronecker product of matrices: where each element goes is counted, and nothing is sorted."""
    ends_x, ends_y = (
        np.append(0, np.cumsum(np.bincount(z.coords[0], minlength=z.shape[0]))) for z in (x, y)
    )
    row, col = x.coords
    # A row of the result has, for each element of a row of x, all of a row of y.
    first = ends_x[row]
    within = np.arange(x.nnz) - first
    counts = ends_x[row + 1] - first
    first *= y.nnz
    columns = col * y.shape[1]
    coords = np.empty((2, x.nnz * y.nnz), np.int64)
    values = np.empty(coords.shape[1], dtype_of_product(x.dtype, y.dtype))
    begin = ends_y[y.coords[0]]
    length = ends_y[y.coords[0] + 1] - begin
    ahead = np.arange(y.nnz) - begin
    step = max(1, _AT_ONCE // max(1, x.nnz))
    for k in range(0, y.nnz, step):
        some = slice(k, k + step), None
        number = within * length[some]
        number += first
        number += counts * begin[some]
        number += ahead[some]
        coords[1, number] = columns + y.coords[1][some]
        values[number] = x.values * y.values[some]
    in_row = np.multiply.outer(np.diff(ends_x), np.diff(ends_y)).reshape(-1)
    coords[0] = np.repeat(np.arange(shape[0]), in_row)
    kept = nonzero(values)
    if not kept.all():
        coords, values = coords[:, kept], values[kept]
    return Elements._trusted(coords, values, shape)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.dot: dot,
    np.vdot: vdot,
    np.inner: inner,
    np.outer: outer,
    np.kron: kron,
    np.matmul: matmul,
    np.tensordot: tensordot,
}
"""What computes NumPy's functions."""
