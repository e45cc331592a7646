"""Operators and functions of single elements: arithmetic, comparisons, logic and mathematics, as NumPy has them.

A division by zero is infinite or NaN, whole numbers wrap around as their dtype does, and shapes are broadcast within a
row. Where a row has no value, the result has none; AND and OR know that such a value is neither true nor false.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.query.functions.row_values import (
    Array,
    Constant,
    RowError,
    Values,
    by_rows,
    expanded,
    gathered,
    is_flat,
    items_of,
)

_PLAIN = (bool, int, float, complex)
"""Numbers of Python: they take the dtype of the array that they stand beside, and so does what is computed of them."""

_FEW = 16
"""Values of a list that are compared one by one; with more, a set is faster."""

_IN_UNITS = (
    np.add, np.subtract, np.remainder, np.maximum, np.minimum, np.equal, np.not_equal, np.less, np.less_equal,
    np.greater, np.greater_equal,
)  # fmt: skip
"""Functions for which an integer beside times counts in their unit."""


def applied(function: Callable[..., Any], arguments: Sequence[Values], rows: int) -> Values:
    """Return what a function of elements gives for each row, broadcast within the row.

    Parameters
    ----------
    function : callable
        Such as a ufunc of NumPy.
    arguments : sequence of Values
    rows : int

    Raises
    ------
    RowError
        If shapes cannot be broadcast, or the function is not for these dtypes.

    Examples
    --------
    >>> applied(np.add, [np.zeros((2, 3)), np.array([1.0, 2.0])], 2)
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    arguments = _moments(arguments)
    if function in _IN_UNITS:
        function = partial(_in_units, function)
    if any(isinstance(values, Constant) and values.value is None for values in arguments):
        return Constant(None)
    arrays = [values for values in arguments if isinstance(values, np.ndarray)]
    if arrays and not any(isinstance(values, list) for values in arguments):
        axes = max(_axes(values) for values in arguments)
        try:
            found = function(*[_aligned(values, axes) for values in arguments])
        except (ArithmeticError, TypeError, ValueError):
            pass  # row by row it is found which one
        else:
            return _whole(found, rows)
    try:
        found = by_rows(function, arguments, rows)
    except RowError as error:
        raise RowError(error.row, f"{error}{_remedy(error, arguments)}") from error
    if isinstance(found, Constant) and isinstance(found.value, np.generic):
        plain = all(type(one.value) in _PLAIN for one in arguments if isinstance(one, Constant))
        return Constant(found.value.item()) if plain else found
    return found


def _remedy(error: RowError, arguments: Sequence[Values]) -> str:
    """Return what to do about values that NumPy does not take together, as the end of a message."""
    kinds = {type(_first(values)) for values in arguments}
    if isinstance(error.__cause__, OverflowError):
        return "; CAST(x AS BIGINT) or CAST(x AS DOUBLE) gives a column a type that holds it"
    if decimal.Decimal in kinds:
        return "; NumPy has no decimals, and CAST(x AS DOUBLE) makes other numbers of them"
    if not kinds.isdisjoint((str, np.str_)) and isinstance(error.__cause__, TypeError):
        return "; it takes numbers, and there is a text; CAST(x AS DOUBLE) makes a number of it"
    return ""


def _first(values: Values) -> Any:
    """Return one of the values, None if there is none."""
    if isinstance(values, Constant):
        return values.value
    return next((item for item in values if item is not None), None)


def _in_units(function: Callable[..., Any], *values: Any) -> Any:
    """Call a function of values; NumPy gives up integers beside times that do not say their unit."""
    dtypes = [np.asarray(value).dtype for value in values]
    time = next((dtype for dtype in dtypes if dtype.kind in "mM"), None)
    if time is None:
        return function(*values)
    span = np.dtype(f"m8{time.str[3:]}")
    pairs = zip(values, dtypes, strict=True)
    return function(*(np.asarray(v).astype(span) if d.kind in "iub" else v for v, d in pairs))


def _whole(found: Any, rows: int) -> Values:
    if isinstance(found, np.ndarray) and found.shape[:1] == (rows,):
        return found
    return np.broadcast_to(found, (rows, *np.shape(found)))  # a comparison of texts with numbers


def _axes(values: Values) -> int:
    """Return how many axes a row has."""
    if isinstance(values, Constant):
        return np.ndim(values.value)
    assert isinstance(values, np.ndarray)  # nosec B101 # for mypy
    return values.ndim - 1


def _aligned(values: Values, axes: int) -> Any:
    if isinstance(values, Constant):
        return values.value
    assert isinstance(values, np.ndarray)  # nosec B101 # for mypy
    missing = axes - (values.ndim - 1)
    return values.reshape(len(values), *[1] * missing, *values.shape[1:]) if missing else values


def _moments(arguments: Sequence[Values]) -> list[Values]:
    """Read texts as moments where they stand beside moments."""
    kinds = [_kind(values) for values in arguments]
    if "M" not in kinds or "U" not in kinds:
        return list(arguments)
    found: list[Values] = []
    for values, kind in zip(arguments, kinds, strict=True):
        if kind == "U" and isinstance(values, Constant):
            try:
                values = Constant(np.datetime64(values.value))
            except ValueError as error:
                raise RowError(None, f"{values.value!r:.60} is no moment: {error}") from error
        found.append(values)
    return found


def _kind(values: Values) -> str:
    one = values.value if isinstance(values, Constant) else values
    if isinstance(one, list):
        one = next((item for item in one if item is not None), 0)
    return "U" if isinstance(one, str) else np.asarray(one).dtype.kind


# ---------------------------------------------------------------------------- logic


def truth(values: Values, rows: int) -> list[bool | None]:
    """Return for each row whether its single value is true, or None where there is none.

    Raises
    ------
    RowError
        If a row has an array; ``any`` and ``all`` make one truth of it.

    Examples
    --------
    >>> truth([np.True_, None, np.False_], 3)
    [True, None, False]
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufc":
        return values.astype(bool).tolist()  # type: ignore[no-any-return]
    found: list[bool | None] = []
    for i, item in enumerate(items_of(values, rows)):
        if np.ndim(item):
            shape = np.shape(item)
            raise RowError(
                i,
                f"a condition is true or false, not an array of shape {shape}; take any(...) or all(...)",
            )
        if isinstance(item, str):
            raise RowError(i, f"a condition is true or false, not the text {item!r:.40}")
        found.append(None if item is None else bool(item))
    return found


def from_truth(found: Sequence[bool | None]) -> Values:
    """Return truths as values.

    Examples
    --------
    >>> from_truth([True, False])
    array([ True, False])
    """
    return list(found) if None in found else np.array(found, bool)


def both(left: bool | None, right: bool | None) -> bool | None:
    """Return SQL's AND.

    Examples
    --------
    >>> both(None, False), both(None, True)
    (False, None)
    """
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def inverse(values: Values, rows: int) -> Values:
    """Return NOT, of each element.

    Examples
    --------
    >>> inverse(np.array([True, False]), 2)
    array([False,  True])
    """
    return applied(np.logical_not, [values], rows)


def is_missing(values: Values, rows: int) -> Values:
    """Return for each row whether it has no value.

    Examples
    --------
    >>> is_missing([None, 1], 2)
    array([ True, False])
    """
    if isinstance(values, np.ndarray):
        return np.zeros(rows, bool)
    if isinstance(values, Constant):
        return Constant(values.value is None)
    return np.array([item is None for item in values], bool)


def first_given(arguments: Sequence[Values], rows: int) -> Values:
    """Return for each row the first value that is there: COALESCE.

    Examples
    --------
    >>> first_given([[None, 1], Constant(7)], 2)
    array([7, 1])
    """
    columns = [items_of(values, rows) for values in arguments]
    found = [
        next((item for item in row if item is not None), None) for row in zip(*columns, strict=True)
    ]
    return gathered(found)


def null_if(a: Values, b: Values, rows: int) -> Values:
    """Return the first values, but none where both are equal: NULLIF.

    Examples
    --------
    >>> null_if(np.array([1, 2]), Constant(2), 2)
    [np.int64(1), None]
    """
    same = truth(applied(np.equal, [a, b], rows), rows)
    return gathered([None if s else item for item, s in zip(items_of(a, rows), same, strict=True)])


def among(values: Values, options: Sequence[Values], rows: int) -> Values:
    """Return whether values are equal to one of some others: IN.

    Parameters
    ----------
    values : Values
    options : sequence of Values
        A constant that is an array stands for its elements; so does a list of Python's numbers, which take the dtype
        of the values.
    rows : int

    Examples
    --------
    >>> among(np.array([1, 2]), [Constant(2), Constant(3)], 2)
    array([False,  True])
    """
    listed: list[Values] = []
    found: list[bool | None] | None = None
    for option in options:
        if isinstance(option, Constant) and np.ndim(option.value) == 1:
            found = _in_set(values, option.value, rows) if len(options) == 1 else None
            listed += [Constant(one) for one in (option.value if found is None else ())]
        else:
            listed.append(option)
    if found is not None:
        return from_truth(found)
    if not listed:
        return applied(lambda x: np.zeros(np.shape(x), bool), [values], rows)
    for option in listed:
        same = applied(np.equal, [values, option], rows)
        if not is_flat(same):
            raise RowError(
                None, "IN takes single values; contains(array, value) looks into an array"
            )
        now = truth(expanded(same, rows), rows)
        found = now if found is None else [_either(a, b) for a, b in zip(found, now, strict=True)]
    return from_truth(found or [])


def _in_set(values: Values, options: Array | list[Any], rows: int) -> list[bool | None] | None:
    """Return whether values are in a long list of numbers or texts, None if they have to be compared one by one."""
    array = np.asarray(options)
    if len(array) <= _FEW or array.dtype.kind not in "iufU" or not is_flat(values):
        return None
    items = list(items_of(values, rows))
    is_text = array.dtype.kind == "U"
    if any(item is not None and isinstance(item, str) != is_text for item in items):
        return None  # the comparison says what does not go together
    if isinstance(options, list):
        dtypes = {item.dtype for item in items if isinstance(item, np.generic)}
        if len(dtypes) > 1 or any(dtype.isbuiltin != 1 for dtype in dtypes):
            return None
        array = next((array.astype(dtype) for dtype in dtypes if dtype.kind == "f"), array)
    wanted = {*array.tolist()}
    return [None if item is None else bool(item in wanted) for item in items]


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left or right:
        return True
    return None if left is None or right is None else False


def alike(values: Values, pattern: Values, rows: int, fold: bool = False) -> Values:
    """Return whether texts are like a pattern, in which % is any text and _ any character.

    Examples
    --------
    >>> alike(np.array(["cat", "dog"]), Constant("c%"), 2)
    array([ True, False])
    """

    def one(text: Any, like: Any) -> bool:
        text, like = str(np.asarray(text)[()]), str(np.asarray(like)[()])
        return _is_like(text.casefold(), like.casefold()) if fold else _is_like(text, like)

    return by_rows(one, [values, pattern], rows)


def _is_like(text: str, like: str) -> bool:
    """Find the parts between the % from left to right: the first place that fits is always good enough."""
    first, *rest = [
        re.compile("".join("." if c == "_" else re.escape(c) for c in part), re.DOTALL)
        for part in like.split("%")
    ]
    if not rest:
        return first.fullmatch(text) is not None
    found = first.match(text)
    for part in rest[:-1]:
        found = part.search(text, found.end()) if found else None
    if found is None:
        return False
    width = len(like) - like.rindex("%") - 1
    return (
        len(text) - width >= found.end() and rest[-1].fullmatch(text, len(text) - width) is not None
    )


# ---------------------------------------------------------------------------- functions


def rounded(x: Any, digits: Any = 0) -> Any:
    """Return numbers with so many digits behind the point; whole numbers stay whole.

    Examples
    --------
    >>> float(rounded(1.26, 1))
    1.3
    """
    return np.round(x, int(digits))


def logarithm(base: Any, x: Any) -> Any:
    """Return the logarithm to a base.

    Examples
    --------
    >>> float(logarithm(2, 8))
    3.0
    """
    return np.log(x) / np.log(base)


ELEMENTS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "sign": np.sign, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "ln": np.log,
    "log2": np.log2, "log10": np.log10, "ceil": np.ceil, "floor": np.floor, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "power": np.power, "pow": np.power,
    "round": rounded, "greatest": np.maximum, "least": np.minimum, "mod": np.mod,
    "isnan": np.isnan, "is_nan": np.isnan, "isinf": np.isinf, "is_inf": np.isinf, "isfinite": np.isfinite,
    "degrees": np.degrees, "radians": np.radians,
}  # fmt: skip
"""Functions of single elements, by the names that SQL has for them."""


def cast(x: Any, dtype: Any) -> Array:
    """Return an array with another dtype, as NumPy converts it.

    Raises
    ------
    ValueError
        If a text is no number.

    Examples
    --------
    >>> cast([1.7], np.dtype("int32"))
    array([1], dtype=int32)
    """
    array = np.asarray(x)
    if array.dtype == object and np.dtype(dtype).kind != "U":
        array = np.asarray(array.tolist())
    if array.dtype.kind == "c" and np.dtype(dtype).kind in "iuf":
        array = array.real
    return array.astype(dtype)
