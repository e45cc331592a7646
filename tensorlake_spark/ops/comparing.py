"""Tensors as a whole: their distinct values, whether two are equal, and what NumPy asks of any array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.errors import DenseResultError, UnsupportedFunctionError
from tensorlake_spark.indexing.coords import check_shape, unravel
from tensorlake_spark.ops.elements import Elements, without_zeros
from tensorlake_spark.ops.lookup import look_up
from tensorlake_spark.ops.numpy_arguments import axes_of
from tensorlake_spark.ops.shapes.joining import elements_of, union
from tensorlake_spark.ops.shapes.shaping import broadcast_to

Array = np.ndarray[Any, Any]


class Unique(NamedTuple):
    """Distinct values, as the array API names them, and how often each occurs."""

    values: Array
    counts: Array


def unique(
    x: Elements,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # noqa: A002
) -> Any:
    """Return the distinct values, ascending, as `numpy.unique`: zero is one where an element is not stored.

    Parameters
    ----------
    x : Elements
        The tensor.
    return_index, return_counts : bool
        Also return where in the flat tensor each occurs first, and how often.
    return_inverse : bool
        Not there: for each element of the tensor it has a number, mostly that of zero.
    axis : None
        Only values are compared, not slices.
    equal_nan : bool
        Whether NaN is one value.
    sorted : bool
        They always are.

    Returns
    -------
    ndarray, or a tuple of them
        The values, the indices and the counts.

    Raises
    ------
    DenseResultError
        For `return_inverse`.
    UnsupportedFunctionError
        For an `axis`.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2, 3]]), np.array([7, -5, 7]), (6,))
    >>> unique(x, return_counts=True)
    (array([-5,  0,  7]), array([1, 3, 2]))
    """
    if axis is not None:
        raise UnsupportedFunctionError(
            "unique slices of a sparse tensor are not there; axis is None"
        )
    if return_inverse:
        raise DenseResultError(
            f"the inverse has an index for each element, {8 * x.size} bytes; np.unique(x.todense(), "
            "return_inverse=True) returns it"
        )
    x = without_zeros(x)
    if not return_index and not return_counts:
        zero = np.zeros(int(x.nnz < x.size), x.dtype)
        return np.unique(
            np.concatenate((zero, np.unique(x.values, equal_nan=False))), equal_nan=equal_nan
        )
    values, index, counts = np.unique(
        x.values, return_index=True, return_counts=True, equal_nan=equal_nan
    )
    index = x.places[index]
    if x.nnz < x.size:
        zero = np.zeros(1, x.dtype)
        at = int(np.searchsorted(values, zero[0]))
        hole = np.searchsorted(x.places - np.arange(x.nnz), 0, side="right")
        values, index, counts = (
            np.insert(array, at, new)
            for array, new in ((values, zero[0]), (index, hole), (counts, x.size - x.nnz))
        )
    out = (values, *([index] if return_index else []), *([counts] if return_counts else []))
    return out if len(out) > 1 else values


def unique_counts(x: Elements) -> Unique:
    """Return the distinct values and how often each occurs, as `numpy.unique_counts`.

    Examples
    --------
    >>> unique_counts(Elements._trusted(np.array([[0]]), np.array([7]), (6,))).counts.tolist()
    [5, 1]
    """
    return Unique(*unique(x, return_counts=True, equal_nan=False))


def unique_values(x: Elements) -> Array:
    """Return the distinct values, as `numpy.unique_values`: every NaN is one.

    Examples
    --------
    >>> unique_values(Elements._trusted(np.array([[0]]), np.array([7]), (6,))).tolist()
    [0, 7]
    """
    values: Array = unique(x, equal_nan=False)
    return values


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Return whether two tensors, sparse or dense, have one shape and the same elements, as `numpy.array_equal`.

    Examples
    --------
    >>> array_equal(Elements._trusted(np.array([[0]]), np.array([7.0]), (2,)), [7, 0])
    True
    """
    one, other = elements_of(a1), elements_of(a2)
    if one.shape != other.shape or not np.array_equal(one.places, other.places):
        return False
    return bool(np.array_equal(one.values, other.values, equal_nan=equal_nan))


def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Return whether the elements of two tensors differ by little, as `numpy.allclose`; shapes broadcast.

    Examples
    --------
    >>> allclose(Elements._trusted(np.array([[0]]), np.array([7.0]), (2,)), [7 + 1e-9, 0])
    True
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    pair = [x if not np.ndim(x) else elements_of(x) for x in (a, b)]
    # A scalar is everywhere: beside what is stored, it is compared with zero once.
    places = union(*(broadcast_to(x, shape) for x in pair if isinstance(x, Elements)))
    coords = unravel(places, shape)
    stored = [np.broadcast_to(look_up(x, coords), places.shape) for x in pair]
    if len(places) < math.prod(shape):
        rest = [np.zeros(1, x.dtype) if isinstance(x, Elements) else np.reshape(x, 1) for x in pair]
        stored = [np.append(some, zero) for some, zero in zip(stored, rest, strict=True)]
    return bool(np.allclose(stored[0], stored[1], rtol=rtol, atol=atol, equal_nan=equal_nan))


def zeros_like(
    x: Elements,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Elements:
    """Return elements of zero, of the same shape and dtype if no others are given, as `numpy.zeros_like`.

    Examples
    --------
    >>> zeros_like(Elements._trusted(np.array([[0]]), np.array([7]), (2,))).nnz
    0
    """
    if shape is None:
        lengths = x.shape
    else:
        lengths = check_shape((shape,) if hasattr(shape, "__index__") else shape)
    values = np.zeros(0, x.dtype if dtype is None else dtype)
    return Elements._trusted(np.zeros((len(lengths), 0), np.int64), values, lengths)


def copy(a: Elements, order: str = "K", subok: bool = False) -> Elements:
    """Return the elements themselves, for nobody can change them; `numpy.copy` without explicit zeros.

    Examples
    --------
    >>> copy(Elements._trusted(np.array([[0]]), np.array([7]), (2,))).nnz
    1
    """
    return without_zeros(a)


def _size(a: Elements, axis: Any = None) -> int:
    return math.prod(a.shape[k] for k in axes_of(axis, a.ndim))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that asks for dtypes only, of empty arrays in place of sparse ones."""

    def asked(*arrays: Any) -> Any:
        return function(*(np.empty(0, a.dtype) if isinstance(a, Elements) else a for a in arrays))

    return asked


def _memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether two tensors share buffers of values."""
    a, b = (x.values if isinstance(x, Elements) else x for x in (a, b))
    return bool(np.may_share_memory(a, b))


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.unique: unique,
    np.unique_counts: unique_counts,
    np.unique_values: unique_values,
    np.array_equal: array_equal,
    np.allclose: allclose,
    np.zeros_like: zeros_like,
    np.empty_like: zeros_like,
    np.copy: copy,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: _size,
    np.result_type: _plain(np.result_type),
    np.common_type: _plain(np.common_type),
    np.iscomplexobj: _plain(np.iscomplexobj),
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.may_share_memory: _memory,
    np.shares_memory: _memory,
}
"""Functions of NumPy, and what computes them."""
