"""Where something is: the largest element, those that are not zero, the first for which a condition holds.

Indices are not sparse, so what is returned are arrays of int64, or scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, did_you_mean
from tensorlake_spark.indexing.coords import sort_places
from tensorlake_spark.ops.elements import Elements, without_zeros
from tensorlake_spark.ops.numpy_arguments import axis_to_search, refuse_out, refused_dtypes
from tensorlake_spark.ops.reducing.groups import Groups

Array = np.ndarray[Any, Any]

CONDITIONS: dict[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    ">": np.greater,
}
"""Comparisons by which `first_index` can be asked."""

_NEVER = np.iinfo(np.int64).max


def argmax(
    x: Elements, axis: int | None = None, out: None = None, *, keepdims: bool = False
) -> Any:
    """Return the index of the largest element along an axis, as `numpy.argmax`: the first of several, or of NaN.

    Parameters
    ----------
    x : Elements
        The tensor; what is not stored is zero.
    axis : int, optional
        None is all of them, and the index is that of the flat tensor.
    out : None
        There is none.
    keepdims : bool
        Whether the axis stays, with length 1.

    Raises
    ------
    ValueError
        InvalidTensorError if there is nothing to choose from. AxisError if there is no such axis;
        InvalidKeyTypeError if it is not an integer, such as a tuple; UnsupportedFunctionError for an `out`.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 0], [0, 2]]), np.array([-5, -7]), (2, 3))
    >>> argmax(x), argmax(x, axis=0)
    (np.int64(1), array([1, 0, 1]))
    """
    return _arg_extreme("argmax", np.maximum, np.greater, x, axis, out, keepdims)


def argmin(
    x: Elements, axis: int | None = None, out: None = None, *, keepdims: bool = False
) -> Any:
    """Return the index of the smallest element along an axis, as `numpy.argmin`. Else it is `argmax`.

    Examples
    --------
    >>> argmin(Elements._trusted(np.array([[0, 2]]), np.array([5, 7]), (3,)))
    np.int64(1)
    """
    return _arg_extreme("argmin", np.minimum, np.less, x, axis, out, keepdims)


def first_index(
    x: Elements, condition: Any, axis: int | None = None, *, keepdims: bool = False
) -> Any:
    """Return the first index along an axis at which a condition holds; -1 where it holds nowhere.

    Parameters
    ----------
    x : Elements
        The tensor; what is not stored is zero, for which the condition may hold too.
    condition : (str, value) or callable
        A comparison, such as ``(">", 3)``, or a function that takes an array of values and returns a bool
        for each, such as `numpy.isnan`.
    axis : int, optional
        None is all of them, and the index is that of the flat tensor.
    keepdims : bool
        Whether the axis stays, with length 1.

    Raises
    ------
    InvalidOptionError
        If the condition is no function, and no comparison with a scalar that is known.
    InvalidTensorError
        If the function does not return a bool for each value.
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 0], [0, 2]]), np.array([5, 7]), (2, 3))
    >>> first_index(x, (">", 5)), first_index(x, ("<=", 5), axis=1)
    (np.int64(2), array([0, 0]))
    """
    holds = predicate_of(condition)
    groups = Groups(x, axis_to_search(axis, x.ndim), keepdims)
    zero = bool(holds(np.zeros(1, x.dtype))[0])
    found = _first(groups, np.flatnonzero(holds(groups.values)))
    if zero:
        found = np.minimum(found, _first_hole(groups, groups.counts < groups.length))
    found = np.where(found == _NEVER, -1, found)
    return _array(groups, found, 0 if zero and groups.length else -1)


def nonzero(x: Elements) -> tuple[Array, ...]:
    """Return the indices of the elements that are not zero, an array for each axis, as `numpy.nonzero`.

    Raises
    ------
    ValueError
        For a tensor without axes, as in NumPy.

    Examples
    --------
    >>> nonzero(Elements._trusted(np.array([[0, 2]]), np.array([0, 7]), (3,)))
    (array([2]),)
    """
    if not x.ndim:
        raise InvalidTensorError("nonzero of a tensor without axes; use flatnonzero")
    return tuple(without_zeros(x).coords)


def argwhere(x: Elements) -> Array:
    """Return the coordinates of the elements that are not zero, a row for each, as `numpy.argwhere`.

    Examples
    --------
    >>> argwhere(Elements._trusted(np.array([[0, 2], [1, 1]]), np.array([6, 7]), (3, 2)))
    array([[0, 1],
           [2, 1]])
    """
    return np.asarray(without_zeros(x).coords.T)


def flatnonzero(x: Elements) -> Array:
    """Return the indices of the elements that are not zero in the flat tensor, as `numpy.flatnonzero`.

    Examples
    --------
    >>> flatnonzero(Elements._trusted(np.array([[0, 2], [1, 1]]), np.array([6, 7]), (3, 2)))
    array([1, 5])
    """
    return without_zeros(x).places


def _arg_extreme(
    name: str,
    extreme: np.ufunc,
    beats: np.ufunc,
    x: Elements,
    axis: int | None,
    out: None,
    keepdims: bool,
) -> Any:
    refuse_out(out)
    groups = Groups(x, axis_to_search(axis, x.ndim), keepdims)
    if not groups.length:
        raise InvalidTensorError(
            f"attempt to get {name} of an empty sequence: the tensor's shape is {x.shape}"
        )
    zero = np.zeros((), x.dtype)
    with np.errstate(invalid="ignore"):
        best = groups.reduce(extreme, groups.values)
        # NaN, of which NumPy makes the extreme, and NaT differ from themselves.
        is_best = (groups.values == groups.spread(best)) | (groups.values != groups.values)
        # Zeros that are not stored take part where none of the group is better.
        to_zero = (best == best) & ~beats(best, zero) & (groups.counts < groups.length)
    found = _first(groups, np.flatnonzero(is_best))
    if to_zero.any():
        holes = _first_hole(groups, to_zero)
        found = np.where(to_zero, np.where(best == zero, np.minimum(found, holes), holes), found)
    return _array(groups, found, 0)


def _first(groups: Groups, chosen: Array) -> Array:
    """Return for each group the position of its first chosen element, `_NEVER` where none is."""
    out = np.full(len(groups.counts), _NEVER, np.int64)
    # The last assignment holds, and in a group positions ascend.
    out[groups.numbers(chosen)[::-1]] = groups.positions(chosen)[::-1]
    return out


def _first_hole(groups: Groups, wanted: Array) -> Array:
    """Return for each wanted group the first position that is not stored, and `_NEVER` for the others."""
    elements = np.flatnonzero(groups.spread(wanted))
    numbers, positions = groups.numbers(elements), groups.positions(elements)
    if not groups.is_adjacent:
        numbers, by = sort_places(numbers)
        positions = positions[by]
    out = np.where(wanted, groups.counts, _NEVER)
    # Positions ascend in a group: before the first hole each is the number of those before it.
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ranks = np.arange(len(numbers)) - np.repeat(starts, np.diff(starts, append=len(numbers)))
    late = np.flatnonzero(positions != ranks)[::-1]
    out[numbers[late]] = ranks[late]
    return out


def _array(groups: Groups, found: Array, empty: int) -> Any:
    """Return indices as an array, or a scalar if no axes are left."""
    return groups.dense(found, empty)[()]


def predicate_of(condition: Any) -> Callable[[Array], Array]:
    """Return the function that tells for which values a condition holds, as `first_index` takes one.

    Raises
    ------
    InvalidOptionError
        If the condition is no function, and no comparison with a scalar that is known.

    Examples
    --------
    >>> predicate_of((">", 3))(np.array([3, 4]))
    array([False,  True])
    """
    if callable(condition):
        function = condition
    else:
        try:
            sign, bound = condition
            compare = CONDITIONS[sign]
        except (TypeError, ValueError, KeyError):
            sign = condition[0] if isinstance(condition, tuple) and condition else ""
            raise InvalidOptionError(
                f"{condition!r} is not a condition{did_you_mean(str(sign), CONDITIONS)}; a function of an array, or a "
                f"comparison such as ('>', 3) is, with one of {', '.join(CONDITIONS)}"
            ) from None
        if np.ndim(bound):
            raise InvalidOptionError(
                f"({sign!r}, ...) compares with one scalar, not with an array of shape {np.shape(bound)}; give a "
                "function of an array for other conditions"
            )

        def function(values: Array) -> Array:
            with refused_dtypes(compare, [values, bound]):
                return np.asarray(compare(values, bound))

    def checked(values: Array) -> Array:
        found = np.asarray(function(values))
        if found.shape != values.shape or found.dtype != bool:
            raise InvalidTensorError(
                f"a condition returns a bool for each value, not an array of {found.dtype} of shape {found.shape}"
            )
        return found

    return checked


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.argmax: argmax,
    np.argmin: argmin,
    np.nonzero: nonzero,
    np.argwhere: argwhere,
    np.flatnonzero: flatnonzero,
}
"""Functions of NumPy, and what computes them."""
