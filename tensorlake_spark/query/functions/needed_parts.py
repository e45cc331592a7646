"""What part of a tensor an expression needs, so that no more of it is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.expressions import (
    arguments_of,
    evaluate,
    function_name,
    name_of,
)
from tensorlake_spark.query.functions.registry import find

Key = tuple[Any, ...]

SHAPE = "shape"
"""Instead of a key: only the shape and the dtype are needed."""


def is_tensor_work(node: Any, tensor_columns: Collection[str]) -> bool:
    """Whether an expression is for NumPy: it names a column of tensors, or has what only tensors have.

    Parameters
    ----------
    node : sqlglot expression
    tensor_columns : collection of str
        Names as `name_of` gives them.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT label, x, shape(x) FROM t")
    >>> [is_tensor_work(one, {"x"}) for one in tree.selects]
    [False, True, True]
    """
    known = {name.casefold() for name in tensor_columns}
    for one in node.walk():
        if isinstance(one, exp.Column) and name_of(one).casefold() in known:
            return True
        if isinstance(one, (exp.Bracket, exp.Array)):
            return True
        if isinstance(one, exp.Anonymous) and find(one.name) is not None:
            if function_name(one) == "mean" and not any(
                is_tensor_work(argument, tensor_columns) for argument in arguments_of(one)
            ):
                continue  # SQL's mean, over rows
            return True
    return False


def boxes_needed(
    nodes: Any, parameters: Mapping[str, Any] | None = None
) -> dict[str, Key | str | None]:
    """Return for each column what part of it is needed.

    Parameters
    ----------
    nodes : sqlglot expression, or sequence of them
        All that is evaluated of the same rows.
    parameters : mapping from str to object, optional
        Values of parameters, which may be bounds.

    Returns
    -------
    dict
        For each column a key of NumPy, if every use of it has the same brackets with the same bounds for all rows;
        ``"shape"``, if only its shape or dtype is asked for; None, if all of it is needed.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> boxes_needed(parse("SELECT array_mean(x[:2, 5]), shape(y), z FROM t").selects)
    {'x': (slice(None, 2, None), 5), 'y': 'shape', 'z': None}
    """
    found: dict[str, list[Key | str | None]] = {}
    for node in [nodes] if hasattr(nodes, "find_all") else nodes:
        for column in node.find_all(exp.Column):
            need = _need(column, parameters or {})
            known = found.setdefault(name_of(column), [])
            if need not in known:
                known.append(need)
    return {name: needs[0] if len(needs) == 1 else None for name, needs in found.items()}


def box_of(key: Key, shape: tuple[int, ...]) -> tuple[slice, ...] | None:
    """Return the smallest box that a key needs, None if that is not known to be less than all.

    Examples
    --------
    >>> box_of((slice(1, 3), ..., -1), (5, 6, 7))
    (slice(1, 3, None), slice(0, 6, None), slice(6, 7, None))
    """
    if any(part is None for part in key):
        return None
    if ... in key:
        place = key.index(...)
        rest = len(shape) - (len(key) - 1)
        key = (*key[:place], *[slice(None)] * rest, *key[place + 1 :])
    if len(key) > len(shape):
        return None
    out = []
    for part, length in zip((*key, *[slice(None)] * (len(shape) - len(key))), shape, strict=True):
        if isinstance(part, slice):
            if part.step == 0:  # whoever takes it from the values names the sample, too
                return None
            chosen = range(*part.indices(length))
        elif isinstance(part, (int, np.integer)) and -length <= part < length:
            chosen = range(int(part) % length, int(part) % length + 1)
        else:
            return None
        least, most = (min(chosen), max(chosen) + 1) if len(chosen) else (0, 0)
        out.append(slice(least, most))
    return tuple(out)


def without_brackets(node: Any, names: Collection[str]) -> Any:
    """Return a copy of an expression for columns that are crops already: their brackets are left out.

    Parameters
    ----------
    node : sqlglot expression
    names : collection of str
        The columns of which `boxes_needed` gave a key, and of which that part was read.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> without_brackets(parse("SELECT array_mean(x[:2]) FROM t").selects[0], {"x"}).sql()
    'ARRAY_MEAN(x)'
    """
    made = node.copy()
    holder = exp.Paren(this=made)
    for bracket in list(holder.find_all(exp.Bracket)):
        if isinstance(bracket.this, exp.Column) and name_of(bracket.this) in names:
            bracket.replace(bracket.this)
    return holder.this


def _need(column: Any, parameters: Mapping[str, Any]) -> Key | str | None:
    around = column.parent
    if isinstance(around, exp.Bracket) and around.this is column:
        return _key(around.expressions, parameters)
    if isinstance(around, exp.Anonymous):
        function = find(around.name)
        if function is not None and function.reads == SHAPE and around.expressions[0] is column:
            return SHAPE
    return None


def _key(items: Sequence[Any], parameters: Mapping[str, Any]) -> Key | None:
    parts: list[Any] = []
    for item in items:
        if isinstance(item, exp.Var):
            parts.append(... if item.name == "..." else None)
            continue
        bounds = isinstance(item, exp.Slice)
        nodes = [item.this, item.expression, item.args.get("step")] if bounds else [item]
        values = [None if one is None else _fixed(one, parameters) for one in nodes]
        if any(one is not None and value is None for one, value in zip(nodes, values, strict=True)):
            return None
        parts.append(slice(*values) if bounds else values[0])
    return tuple(parts)


def _fixed(node: Any, parameters: Mapping[str, Any]) -> int | None:
    """Return the integer that a bound is for every row, or None."""
    if node.find(exp.Column, exp.Query) is not None:
        return None
    try:
        value = np.asarray(evaluate(node, {}, 1, parameters)[0])
    except InvalidQueryError:
        return None
    return int(value) if value.ndim == 0 and value.dtype.kind in "iu" else None
