"""What stands in the brackets behind a tensor: NumPy's keys, with bounds that may differ from row to row."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorlake_spark.query.functions.row_values import (
    Array,
    Constant,
    Values,
    by_rows,
    items_of,
)


@dataclass(frozen=True)
class Bounds:
    """A slice whose three parts are values; a part that is not there is `Constant(None)` with `given` false."""

    start: Values | None
    stop: Values | None
    step: Values | None


Item: TypeAlias = "Bounds | Values | None"
"""One part of a key; None is a new axis, and a constant Ellipsis stands for the axes between."""


def fixed_key(items: Sequence[Item]) -> tuple[Any, ...] | None:
    """Return a key that is the same for every row, or None if it is not, or if a bound is missing.

    Raises
    ------
    TypeError
        If a bound is not an integer.

    Examples
    --------
    >>> fixed_key([Bounds(None, Constant(5), None), Constant(-1), None, Constant(...)])
    (slice(None, 5, None), -1, None, Ellipsis)
    """
    parts: list[Any] = []
    for item in items:
        values = [item.start, item.stop, item.step] if isinstance(item, Bounds) else [item]
        for one in values:
            if one is not None and (not isinstance(one, Constant) or one.value is None):
                return None
        parts.append(_part(item, [None if one is None else one.value for one in values]))  # type: ignore[union-attr]
    return tuple(parts)


def slice_values(values: Values, items: Sequence[Item], rows: int, stack: bool = True) -> Values:
    """Return a part of each row's array.

    Parameters
    ----------
    values : Values
    items : sequence of Item
        The key.
    rows : int
    stack : bool
        Whether parts that are alike become one array, which is a copy.

    Returns
    -------
    Values
        Views where NumPy gives views. A row is None, if its array or a bound is.

    Raises
    ------
    RowError
        If an array has too few axes or a position is out of bounds. Slices out of bounds are cut, as NumPy does.

    Examples
    --------
    >>> slice_values(np.arange(6).reshape(2, 3), [Bounds(Constant(-2), None, None)], 2)
    array([[1, 2],
           [4, 5]])
    """
    try:
        key = fixed_key(items)
    except TypeError:
        key = None
    if key is not None and isinstance(values, np.ndarray) and not _is_fancy(key):
        try:
            whole = (slice(None), *key)
            return np.asarray(values[whole])
        except (IndexError, TypeError, ValueError):
            pass  # row by row it is found which one
    if key is not None:
        return by_rows(lambda x: np.asarray(x)[key], [values], rows, stack)
    flat: list[Values] = []
    for item in items:
        flat += _bounds(item)
    fixed = [one.value for one in flat if isinstance(one, Constant)]
    if isinstance(values, Constant) and len(fixed) == len(flat):
        return by_rows(lambda x: _picked(x, items, fixed), [values], rows)
    missing = _missing(flat, rows)
    arrays = [None if gone else x for x, gone in zip(items_of(values, rows), missing, strict=True)]
    keys = zip(*[items_of(one, rows) for one in flat], strict=True)
    return by_rows(lambda x, key: _picked(x, items, key), [arrays, list(keys)], rows)


def _bounds(item: Item) -> list[Values]:
    if isinstance(item, Bounds):
        return [one for one in (item.start, item.stop, item.step) if one is not None]
    return [] if item is None else [item]


def _missing(flat: list[Values], rows: int) -> list[bool]:
    found = [False] * rows
    for one in flat:
        found = [a or b is None for a, b in zip(found, items_of(one, rows), strict=True)]
    return found


def _picked(x: Any, items: Sequence[Item], given: Sequence[Any]) -> Array | None:
    if any(value is None for value in given):
        return None
    rest: Iterator[Any] = iter(given)
    parts = []
    for item in items:
        if isinstance(item, Bounds):
            values = [
                None if one is None else next(rest) for one in (item.start, item.stop, item.step)
            ]
        else:
            values = [None if item is None else next(rest)]
        parts.append(_part(item, values))
    found: Array = np.asarray(x)[tuple(parts)]
    return found


def _part(item: Item, values: Sequence[Any]) -> Any:
    if isinstance(item, Bounds):
        return slice(*[None if value is None else _index(value) for value in values])
    value = values[0]
    if item is None or value is Ellipsis:
        return value
    return np.asarray(value) if np.ndim(value) else _index(value)


def _index(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{value} is not a position; positions are integers")
    try:
        return operator.index(value if not isinstance(value, np.ndarray) else value[()])
    except TypeError:
        value = value.item() if isinstance(value, np.generic) else value
        raise TypeError(f"{value!r:.40} is not a position; positions are integers") from None


def _is_fancy(key: tuple[Any, ...]) -> bool:
    return any(isinstance(part, np.ndarray) for part in key)
