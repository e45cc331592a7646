"""Arguments that functions of NumPy share: axes, named from the front or from the end, ``out``, and dtypes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorlake_spark.errors import (
    AxisError,
    InvalidKeyTypeError,
    InvalidTensorError,
    NumberOverflowError,
    TensorLakeError,
    UnsupportedDtypeError,
    UnsupportedFunctionError,
)


def power_ufunc(dtype: np.dtype[Any], exponent: Any) -> np.ufunc | None:
    """Return what ``**`` is of an array with an exponent, where it is not `numpy.power`; None where it is.

    Examples
    --------
    >>> power_ufunc(np.dtype("?"), 2), power_ufunc(np.dtype("f4"), 0.5), power_ufunc(np.dtype("i8"), 3)
    (<ufunc 'square'>, <ufunc 'sqrt'>, None)
    """
    kinds = {int: "biufc", float: "fc"}.get(type(exponent), "")
    if dtype.kind not in kinds:
        return None
    return np.square if exponent == 2 else np.sqrt if exponent == 0.5 else None


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    AxisError
        If a tensor of `ndim` axes has no such axis. InvalidKeyTypeError if `axis` is not an integer.

    Examples
    --------
    >>> axis_of(-1, 3)
    2
    """
    try:
        number = operator.index(axis)
    except TypeError:
        raise InvalidKeyTypeError(f"an axis is an integer, not {axis!r}") from None
    if not -ndim <= number < ndim:
        raise AxisError(f"axis {number} is out of bounds for a tensor of {ndim} axes")
    return number % ndim


def integer_of(value: Any, name: str) -> int:
    """Return an argument that is an integer.

    Raises
    ------
    InvalidKeyTypeError
        If it is not.

    Examples
    --------
    >>> integer_of(np.int8(3), "shift")
    3
    """
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidKeyTypeError(f"{name}={value!r} is not an integer; give one") from None


def number_of(value: Any, name: str) -> float:
    """Return an argument that is a real number.

    Raises
    ------
    InvalidKeyTypeError
        A TypeError, as NumPy's.

    Examples
    --------
    >>> number_of(1.5, "ddof")
    1.5
    """
    if np.ndim(value) or np.asarray(value).dtype.kind not in "biuf":
        raise InvalidKeyTypeError(f"{name}={value!r:.80} is not a number; give one, such as 1")
    number: float = value
    return number


def operand_array(value: Any) -> np.ndarray[Any, Any]:
    """Return an operand that is no tensor of ours as an array.

    Raises
    ------
    UnsupportedDtypeError
        For an array of objects: NumPy makes one of a sparse array of another package.

    Examples
    --------
    >>> operand_array([0, 7]).tolist()
    [0, 7]
    """
    array = np.asarray(value)
    if array.dtype.kind == "O":
        raise UnsupportedDtypeError(
            f"{type(value).__name__} has the dtype object, which no tensor has; sparse arrays of other packages become "
            "tensors by SparseTensor.from_scipy(...) and its kin"
        )
    return array


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return one axis or several, counted from the front, in the order in which they are given; None is all.

    Raises
    ------
    AxisError
        If a tensor of `ndim` axes has not all of them, or if one is given twice. InvalidKeyTypeError if one is
        not an integer.

    Examples
    --------
    >>> axes_of((-1, 0), 3), axes_of(1, 3), axes_of(None, 3)
    ((2, 0), (1,), (0, 1, 2))
    """
    if axes is None:
        return tuple(range(ndim))
    found = tuple(axis_of(axis, ndim) for axis in (axes if np.ndim(axes) else (axes,)))
    for axis in found:
        if found.count(axis) > 1:
            raise AxisError(f"axis {axis} is given twice in {axes}; each axis may be given once")
    return found


def is_axis_of_scalar(axis: Any, ndim: int) -> bool:
    """Return whether this is the one axis that NumPy lets a scalar have where it reduces.

    Examples
    --------
    >>> is_axis_of_scalar(-1, 0), is_axis_of_scalar(1, 0), is_axis_of_scalar(0, 2)
    (True, False, False)
    """
    return ndim == 0 and isinstance(axis, (int, np.integer)) and axis in (0, -1)


def axes_to_reduce(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction, counted from the front: an integer, a tuple of integers, or None for all.

    Raises
    ------
    AxisError
        As `axes_of` does. InvalidKeyTypeError for lists and bools too, which NumPy refuses here.

    Examples
    --------
    >>> axes_to_reduce((-1, 0), 3), axes_to_reduce(1, 3), axes_to_reduce(None, 3)
    ((2, 0), (1,), (0, 1, 2))
    """
    if axis is None:
        return axes_of(None, ndim)
    given = axis if isinstance(axis, tuple) else (axis,)
    return axes_of(tuple(_without_bool(one, ndim) for one in given), ndim)


def axis_to_search(axis: Any, ndim: int) -> int | None:
    """Return the axis that ``argmax`` looks along, counted from the front; None is all, and the one of a scalar too.

    Raises
    ------
    AxisError
        If there is no such axis. InvalidKeyTypeError if it is not an integer: several are not one after the other.

    Examples
    --------
    >>> axis_to_search(-1, 3), axis_to_search(None, 3), axis_to_search(0, 0)
    (2, None, None)
    """
    if isinstance(axis, (tuple, list)):
        raise InvalidKeyTypeError(
            f"an index is looked for along one axis, an integer, or with None in all elements, not along {axis!s:.80}"
        )
    return None if axis is None or is_axis_of_scalar(axis, ndim) else _without_bool(axis, ndim)


def _without_bool(axis: Any, ndim: int) -> int:
    if isinstance(axis, bool):
        raise InvalidKeyTypeError(f"an axis is an integer, not {axis!r}")
    return axis_of(axis, ndim)


def refuse_out(
    out: Any, what: str = "sparse tensors", remedy: str = "use what is returned"
) -> None:
    """Raise UnsupportedFunctionError if there is an array to write to.

    Examples
    --------
    >>> refuse_out(None)
    """
    if out is not None:
        raise UnsupportedFunctionError(
            f"out= is not there for {what}, and {type(out).__name__} is given for it; {remedy}"
        )


def dtype_of_product(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a product of arrays.

    Raises
    ------
    UnsupportedDtypeError
        If no dtype holds the numbers of all of them, or if one holds times: seconds times seconds are no seconds.

    Examples
    --------
    >>> dtype_of_product(np.dtype("f4"), np.dtype("i8"))
    dtype('float64')
    """
    times = [dtype for dtype in dtypes if dtype.kind in "mM"]
    if times:
        raise UnsupportedDtypeError(
            f"a tensor of dtype {times[0]} has no products; astype('int64') counts units"
        )
    try:
        return np.result_type(*dtypes)
    except TypeError as error:
        names = " and ".join(map(str, dict.fromkeys(dtypes)))
        raise UnsupportedDtypeError(
            f"a product of {names} is not there, for no dtype holds all their numbers; astype(...) gives another dtype"
        ) from error


_OTHER_DTYPE = "astype(...) gives another dtype"

NO_ELEMENT = "choose at least one element"
"""What helps where a function has no answer for nothing."""

NO_INITIAL = "give a number for initial="
"""What helps where a reduction has nothing to begin with, or something that is no number."""


@contextmanager
def refused_dtypes(
    function: Callable[..., Any],
    operands: Sequence[Any],
    asked: Any = None,
    remedy: str = _OTHER_DTYPE,
) -> Iterator[None]:
    """Say which function of which dtypes it is that NumPy refuses, and which dtype was asked for, if one was.

    Parameters
    ----------
    function : callable
        Of NumPy.
    operands : sequence
        What it is called with.
    asked : dtype, optional
        Argument ``dtype`` of the call.
    remedy : str
        What helps if the values are refused, and not their dtypes.

    Raises
    ------
    UnsupportedDtypeError
        A TypeError, as NumPy's.
    InvalidTensorError
        A ValueError, as NumPy's: for values, such as negative powers of integers. NumberOverflowError for a number
        that the dtype does not hold.

    Examples
    --------
    >>> with refused_dtypes(np.bitwise_and, [1.5, 1]):
    ...     np.bitwise_and(1.5, 1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tensorlake_spark.errors.UnsupportedDtypeError: np.bitwise_and of float and int is not there: ufunc 'bitwise_and' ...
    >>> with refused_dtypes(np.min, [np.zeros(0)], remedy=NO_INITIAL):
    ...     np.min(np.zeros(0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tensorlake_spark.errors.InvalidTensorError: np.min of float64 cannot be computed: zero-size array to reduction ...
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, TensorLakeError):
            raise
        names = (str(getattr(x, "dtype", type(x).__name__)) for x in operands)
        named = f"np.{function.__name__} of {' and '.join(names)}"
        if asked is not None:
            named += f" with dtype={asked!r}"
        reason = str(error).rstrip(".")
        if isinstance(error, TypeError):
            raise UnsupportedDtypeError(
                f"{named} is not there: {reason}; {_OTHER_DTYPE}"
            ) from error
        if isinstance(error, OverflowError):
            raise NumberOverflowError(
                f"{named} cannot be computed: {reason}; {_OTHER_DTYPE}"
            ) from error
        raise InvalidTensorError(f"{named} cannot be computed: {reason}; {remedy}") from error
