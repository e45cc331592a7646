"""Sums, products, extremes and counts over axes of a sparse tensor, as NumPy defines them of the dense array.

What is not stored counts as zero. Without axes left the result is a scalar of NumPy, else canonical `Elements`,
whatever the values are. Where nothing of a cell is reduced and that gives no zero (a product of nothing is 1), all
cells of the result are stored. `where`, an array or elements of bools, broadcasts to the tensor.
"""
# ruff: noqa: A001  # NumPy's names

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.ops.elements import Elements, without_zeros
from tensorlake_spark.ops.numpy_arguments import NO_INITIAL, refuse_out, refused_dtypes
from tensorlake_spark.ops.reducing.groups import Groups, sum_of_many

Array = np.ndarray[Any, Any]


def sum(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the sum over axes, as `numpy.sum`. Short integers are summed in 64 bits, and these wrap around.

    Raises
    ------
    AxisError
        If there is no such axis, or one is given twice.
    InvalidTensorError
        If `where` does not broadcast to the tensor. UnsupportedDtypeError if it is not of bools.
    UnsupportedFunctionError
        For an `out`.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> sum(x), sum(x, axis=0).values.tolist()
    (np.int64(12), [7, 5])
    """
    refuse_out(out)
    if axis is None and dtype is None and initial is None and where is True and not keepdims:
        found = sum_of_many(x.values)
        if found is not None:
            return found
    groups = Groups(x, axis, keepdims, where, counted=False)
    with refused_dtypes(np.sum, [x], dtype, NO_INITIAL):
        empty = np.sum(np.zeros(1, x.dtype), dtype=dtype, **_given(initial))
    found = total(groups, groups.values, empty.dtype)
    return groups.result(np.add(found, empty, out=found), empty)


def nansum(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the sum of what is not NaN, as `numpy.nansum`.

    Examples
    --------
    >>> nansum(Elements._trusted(np.array([[0, 2]]), np.array([np.nan, 7]), (3,)))
    np.float64(7.0)
    """
    return sum(_without_nan(x, 0), axis, dtype, out, keepdims, initial, where)


def prod(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product over axes, as `numpy.prod`: 0 where an element is not stored, 1 of nothing.

    Raises
    ------
    AxisError, InvalidTensorError, UnsupportedDtypeError, UnsupportedFunctionError
        As `sum` does.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 0], [0, 1]]), np.array([5, 7]), (3, 2))
    >>> prod(x, axis=1).coords.tolist(), prod(x, axis=1).values.tolist()
    ([[0]], [35])
    """
    refuse_out(out)
    groups = Groups(x, axis, keepdims, where)
    empty = _of_nothing(np.prod, groups, dtype=dtype, **_given(initial))
    with np.errstate(all="ignore"):
        cast = values = groups.values.astype(empty.dtype, copy=False)
        if empty.dtype.kind == "c":
            # NumPy begins with 1, and a complex 1 times infinity has a part that is NaN.
            values = values * empty.dtype.type(1)
        found = groups.reduce(np.multiply, values, empty.dtype)
        zero = np.zeros((), empty.dtype)
        if empty.dtype.kind not in "biu":  # bfloat16 and its like are of no kind of NumPy's
            # A factor of zero is met by an infinite one, not by a product that is too large.
            wild = groups.reduce(np.add, ~np.isfinite(cast), np.int64)
            zero = np.where(wild, np.array(np.nan, empty.dtype), zero)
        found = np.where(groups.counts < groups.length, zero, found)
        if initial is not None:
            found = found * np.asarray(initial).astype(empty.dtype)
    return _finished(groups, found, empty)


def nanprod(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product of what is not NaN, as `numpy.nanprod`.

    Examples
    --------
    >>> nanprod(Elements._trusted(np.array([[0, 1]]), np.array([np.nan, 7]), (2,)))
    np.float64(7.0)
    """
    return prod(_without_nan(x, 1), axis, dtype, out, keepdims, initial, where)


def min(
    x: Elements,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the smallest element over axes, as `numpy.min`; NaN if there is one.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's, for no elements, or for a `where`, without an `initial`. AxisError,
        UnsupportedDtypeError and UnsupportedFunctionError as from `sum`.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 1], [1, 1]]), np.array([5, 7]), (2, 2))
    >>> min(x), min(x, axis=0).coords.tolist(), min(x, axis=0).values.tolist()
    (np.int64(0), [[1]], [5])
    """
    return _extreme(np.min, np.minimum, x, axis, out, keepdims, initial, where)


def max(
    x: Elements,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the largest element over axes, as `numpy.max`; NaN if there is one. It raises as `min`.

    Examples
    --------
    >>> max(Elements._trusted(np.array([[1]]), np.array([-5]), (2,)))
    np.int64(0)
    """
    return _extreme(np.max, np.maximum, x, axis, out, keepdims, initial, where)


def nanmin(
    x: Elements,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the smallest element that is not NaN, as `numpy.nanmin`. It raises as `min`.

    Examples
    --------
    >>> nanmin(Elements._trusted(np.array([[0, 1]]), np.array([np.nan, 7]), (2,)))
    np.float64(7.0)
    """
    return _extreme(np.nanmin, np.fmin, x, axis, out, keepdims, initial, where)


def nanmax(
    x: Elements,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the largest element that is not NaN, as `numpy.nanmax`. It raises as `min`.

    Examples
    --------
    >>> nanmax(Elements._trusted(np.array([[0, 1]]), np.array([np.nan, -7]), (2,)))
    np.float64(-7.0)
    """
    return _extreme(np.nanmax, np.fmax, x, axis, out, keepdims, initial, where)


def ptp(x: Elements, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Return how far the largest element is from the smallest, as `numpy.ptp`. It raises as `min`.

    Examples
    --------
    >>> ptp(Elements._trusted(np.array([[0, 1]]), np.array([5, -7]), (2,)))
    np.int64(12)
    """
    refuse_out(out)
    groups = Groups(x, axis, keepdims)
    empty = _of_nothing(np.ptp, groups)
    low, high = (_extremes(groups, ufunc) for ufunc in (np.minimum, np.maximum))
    return groups.result(np.subtract(high, low), empty)


def any(
    x: Elements, axis: Any = None, out: None = None, keepdims: bool = False, where: Any = True
) -> Any:
    """Return whether there is an element that is not zero, over axes, as `numpy.any`. It raises as `sum`.

    Examples
    --------
    >>> any(Elements._trusted(np.array([[1]]), np.array([-5]), (2,)))
    np.True_
    """
    refuse_out(out)
    groups = Groups(without_zeros(x), axis, keepdims, where, counted=False)
    return groups.result(groups.counts > 0)


def all(
    x: Elements, axis: Any = None, out: None = None, keepdims: bool = False, where: Any = True
) -> Any:
    """Return whether no element is zero, over axes, as `numpy.all`: True of nothing. It raises as `sum`.

    Examples
    --------
    >>> all(Elements._trusted(np.array([[1]]), np.array([-5]), (2,)))
    np.False_
    """
    refuse_out(out)
    groups = Groups(without_zeros(x), axis, keepdims, where)
    return groups.result(
        groups.counts == groups.length, not np.ndim(groups.length) and not groups.length
    )


def count_nonzero(x: Elements, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return how many elements are not zero, over axes, as `numpy.count_nonzero`: explicit zeros are.

    Raises
    ------
    AxisError
        If there is no such axis, or one is given twice.

    Examples
    --------
    >>> count_nonzero(Elements._trusted(np.array([[0, 1]]), np.array([0, 7]), (2,)))
    np.int64(1)
    """
    groups = Groups(without_zeros(x), axis, keepdims)
    return groups.result(groups.counts.astype(np.int64, copy=False))


def total(groups: Groups, values: Array, dtype: Any) -> Array:
    """Return the sum of each group. Halves are added up as singles are, for they are soon too large.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2]]), np.array([5, 7], np.float16), (3,))
    >>> total(Groups(x, 0), x.values, x.dtype)
    array([12.], dtype=float16)
    """
    dtype = np.dtype(dtype)
    is_small = dtype.itemsize <= 2 and dtype.kind not in "iub"
    if dtype.kind == "b":
        return groups.reduce(np.add, values.astype(bool), np.int64).astype(bool)
    if is_small:  # each number is a half, before they are added up
        values = values.astype(dtype, copy=False)
    return groups.reduce(np.add, values, np.float32 if is_small else dtype).astype(
        dtype, copy=False
    )


def _extreme(
    function: Callable[..., Any],
    ufunc: np.ufunc,
    x: Elements,
    axis: Any,
    out: None,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    refuse_out(out)
    groups = Groups(x, axis, keepdims, where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = _of_nothing(function, groups, **_given(initial))
    found = _extremes(groups, ufunc)
    if initial is not None:
        found = ufunc(found, np.asarray(initial).astype(x.dtype))
    if ufunc in (np.fmin, np.fmax) and found.dtype.kind in "fcmM" and np.isnan(found).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=3)
    return _finished(groups, found, empty)


def _extremes(groups: Groups, ufunc: np.ufunc) -> Array:
    """Return the smallest or largest of each group, and of zero where one of its elements is not stored."""
    with np.errstate(invalid="ignore"):  # NumPy warns of a NaN where it takes elements one by one
        found = groups.reduce(ufunc, groups.values)
        zero = np.zeros((), found.dtype)
        return np.where(groups.counts < groups.length, ufunc(found, zero), found)


def _given(initial: Any) -> dict[str, Any]:
    return {} if initial is None else {"initial": initial}


def _of_nothing(function: Callable[..., Any], groups: Groups, **options: Any) -> Any:
    """Return what NumPy makes of a cell without stored elements; with a mask, what of one without any element.

    Its dtype is that of the result, and what NumPy refuses is refused.
    """
    with refused_dtypes(function, [groups], options.get("dtype"), NO_INITIAL):
        if groups.is_masked:
            return function(np.zeros(1, groups.dtype), where=np.array([False]), **options)
        return function(np.zeros(np.minimum(groups.length, 1), groups.dtype), **options)


def _finished(groups: Groups, found: Array, empty: Any) -> Any:
    """Return the result, where cells of which a mask chooses nothing have the value of nothing."""
    if groups.is_masked:
        found = np.where(groups.length == 0, empty, found).astype(empty.dtype, copy=False)
    return groups.result(found.astype(empty.dtype, copy=False), empty)


def _without_nan(x: Elements, value: int) -> Elements:
    """Return elements with a value in place of NaN."""
    if x.dtype.kind not in "fc":
        return x
    is_nan = np.isnan(x.values)
    values = np.where(is_nan, np.array(value, x.dtype), x.values) if is_nan.any() else x.values
    return Elements._trusted(x._coords, values, x.shape, x._places)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: sum,
    np.prod: prod,
    np.min: min,
    np.max: max,
    np.amin: min,
    np.amax: max,
    np.ptp: ptp,
    np.any: any,
    np.all: all,
    np.count_nonzero: count_nonzero,
    np.nansum: nansum,
    np.nanprod: nanprod,
    np.nanmin: nanmin,
    np.nanmax: nanmax,
}
"""Functions of NumPy, and what computes them."""
