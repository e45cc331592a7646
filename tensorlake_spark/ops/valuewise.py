"""Values of a sparse tensor one by one, by functions of NumPy that are no ufuncs: rounded, clipped, their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.errors import DenseResultError, InvalidOptionError, UnsupportedDtypeError
from tensorlake_spark.ops.broadcasting import broadcast_shapes
from tensorlake_spark.ops.elements import Elements, without_zeros
from tensorlake_spark.ops.lookup import look_up
from tensorlake_spark.ops.numpy_arguments import operand_array, refuse_out, refused_dtypes
from tensorlake_spark.ops.shapes.shaping import broadcast_to

Array = np.ndarray[Any, Any]


def round(x: Elements, decimals: int = 0, out: None = None) -> Elements:  # noqa: A001
    """Return the elements rounded, half to even, as `numpy.round`; what becomes zero goes.

    Examples
    --------
    >>> round(Elements._trusted(np.array([[0, 1]]), np.array([0.2, 1.7]), (2,))).coords.tolist()
    [[1]]
    """
    refuse_out(out)
    with refused_dtypes(np.round, [x]):
        return mapped(x, lambda values: np.round(values, decimals))


def clip(
    x: Elements, a_min: Any = None, a_max: Any = None, out: None = None, **named: Any
) -> Elements:
    """Return the elements within bounds, as `numpy.clip`.

    Parameters
    ----------
    x : Elements
        The tensor.
    a_min, a_max : scalar, ndarray or Elements, optional
        The bounds, which broadcast with the tensor; also named `min` and `max`.

    Raises
    ------
    DenseResultError
        If zero lies out of the bounds, or one is NaN, so that zeros would become something else.

    Examples
    --------
    >>> clip(Elements._trusted(np.array([[0, 1]]), np.array([-5, 7]), (2,)), 0, 6).values.tolist()
    [6]
    """
    refuse_out(out)
    low, high = named.pop("min", a_min), named.pop("max", a_max)
    if named:
        raise InvalidOptionError(f"clip of a sparse tensor has no option {next(iter(named))!r}")
    given = [b for b in (low, high) if b is not None]
    for bound in given:  # a scalar stays one, because that decides about the dtype
        if not isinstance(bound, Elements):
            operand_array(bound)
    x = broadcast_to(x, broadcast_shapes(x.shape, *map(np.shape, given)))
    for bound, keeps in ((low, np.less_equal), (high, np.greater_equal)):
        inner = bound.values if isinstance(bound, Elements) else bound
        if bound is None:
            continue
        with refused_dtypes(np.clip, [x, bound]):
            is_kept = np.all(keeps(inner, np.zeros((), x.dtype)))  # NaN does not
        if not is_kept:
            raise DenseResultError(
                f"clip with {'a lower bound above' if bound is low else 'an upper bound below'} zero, or NaN, makes "
                f"zeros something else; np.clip(x.todense(), ...) takes {x.size * x.dtype.itemsize} bytes"
            )
    bounds = [None if b is None else look_up(b, x.coords) for b in (low, high)]
    with refused_dtypes(np.clip, [x, *given]):
        return mapped(x, lambda values: np.asarray(np.clip(values, bounds[0], bounds[1])))


def mapped(x: Elements, function: Callable[[Array], Array]) -> Elements:
    """Return the canonical elements of a function of the values, which keeps zero.

    Examples
    --------
    >>> mapped(Elements._trusted(np.array([[0, 1]]), np.array([-5, 7]), (2,)), np.abs).values.tolist()
    [5, 7]
    """
    found = np.asarray(function(x.values))
    return without_zeros(Elements._trusted(x._coords, found, x.shape, x._places))


def real(x: Elements) -> Elements:
    """Return the real parts, as `numpy.real`.

    Examples
    --------
    >>> real(Elements._trusted(np.array([[0, 1]]), np.array([5j, 7]), (2,))).coords.tolist()
    [[1]]
    """
    return mapped(x, np.real)


def imag(x: Elements) -> Elements:
    """Return the imaginary parts, as `numpy.imag`.

    Examples
    --------
    >>> imag(Elements._trusted(np.array([[0, 1]]), np.array([5j, 7]), (2,))).coords.tolist()
    [[0]]
    """
    return mapped(x, np.imag)


def conj(x: Elements) -> Elements:
    """Return the complex conjugates, as `numpy.conj`.

    Examples
    --------
    >>> conj(Elements._trusted(np.array([[0]]), np.array([5j]), (2,))).values.tolist()
    [-5j]
    """
    with refused_dtypes(np.conj, [x]):
        # The method makes no copy of real numbers; of times, before NumPy 2.3, it only warns.
        return mapped(x, lambda v: v.conj() if v.dtype.kind in "biufc" else np.conj(v))


def isnan(x: Elements) -> Elements:
    """Return which elements are NaN, or NaT, as `numpy.isnan`.

    Examples
    --------
    >>> isnan(Elements._trusted(np.array([[0, 1]]), np.array([5, np.nan]), (2,))).coords.tolist()
    [[1]]
    """
    return mapped(x, np.isnan)


def nan_to_num(
    x: Elements, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Elements:
    """Return the elements with numbers in place of NaN and infinities, as `numpy.nan_to_num`.

    Examples
    --------
    >>> nan_to_num(Elements._trusted(np.array([[0, 1]]), np.array([np.nan, 7]), (2,))).values.tolist()
    [7.0]
    """
    return mapped(x, lambda values: np.nan_to_num(values, True, nan, posinf, neginf))


def astype(
    x: Elements, dtype: Any, casting: Any = "unsafe", copy: bool = True, device: str | None = None
) -> Elements:
    """Return the elements converted, as `numpy.astype`; what becomes zero goes.

    Raises
    ------
    UnsupportedDtypeError
        If `casting` does not allow it.

    Examples
    --------
    >>> astype(Elements._trusted(np.array([[0, 1]]), np.array([0.2, 7]), (2,)), int).values.tolist()
    [7]
    """
    dtype = np.dtype(dtype)
    if not np.can_cast(x.dtype, dtype, casting):
        raise UnsupportedDtypeError(
            f"casting={casting!r} does not let {x.dtype} become {dtype}; casting='unsafe' converts it"
        )
    return mapped(x, lambda values: values.astype(dtype, copy=False))


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.round: round,
    np.around: round,
    np.clip: clip,
    np.real: real,
    np.imag: imag,
    np.nan_to_num: nan_to_num,
    np.astype: astype,
}
"""Functions of NumPy, and what computes them."""
