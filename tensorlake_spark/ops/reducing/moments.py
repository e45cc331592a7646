"""Means, variances and norms over axes of a sparse tensor, as NumPy defines them of the dense array.

What is returned is a scalar or canonical `Elements`, as from ``reductions``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError
from tensorlake_spark.ops.elements import Elements, elements_at, without_zeros
from tensorlake_spark.ops.numpy_arguments import (
    axes_to_reduce,
    number_of,
    refuse_out,
    refused_dtypes,
)
from tensorlake_spark.ops.reducing import reductions
from tensorlake_spark.ops.reducing.groups import Groups
from tensorlake_spark.ops.reducing.reductions import total

Array = np.ndarray[Any, Any]


def mean(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Return the arithmetic mean over axes, as `numpy.mean`: NaN, and a warning, of nothing.

    Raises
    ------
    AxisError, InvalidTensorError, UnsupportedDtypeError, UnsupportedFunctionError
        As `reductions.sum` does.

    Examples
    --------
    >>> mean(Elements._trusted(np.array([[0, 2]]), np.array([5, 7]), (3,)))
    np.float64(4.0)
    """
    refuse_out(out)
    groups = _groups(x, axis, keepdims, where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with refused_dtypes(np.mean, [x], dtype):
            empty = np.mean(np.zeros(1, x.dtype), dtype=dtype)
    found = _mean(groups, groups.values, groups.length, _between(x.dtype, dtype))
    _warn("Mean of empty slice", groups.length)
    return _finished(groups, found, empty.dtype)


def nanmean(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Return the mean of what is not NaN, as `numpy.nanmean`. It raises as `mean`.

    Examples
    --------
    >>> nanmean(Elements._trusted(np.array([[0, 1]]), np.array([5, np.nan]), (3,)))
    np.float64(2.5)
    """
    if x.dtype.kind not in "fc":
        return mean(x, axis, dtype, out, keepdims, where=where)
    refuse_out(out)
    with refused_dtypes(np.nanmean, [x], dtype):
        np.nanmean(np.ones(1, x.dtype), dtype=dtype)
    groups = _groups(x, axis, keepdims, where)
    valid, lengths, _ = _valid(groups)
    found = _mean(groups, np.where(valid, groups.values, 0), lengths, _between(x.dtype, dtype))
    _warn("Mean of empty slice", lengths)
    return _finished(groups, found, dtype or x.dtype)


def var(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: None = None,
    correction: float | None = None,
) -> Any:
    """Return the variance over axes, as `numpy.var`, from the differences from the mean.

    Raises
    ------
    ValueError
        For a `ddof` and a `correction`. AxisError, InvalidTensorError, UnsupportedDtypeError and
        UnsupportedFunctionError as from `reductions.sum`; the last also for a `mean`.

    Examples
    --------
    >>> var(Elements._trusted(np.array([[0, 2]]), np.array([3, 3]), (3,)))
    np.float64(2.0)
    """
    return _var(x, axis, dtype, out, ddof, keepdims, where, mean, correction)


def std(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: None = None,
    correction: float | None = None,
) -> Any:
    """Return the standard deviation over axes, as `numpy.std`. It raises as `var`.

    Examples
    --------
    >>> std(Elements._trusted(np.array([[0, 2]]), np.array([4, 4]), (4,)))
    np.float64(2.0)
    """
    return _var(x, axis, dtype, out, ddof, keepdims, where, mean, correction, root=True)


def nanvar(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: None = None,
    correction: float | None = None,
) -> Any:
    """Return the variance of what is not NaN, as `numpy.nanvar`. It raises as `var`.

    Examples
    --------
    >>> nanvar(Elements._trusted(np.array([[0, 2]]), np.array([4, np.nan]), (3,)))
    np.float64(4.0)
    """
    return _var(x, axis, dtype, out, ddof, keepdims, where, mean, correction, skip_nan=True)


def nanstd(
    x: Elements,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: None = None,
    correction: float | None = None,
) -> Any:
    """Return the standard deviation of what is not NaN, as `numpy.nanstd`. It raises as `var`.

    Examples
    --------
    >>> nanstd(Elements._trusted(np.array([[0, 2]]), np.array([4, np.nan]), (3,)))
    np.float64(2.0)
    """
    return _var(
        x, axis, dtype, out, ddof, keepdims, where, mean, correction, skip_nan=True, root=True
    )


def norm(x: Elements, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
    """Return a norm of vectors, or of matrices, as `numpy.linalg.norm`.

    Parameters
    ----------
    x : Elements
        The tensor.
    ord : None, int, float, inf, -inf, "fro" or "nuc"
        Which norm. None is the root of the sum of squares, over any axes. 2 of a matrix is its largest
        singular value, which SciPy finds without a dense array; of several matrices there is none.
    axis : None, int or tuple of two ints
        Along which axis the vectors lie, or in which axes the matrices; None is all.
    keepdims : bool
        Whether these axes stay, with length 1.

    Raises
    ------
    ValueError
        InvalidTensorError if there is no such norm of so many axes.
    AxisError
        If there is no such axis, or one is given twice.
    UnsupportedFunctionError
        For "nuc" and -2 of matrices, and for 2 of more than one.

    Examples
    --------
    >>> norm(Elements._trusted(np.array([[0, 2]]), np.array([3, 4]), (3,)))
    np.float64(5.0)
    """
    if x.dtype.kind not in "fc":
        x = Elements._trusted(x._coords, x.values.astype(np.float64), x.shape, x._places)
    axes = axes_to_reduce(axis, x.ndim)
    if axis is not None and len(axes) not in (1, 2):
        raise InvalidTensorError(
            f"axis={axis}: a norm is of one axis or of two, not of {len(axes)}"
        )
    if ord is None or (ord in ("fro", "f") and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return _root(reductions.sum(_mapped(x, _squares), axes, keepdims=keepdims))
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise InvalidTensorError(f"the norm {ord!r} is of one axis or two, not of {len(axes)}")
    return _matrix_norm(x, ord, axes, keepdims)


def _vector_norm(x: Elements, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if order == math.inf:
        return reductions.max(_mapped(x, np.abs), axes, keepdims=keepdims, initial=0)
    if order == -math.inf:
        return reductions.min(_mapped(x, np.abs), axes, keepdims=keepdims)
    if isinstance(order, str):
        raise InvalidTensorError(f"there is no norm {order!r} of vectors")
    real = np.empty(0, x.dtype).real.dtype
    if order == 0:
        return _converted(reductions.count_nonzero(x, axes, keepdims=keepdims), real)
    powers = _mapped(x, lambda values: np.abs(values) ** order)
    if order > 0:
        return _mapped(reductions.sum(powers, axes, keepdims=keepdims), lambda v: v ** (1 / order))
    # A zero to a negative power is infinite, and so is the sum, whose root is zero.
    powers = _mapped(without_zeros(x), lambda values: np.abs(values) ** order)
    groups = Groups(powers, axes, keepdims)
    found = groups.reduce(np.add, groups.values) ** (1 / order)
    empty = real.type(0 if groups.length else np.inf)
    is_zero = (groups.counts < groups.length) & ~np.isnan(found)
    return groups.result(np.where(is_zero, 0, found).astype(real), empty)


def _matrix_norm(x: Elements, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if order in (1, -1, math.inf, -math.inf):
        inner, outer = axes if abs(order) == 1 else axes[::-1]
        sums = reductions.sum(_mapped(x, np.abs), inner, keepdims=True)
        if order > 0:
            found = reductions.max(sums, outer, keepdims=True, initial=0)
        else:
            found = reductions.min(sums, outer, keepdims=True)
        return reductions.sum(found, axes, keepdims=keepdims)
    if order == 2 and x.ndim == 2:
        found = _largest_singular_value(x)
        return elements_at(np.zeros(1, np.int64), found[None], (1, 1)) if keepdims else found
    if order in ("nuc", 2, -2):
        raise UnsupportedFunctionError(
            f"the norm {order!r} needs all singular values of dense matrices; "
            "np.linalg.norm(x.todense(), ...) takes "
            f"{x.size * x.dtype.itemsize} bytes"
        )
    raise InvalidTensorError(
        f"there is no norm {order!r} of matrices; None, 'fro', 1, -1, 2, inf and -inf are"
    )


def _largest_singular_value(x: Elements) -> Any:
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import svds

    with refused_dtypes(np.linalg.norm, [x]):
        np.linalg.norm(np.zeros((1, 1), x.dtype), 2)  # which refuses halves
    x = without_zeros(x)
    if not x.nnz or min(x.shape) == 1:
        return norm(x)
    values = x.values.astype(np.promote_types(x.dtype, np.float32), copy=False)
    if not np.isfinite(values).all():
        return values.real.dtype.type(np.nan)
    matrix = coo_array((values, tuple(x.coords)), x.shape).tocsr()
    if min(x.shape) == 2:  # too small for an iteration
        tall = matrix if matrix.shape[1] == 2 else matrix.T
        square: Any = (tall.conj().T @ tall).toarray()
        return np.sqrt(np.linalg.eigvalsh(square)[-1]).astype(x.values.real.dtype)
    # Always from the same vector, so that the same tensor has the same norm.
    start = np.random.default_rng(0).standard_normal(min(x.shape)).astype(values.dtype)
    found: Any = svds(matrix, k=1, return_singular_vectors=False, v0=start)
    return found.astype(x.values.real.dtype)[0]


def _var(
    x: Elements,
    axis: Any,
    dtype: Any,
    out: None,
    ddof: float,
    keepdims: bool,
    where: Any,
    mean: None,
    correction: float | None,
    skip_nan: bool = False,
    root: bool = False,
) -> Any:
    refuse_out(out)
    if mean is not None:
        raise UnsupportedFunctionError("mean= is not there for sparse tensors; leave it out")
    name = "ddof"
    if correction is not None:
        if ddof:
            raise InvalidTensorError("ddof and correction mean the same; give one of them")
        ddof, name = correction, "correction"
    ddof = number_of(ddof, name)
    skip_nan = skip_nan and x.dtype.kind in "fc"
    groups = _groups(x, axis, keepdims, where)
    with refused_dtypes(np.std if root else np.var, [x], dtype):
        result_dtype = (np.nanvar if skip_nan else np.var)(np.ones(2, x.dtype), dtype=dtype).dtype
        if root and (groups.shape or (keepdims and x.ndim)):
            np.sqrt(np.ones(1, result_dtype), out=np.ones(1, result_dtype))  # it refuses integers
    between = _between(x.dtype, dtype)
    values, counts, lengths = groups.values, groups.counts, groups.length
    with np.errstate(all="ignore"):
        if skip_nan:
            valid, lengths, counts = _valid(groups)
            values = np.where(valid, values, values.dtype.type(0))
        # NumPy cuts the mean to integers if these are asked for, and not the elements that it is taken from.
        center = _mean(groups, values, lengths, between).astype(between, copy=False)
        apart = values - groups.spread(center)
        if skip_nan:
            apart = np.where(valid, apart, apart.dtype.type(0)).astype(x.dtype, copy=False)
        holes = lengths - counts
        apart_all = groups.reduce(np.add, _squares(apart).astype(between, copy=False))
        # What is not stored is as far from the mean as zero is.
        far = x.dtype.type(0) - center
        far = _squares(far.astype(x.dtype) if skip_nan else far).astype(between, copy=False)
        apart_all = (apart_all + np.where(holes > 0, holes * far, 0)).astype(between, copy=False)
        freedom = np.maximum(lengths - ddof, 0)
        found = np.true_divide(apart_all, freedom)
        if skip_nan:
            found = np.where(lengths - ddof <= 0, np.nan, found)
        if result_dtype.kind != "c":
            found = found.real  # of complex elements too
        found = np.sqrt(found.astype(result_dtype, copy=False)) if root else found
    _warn("Degrees of freedom <= 0 for slice", freedom)
    return _finished(groups, found, result_dtype, groups.length - ddof > 0)


def _groups(x: Elements, axis: Any, keepdims: bool, where: Any) -> Groups:
    """Return the groups of a tensor. A scalar has no axis here, though it has one in a sum, as in NumPy."""
    if where is True:
        axes_to_reduce(axis, x.ndim)
    return Groups(x, axis, keepdims, where)


def _between(dtype: np.dtype[Any], wanted: Any) -> np.dtype[Any]:
    """Return the dtype in which sums of a mean or of a variance are computed."""
    if dtype.kind == "m":  # of times NumPy takes no other
        return dtype
    if wanted is not None:
        dtype = np.dtype(wanted)
    elif dtype.kind in "biu":
        return np.dtype(np.float64)
    is_small = dtype.itemsize <= 2 and dtype.kind not in "biu"
    return np.dtype(np.float32) if is_small else dtype


def _mean(groups: Groups, values: Array, lengths: Any, dtype: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.true_divide(total(groups, values, dtype), lengths))


def _valid(groups: Groups) -> tuple[Array, Any, Array]:
    """Return which stored elements are not NaN, how many elements of each cell are not, and how many stored ones."""
    valid = ~np.isnan(groups.values)
    counts = groups.reduce(np.add, valid, np.int64)
    return valid, groups.length - (groups.counts - counts), counts


def _squares(values: Array) -> Array:
    if values.dtype.kind == "c":
        return np.asarray(values.real**2 + values.imag**2)
    return np.asarray(values * values)


def _mapped(found: Any, function: Callable[[Array], Array]) -> Any:
    """Return elements, or a scalar, with a function applied that keeps zero."""
    if not isinstance(found, Elements):
        return function(found)
    return Elements._trusted(found._coords, function(found.values), found.shape, found._places)


def _root(found: Any) -> Any:
    return _mapped(found, np.sqrt)


def _converted(found: Any, dtype: np.dtype[Any]) -> Any:
    return _mapped(found, lambda values: values.astype(dtype))


def _finished(groups: Groups, found: Array, dtype: Any, is_there: Any = None) -> Any:
    """Return the result, where cells of nothing are NaN."""
    is_there = groups.length > 0 if is_there is None else is_there
    dtype = np.dtype(dtype)
    nothing = "NaT" if dtype.kind == "m" else np.nan
    empty = np.array(0 if np.all(is_there) else nothing).astype(dtype)[()]
    return groups.result(found.astype(dtype, copy=False), empty)


def _warn(text: str, lengths: Any) -> None:
    """Warn as NumPy does of cells with nothing to divide by."""
    if np.any(np.asarray(lengths) <= 0):
        warnings.warn(text, RuntimeWarning, stacklevel=4)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.mean: mean,
    np.nanmean: nanmean,
    np.var: var,
    np.nanvar: nanvar,
    np.std: std,
    np.nanstd: nanstd,
    np.linalg.norm: norm,
}
"""Functions of NumPy, and what computes them."""
