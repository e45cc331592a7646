"""The values of a column for some rows, as functions take and give them.

They are an array with the rows along its first axis, a list with an array or None for each row (where shapes differ,
or a value is missing), or a `Constant`, which is the same for every row.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorlake_spark.threads import go_on

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Constant:
    """One value for every row: a number, a text, None, a bool or an array.

    Examples
    --------
    >>> expanded(Constant(3), 2)
    array([3, 3])
    """

    value: Any


_NUMBERS = (int, float, complex, np.number)

Values: TypeAlias = "Array | list[Any] | Constant"


class RowError(Exception):
    """A value cannot be computed; `row` is its number, or None if all rows have the same fault."""

    def __init__(self, row: int | None, message: str) -> None:
        super().__init__(message)
        self.row = row


def length_of(values: Values) -> int | None:
    """Return the number of rows, or None of a constant.

    Examples
    --------
    >>> length_of(Constant(1)), length_of([None, None])
    (None, 2)
    """
    return None if isinstance(values, Constant) else len(values)


def items_of(values: Values, rows: int) -> Iterator[Any]:
    """Yield the value of each row.

    Examples
    --------
    >>> list(items_of(Constant(1), 2))
    [1, 1]
    """
    if isinstance(values, Constant):
        return iter([values.value] * rows)
    return iter(values)


def gathered(items: Sequence[Any]) -> Array | list[Any]:
    """Return values of rows as an array, if they are alike and none is missing, else as a list.

    Parameters
    ----------
    items : sequence
        One a row: arrays, NumPy's or Python's scalars, texts, or None.

    Examples
    --------
    >>> gathered([np.float32(1), np.float32(2)])
    array([1., 2.], dtype=float32)
    >>> gathered([np.int8(1), None, 2.5])
    [np.float64(1.0), None, np.float64(2.5)]
    """
    if not items:
        return np.zeros(0)
    if any(item is None for item in items):
        return _gathered_beside_nulls(items)
    arrays = [np.asarray(item) for item in items]
    first = arrays[0]
    if any(one.shape != first.shape for one in arrays):
        return arrays
    if any(one.dtype != first.dtype for one in arrays) and (
        first.ndim or len({one.dtype.kind in "US" for one in arrays}) > 1
    ):
        return arrays
    if first.ndim:
        return np.stack(arrays)
    found = np.array(items)
    is_whole = found.dtype.kind == "f" and all(one.dtype.kind in "iu" for one in arrays)
    if (
        is_whole and min(items) >= 0
    ):  # of uint64 beside a literal NumPy makes floats, which are not all integers
        return np.array(items, np.uint64)
    return found


def _gathered_beside_nulls(items: Sequence[Any]) -> list[Any]:
    """Return values with numbers of one dtype: a row that is missing does not change how others are computed."""
    there = np.array([item is not None for item in items])
    given = [item for item in items if item is not None]
    kinds = {type(item) for item in given}
    if all(issubclass(kind, _NUMBERS) and kind is not bool for kind in kinds) and (
        len(kinds) > 1 or not kinds.isdisjoint((int, float, complex))
    ):
        found = gathered(given)
        if isinstance(found, np.ndarray) and found.dtype != object:
            return beside_nulls(found, there)
    return list(items)


def beside_nulls(values: Array, there: Array) -> list[Any]:
    """Return values with None in the rows that have none.

    They stay NumPy's: a number of Python takes the dtype of the array that it is computed with.

    Parameters
    ----------
    values : ndarray
        Of the rows that have one.
    there : bool ndarray
        Which rows these are.

    Examples
    --------
    >>> beside_nulls(np.array([5], np.int8), np.array([False, True]))
    [None, np.int8(5)]
    """
    out: list[Any] = [None] * len(there)
    for place, value in zip(np.flatnonzero(there).tolist(), values, strict=True):
        out[place] = value
    return out


def taken(values: Values, index: Array) -> Values:
    """Return the values of some rows.

    Examples
    --------
    >>> taken(np.array([5, 6, 7]), np.array([2, 0]))
    array([7, 5])
    """
    if isinstance(values, Constant):
        return values
    if isinstance(values, np.ndarray):
        return values[index]
    return [values[i] for i in index.tolist()]


def expanded(values: Values, rows: int) -> Array | list[Any]:
    """Return values with one entry a row: a constant is repeated, without a copy of an array.

    Examples
    --------
    >>> expanded(Constant(None), 2)
    [None, None]
    """
    if not isinstance(values, Constant):
        return values
    if values.value is None:
        return [None] * rows
    one = np.asarray(values.value)
    if one.dtype == object:
        return [values.value] * rows
    return np.broadcast_to(one, (rows, *one.shape)) if one.ndim else np.full(rows, one)


def is_flat(values: Values) -> bool:
    """Whether every row has a single value, or none: a number, a text, a truth.

    Examples
    --------
    >>> is_flat(np.zeros(3)), is_flat([np.zeros(2)])
    (True, False)
    """
    if isinstance(values, Constant):
        return np.ndim(values.value) == 0
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    return all(item is None or np.ndim(item) == 0 for item in values)


def by_rows(
    one: Callable[..., Any], arguments: Sequence[Values], rows: int, stack: bool = True
) -> Values:
    """Call a function for each row; where an argument is missing, so is the result.

    Parameters
    ----------
    one : callable
        Takes the arguments of one row, and returns its value.
    arguments : sequence of Values
    rows : int
    stack : bool
        Whether what is alike becomes one array, which is a copy.

    Returns
    -------
    Values
        A constant, if all arguments are.

    Raises
    ------
    RowError
        If the function raises; it has the number of the row.

    Examples
    --------
    >>> by_rows(np.sum, [[np.ones(2), None, np.ones(3)]], 3)
    [np.float64(2.0), None, np.float64(3.0)]
    """
    if all(isinstance(argument, Constant) for argument in arguments):
        return Constant(_called(one, [argument.value for argument in arguments], None))  # type: ignore[union-attr]
    columns = [items_of(argument, rows) for argument in arguments]
    found = [_called(one, row, i) for i, row in enumerate(zip(*columns, strict=True))]
    return gathered(found) if stack else found


def _called(one: Callable[..., Any], row: Sequence[Any], i: int | None) -> Any:
    go_on()
    for value in row:  # `in` would compare arrays
        if value is None:
            return None
    try:
        return one(*row)
    except (ArithmeticError, IndexError, TypeError, ValueError, MemoryError) as error:
        raise RowError(i, _plain(error)) from error


def _plain(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


SMALL = 4096
"""Arrays of so many elements or fewer are computed many rows at once; for larger ones a call a row costs little."""


def by_shapes(
    stacked: Callable[..., Any], arguments: Sequence[Values], rows: int, large: bool = False
) -> Values | None:
    """Call a function once for all rows whose arguments have the same shapes, where the arrays are small.

    Parameters
    ----------
    stacked : callable
        Takes arrays with rows along the first axis, or `Constant`; returns an array, or None, if it cannot.
    arguments : sequence of Values
        At least one is no constant.
    rows : int
    large : bool
        Whether it may be called for large arrays, where all rows lie in one.

    Returns
    -------
    Values or None
        None, if this is not the way: the arrays are large, or the function cannot take them, or it failed.

    Examples
    --------
    >>> by_shapes(lambda x: x.sum(axis=1), [[np.ones(2), np.ones(3), None, np.ones(2)]], 4)
    [np.float64(2.0), np.float64(3.0), None, np.float64(2.0)]
    """
    lists = [one for one in arguments if not (large and isinstance(one, np.ndarray))]
    if any(map(_is_missing, arguments)) or any(map(_is_large, lists)):
        return None
    try:
        if not any(isinstance(argument, list) for argument in arguments):
            found = stacked(*arguments)
            return None if found is None else np.asarray(found)
        groups: dict[Any, list[int]] = {}
        missing = False
        lists = [argument for argument in arguments if isinstance(argument, list)]
        for i, parts in enumerate(zip(*lists, strict=True)):
            if any(part is None for part in parts):
                missing = True
            else:
                kinds = tuple([_kind(part) for part in parts])
                groups.setdefault(kinds, []).append(i)
        if len(groups) * 2 > rows:
            return None
        return _grouped(stacked, arguments, rows, list(groups.values()), missing)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return None  # row by row the fault is found, and which row has it


def _grouped(
    stacked: Callable[..., Any],
    arguments: Sequence[Values],
    rows: int,
    groups: list[list[int]],
    missing: bool,
) -> Values | None:
    parts: list[tuple[list[int], Array]] = []
    for group in groups:
        index = np.array(group)
        given: list[Any] = []
        for argument in arguments:
            if isinstance(argument, list):
                given.append(np.stack([np.asarray(argument[i]) for i in group]))
            else:
                given.append(taken(argument, index))
        found = stacked(*given)
        if found is None:
            return None
        parts.append((group, np.asarray(found)))
    alike = len({(part.shape[1:], part.dtype) for _, part in parts}) == 1
    if alike and not missing:
        first = parts[0][1]
        out = np.empty((rows, *first.shape[1:]), first.dtype)
        for group, part in parts:
            out[group] = part
        return out
    items: list[Any] = [None] * rows
    for group, part in parts:
        for i, item in zip(group, part, strict=True):
            items[i] = item
    return items


def _kind(part: Any) -> Any:
    return (part.shape, part.dtype) if isinstance(part, np.ndarray) else type(part)


def _is_missing(values: Values) -> bool:
    return isinstance(values, Constant) and values.value is None


def _is_large(values: Values) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype == object or values.size > SMALL * len(values)
    if isinstance(values, list):
        total = sum(item.size for item in values if isinstance(item, np.ndarray))
        return total > SMALL * len(values)
    return False


def for_functions(values: Values) -> Values:
    """Return values as functions of tensors take them: lists inside become arrays, dates and times those of NumPy.

    Examples
    --------
    >>> for_functions([None, [1, 2], datetime.date(2020, 1, 1)])
    [None, array([1, 2]), np.datetime64('2020-01-01')]
    """
    return [_for_functions(v) for v in values] if isinstance(values, list) else values


def _for_functions(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return _moment(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        value = _as_array(value)
    if isinstance(value, np.ndarray) and value.dtype == object and value.size:
        moments = [item for item in value.flat if item is not None]
        if moments and all(isinstance(item, datetime.date) for item in moments):
            found = [np.datetime64("NaT", "D") if v is None else _moment(v) for v in value.flat]
            return np.array(found).reshape(value.shape)
    return value


def _moment(value: datetime.date) -> np.datetime64:
    """Return a date, or a time, as NumPy has it; a time with a zone in UTC, as those of columns are."""
    if not isinstance(value, datetime.datetime):
        return np.datetime64(value, "D")
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _as_array(items: Sequence[Any]) -> Array:
    """Return a list as an array, of objects where its items have different shapes."""
    try:
        return np.asarray(items)
    except ValueError:
        out = np.empty(len(items), object)
        for place, item in enumerate(items):
            out[place] = item
        return out
