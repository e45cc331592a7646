"""Functions that say something of an array: its mean, sum, extremes and norm, what is in it, and its shape.

Their names begin with ``array_`` where SQL has an aggregate, which goes over rows. An empty array has no smallest or
largest element: there the result is null. All else is as NumPy has it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.query.functions.definitions import rowwise
from tensorlake_spark.query.functions.row_values import SMALL, Array, Constant

Axes = int | tuple[int, ...] | None


def axes_of(axis: Any, ndim: int) -> Axes:
    """Return axes as NumPy takes them.

    Parameters
    ----------
    axis : int, or sequence of int
    ndim : int
        The axes that there are.

    Raises
    ------
    ValueError
        If one is not there, or is not an integer.

    Examples
    --------
    >>> axes_of([0, -1], 3)
    (0, 2)
    """
    many = np.ndim(axis) == 1
    if np.ndim(axis) > 1 or isinstance(axis, str):
        raise ValueError(f"axis={axis!r:.60} is neither a number nor a list of numbers")
    found = []
    for one in np.atleast_1d(np.asarray(axis)).tolist():
        if isinstance(one, bool) or not isinstance(one, int):
            raise ValueError(f"axis={one!r:.60} is not an integer")
        if not -ndim <= one < ndim:
            raise ValueError(f"axis {one} is out of bounds for an array of {ndim} axes")
        found.append(one % ndim)
    if len(set(found)) < len(found):
        raise ValueError(f"axis={axis!r:.60} names an axis twice")
    return tuple(found) if many else found[0]


def numbers(x: Any) -> Array:
    """Return a value as an array of numbers; what NumPy has no dtype of its own for, such as bfloat16, as float32.

    Raises
    ------
    TypeError
        If it is text, or another thing that cannot be counted with.

    Examples
    --------
    >>> numbers([1, 2])
    array([1, 2])
    """
    array = np.asarray(x)
    if array.dtype.isbuiltin == 2:  # added to NumPy by ml_dtypes
        return array.astype(np.float32)
    if array.dtype.kind not in "biufc" and array.dtype.kind in "OSUMmV":
        raise TypeError(f"values of type {array.dtype} are not numbers")
    return array


def reals(x: Any) -> Array:
    """Return a value as an array of real numbers; truths become 0 and 1.

    Raises
    ------
    TypeError
        If it is text, or has complex numbers.

    Examples
    --------
    >>> reals([True, False])
    array([1, 0], dtype=uint8)
    """
    array = numbers(x)
    if array.dtype.kind == "c":
        raise TypeError("complex numbers have no order, and are not taken here")
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


_EXACT = 1 << 36
"""The sum of so many numbers of 16 bits is exact as a float."""

_NARROW = (1 << 31) // 255
"""The sum of so many numbers of 8 bits fits into 32."""


def mean(x: Array, axis: Axes = None) -> Any:
    """Return the mean; of nothing it is NaN.

    Examples
    --------
    >>> float(mean(np.array([1, 2], np.uint8)))
    1.5
    """
    if x.size and x.dtype.kind in "iu" and x.itemsize <= 2 and x.size < _EXACT:
        axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
        added = math.prod(x.shape[one] for one in axes)
        narrow = x.itemsize == 1 and added <= _NARROW
        sums = np.add.reduce(
            x, axis=axis, dtype=np.int32 if narrow else np.int64
        )  # exact, and faster than floats
        return np.true_divide(sums, added)
    if x.size:
        return np.mean(x, axis=axis)
    kind = x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)
    return np.full_like(np.sum(x, axis=axis), np.nan, dtype=kind)[()]


def std(x: Array, axis: Axes = None) -> Any:
    """Return the standard deviation of a population; of nothing it is NaN.

    Examples
    --------
    >>> float(std(np.array([1, 3])))
    1.0
    """
    return np.std(x, axis=axis) if x.size else np.real(mean(x, axis))


def norm(x: Array, axis: Axes = None) -> Any:
    """Return the square root of the sum of squares.

    Examples
    --------
    >>> float(norm(np.array([3, 4])))
    5.0
    """
    wide = x if x.dtype.kind in "fc" else x.astype(np.float64)
    if axis is None:
        return np.linalg.norm(wide.reshape(-1))
    return np.sqrt(np.sum(np.abs(wide) ** 2, axis=axis))


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(x: Array, axis: Axes = None) -> Any:
        axes = range(x.ndim) if axis is None else np.atleast_1d(axis).astype(np.int64)
        return None if any(x.shape[one] == 0 for one in axes) else function(x, axis=axis)

    return extreme


def _all_axes(shape_axis: Axes, ndim: int) -> Axes:
    """Return the axes of a row as axes of a stack of rows."""
    if isinstance(shape_axis, tuple):
        return tuple(one + 1 for one in shape_axis)
    return shape_axis + 1 if shape_axis is not None else tuple(range(1, ndim))


def _summary(
    name: str,
    function: Callable[..., Any],
    result: str,
    about: str,
    spellings: tuple[str, ...] = (),
    one_axis: bool = False,
    large: bool = False,
) -> None:
    def one(x: Any, axis: Any = None) -> Any:
        array = numbers(x)
        axes = None if axis is None else axes_of(axis, array.ndim)
        if one_axis and isinstance(axes, tuple):
            raise ValueError(f"{name} takes one axis, not {len(axes)}")
        return function(array, axes)

    def stacked(x: Any, axis: Any = Constant(None)) -> Any:
        if isinstance(x, Constant) or not isinstance(axis, Constant) or 0 in x.shape:
            return None
        if x.size > SMALL * len(x):
            is_exact = x.dtype.kind in "iu" and x.itemsize <= 2 and axis.value is None
            return function(x, _all_axes(None, x.ndim)) if is_exact else None
        if axis.value is None:
            return function(numbers(x).reshape(len(x), -1), 1)
        axes = axes_of(axis.value, x.ndim - 1)
        if one_axis and isinstance(axes, tuple):
            return None
        return function(numbers(x), _all_axes(axes, x.ndim))

    rowwise(name, one, result, (1, 2), spellings, stacked, about=about, large=large)


_summary(
    "array_mean", mean, "number", "the mean of an array, or along an axis", ("mean",), large=True
)
_summary(
    "array_sum",
    lambda x, axis=None: np.sum(x, axis=axis),
    "number",
    "the sum of an array, or along an axis",
)
_summary("array_min", _extreme(np.min), "number", "the smallest element, or along an axis")
_summary("array_max", _extreme(np.max), "number", "the largest element, or along an axis")
_summary("array_std", std, "number", "the standard deviation, or along an axis")
_summary(
    "array_norm", norm, "number", "the root of the sum of squares, or along an axis", ("l2_norm",)
)
_summary(
    "array_argmax",
    _extreme(np.argmax),
    "int",
    "where the largest element is, or along an axis",
    ("argmax",),
    one_axis=True,
)
_summary(
    "any",
    lambda x, axis=None: np.any(x, axis=axis),
    "bool",
    "whether an element is true, or along an axis",
)
_summary(
    "all",
    lambda x, axis=None: np.all(x, axis=axis),
    "bool",
    "whether every element is true, or along an axis",
)


def contains(x: Any, value: Any) -> Any:
    """Return whether a value is among the elements of an array, or a text in a text.

    Examples
    --------
    >>> contains(np.array([1, 2]), 2), contains("lake", "ak")
    (True, True)
    """
    if isinstance(x, str):
        if not isinstance(value, str):
            raise TypeError(f"a text contains texts, not {value!r:.40}")
        return value in x
    array, wanted = np.asarray(x), np.asarray(value)
    if (array.dtype.kind in "US") != (wanted.dtype.kind in "US") and array.dtype != object:
        return False
    if wanted.ndim == 0:
        return bool(np.any(array == value))  # a number of Python takes the dtype of the array
    return bool(np.all(np.isin(wanted, array)))


rowwise("contains", contains, "bool", (2, 2), about="whether values are among the elements")


def nonzero(x: Any) -> Array:
    """Return the positions of the elements that are not zero: one row for each, one column for each axis.

    Examples
    --------
    >>> nonzero(np.array([[0, 5], [7, 0]]))
    array([[0, 1],
           [1, 0]])
    """
    return np.argwhere(numbers(x))


rowwise(
    "nonzero", nonzero, "array", (1, 1), about="the positions of the elements that are not zero"
)


def histogram(x: Any, bins: Any = 10, low: Any = None, high: Any = None) -> Array:
    """Return how many elements are in each of some bins of the same width.

    Parameters
    ----------
    x : array
    bins : int
        At most 1 million.
    low, high : number, optional
        The ends of the bins; without them the smallest and the largest element.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> histogram(np.array([0, 1, 1, 9]), 2, 0, 10)
    array([3, 1])
    """
    count = operator.index(bins)
    if not 1 <= count <= 1_000_000:
        raise ValueError(f"bins={count} is not in 1 ... 1000000")
    if (low is None) != (high is None):
        raise ValueError("histogram takes both ends of the bins, or none")
    ends = None if low is None else (float(low), float(high))
    if ends is not None and not (np.isfinite(ends).all() and ends[0] <= ends[1]):
        raise ValueError(
            f"the ends of the bins {ends[0]} and {ends[1]} are not in order, or not finite"
        )
    return np.histogram(reals(x), bins=count, range=ends)[0]


rowwise("histogram", histogram, "array", (1, 4), about="how many elements are in each of some bins")


def shape(x: Any, axis: Any = None) -> Any:
    """Return the lengths of the axes of an array, or the length of one.

    Examples
    --------
    >>> shape(np.zeros((2, 3))), shape(np.zeros((2, 3)), -1)
    (array([2, 3]), np.int64(3))
    """
    lengths = np.array(np.shape(x), np.int64)
    return lengths if axis is None else lengths[np.asarray(axes_of(axis, len(lengths)))]


def _shapes(x: Any, axis: Any = Constant(None)) -> Any:
    if isinstance(x, Constant) or not isinstance(axis, Constant):
        return None
    one = shape(x[0], axis.value) if len(x) else np.array(x.shape[1:], np.int64)
    return np.tile(one, (len(x), *[1] * one.ndim)) if one.ndim else np.full(len(x), one)


def dtype(x: Any) -> str:
    """Return the name of an array's dtype.

    Examples
    --------
    >>> dtype(np.zeros(2, np.uint8))
    'uint8'
    """
    kind = np.asarray(x).dtype
    return "text" if kind.kind == "U" else kind.name


rowwise("shape", shape, "array", (1, 2), (), _shapes, "shape", "the lengths of the axes")
rowwise("dtype", dtype, "text", (1, 1), (), None, "shape", "the name of the dtype")
