"""The values of an expression of a query: a tree of sqlglot is walked, and NumPy computes it for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.errors import InvalidQueryError, did_you_mean
from tensorlake_spark.query.functions import operators
from tensorlake_spark.query.functions.bracket_keys import Bounds, Item, slice_values
from tensorlake_spark.query.functions.operators import applied, from_truth, truth
from tensorlake_spark.query.functions.registry import FUNCTIONS, find
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
    taken,
)
from tensorlake_spark.query.functions.tree_names import (
    STANDS_ALONE,
    arguments_of,
    cast_dtype,
    function_name,
    name_of,
    parameter_value,
    sources_of,
    text_of,
)

__all__ = [
    "arguments_of",
    "evaluate",
    "function_name",
    "name_of",
    "parameter_value",
    "sources_of",
    "text_of",
]

_BINARY: dict[type[Any], Callable[..., Any]] = {
    exp.Add: np.add, exp.Sub: np.subtract, exp.Mul: np.multiply, exp.Div: np.true_divide,
    exp.IntDiv: np.floor_divide, exp.Mod: np.mod,
    exp.EQ: np.equal, exp.NEQ: np.not_equal, exp.LT: np.less, exp.LTE: np.less_equal,
    exp.GT: np.greater, exp.GTE: np.greater_equal,
    exp.BitwiseAnd: np.bitwise_and, exp.BitwiseOr: np.bitwise_or, exp.BitwiseXor: np.bitwise_xor,
    exp.BitwiseLeftShift: np.left_shift, exp.BitwiseRightShift: np.right_shift,
}  # fmt: skip
_UNARY: dict[type[Any], Callable[..., Any]] = {
    exp.Neg: np.negative,
    exp.Not: np.logical_not,
    exp.BitwiseNot: np.invert,
}


@dataclass(frozen=True)
class _Rows:
    """Some rows, with all that an expression may ask for."""

    columns: Mapping[str, Values]
    count: int
    parameters: Mapping[str, Any]
    place: Callable[[int], str]
    numbers: Array | None = None
    folded: dict[str, str] = field(default_factory=dict)

    def of(self, index: Array) -> _Rows:
        """Return some of these rows."""
        columns = _Lazy(self.columns, index)
        numbers = index if self.numbers is None else self.numbers[index]
        return replace(self, columns=columns, count=len(index), numbers=numbers)

    def named(self, row: int) -> str:
        """Return what messages call a row."""
        return self.place(row if self.numbers is None else int(self.numbers[row]))


class _Lazy(Mapping[str, Values]):
    """Columns of some rows, picked when they are asked for."""

    def __init__(self, columns: Mapping[str, Values], index: Array) -> None:
        self._columns, self._index = columns, index

    def __getitem__(self, name: str) -> Values:
        return taken(self._columns[name], self._index)

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def evaluate(
    node: Any,
    columns: Mapping[str, Values],
    rows: int,
    parameters: Mapping[str, Any] | None = None,
    place: Callable[[int], str] | None = None,
) -> Array | list[Any]:
    """Return the values of an expression for some rows.

    Parameters
    ----------
    node : sqlglot expression
        From a tree that `parse` has returned.
    columns : mapping from str to Values
        The columns that it names, by `name_of`.
    rows : int
        Their length.
    parameters : mapping from str to object, optional
        Values of ``:name``: numbers, texts, lists or arrays. They are the same for every row.
    place : callable, optional
        Takes the number of a row here, and returns what a message shall call it, such as ``"sample 17"``.

    Returns
    -------
    ndarray or list
        An array with the rows along its first axis, or a list with an array, a NumPy scalar or None for each row.

    Raises
    ------
    InvalidQueryError
        If a column, a function or a parameter is not there, or a value cannot be computed; it names the row.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> node = parse("SELECT array_mean(x[:, 1:]) > :least FROM t").selects[0]
    >>> evaluate(node, {"x": np.arange(12).reshape(2, 2, 3)}, 2, {"least": 5})
    array([False,  True])
    """
    named = place or (lambda row: f"row {row}")
    given = _Rows(columns, rows, parameters or {}, named)
    with np.errstate(all="ignore"):
        return expanded(_value(node, given), rows)


def _value(node: Any, rows: _Rows, brackets: Any = None) -> Values:
    handler = _HANDLERS.get(type(node))
    if brackets is not None and handler is _bracket:
        handler = brackets
    try:
        if handler is not None:
            return handler(node, rows)
        return _function(node, rows)
    except RowError as error:
        where = "" if error.row is None else f" ({rows.named(error.row)})"
        raise InvalidQueryError(f"{text_of(node):.200}: {error}{where}") from error


def _column(node: Any, rows: _Rows) -> Values:
    name = name_of(node)
    if name in rows.columns:
        found = rows.columns[name]
    else:
        if not rows.folded:
            rows.folded.update({known.casefold(): known for known in rows.columns})
        known = rows.folded.get(name.casefold())
        if known is None:
            raise InvalidQueryError(
                f"there is no column {name!r:.80}{did_you_mean(name, rows.columns)}"
            )
        found = rows.columns[known]
    if isinstance(found, np.ndarray) and found.dtype == object:
        return gathered(list(found))
    return found


def _literal(node: Any, rows: _Rows) -> Values:
    text = node.this
    if node.is_string:
        return Constant(text)
    try:
        return Constant(int(text))
    except ValueError:
        return Constant(float(text))


def _parameter(node: Any, rows: _Rows) -> Values:
    if node.name not in rows.parameters:
        near = did_you_mean(node.name, rows.parameters)
        raise InvalidQueryError(
            f"the parameter :{node.name} has no value{near or f'; give it: parameters={{{node.name!r}: ...}}'}"
        )
    return Constant(parameter_value(node.name, rows.parameters[node.name]))


def _binary(node: Any, rows: _Rows) -> Values:
    arguments = [_value(node.this, rows), _value(node.expression, rows)]
    return applied(_BINARY[type(node)], arguments, rows.count)


def _unary(node: Any, rows: _Rows) -> Values:
    value = _value(node.this, rows)
    if isinstance(node, exp.Neg) and isinstance(value, Constant) and type(value.value) is int:
        return Constant(-value.value)  # of 2**63 NumPy makes uint64, which stays above zero
    return applied(_UNARY[type(node)], [value], rows.count)


def _joined(node: Any, rows: _Rows) -> Values:
    """AND and OR: the right side is computed only for rows that the left side does not decide."""
    decides = not isinstance(node, exp.And)
    parts = list(_flat(node, type(node)))
    found: Values = _value(parts[0], rows)
    for part in parts[1:]:
        found = _one_joined(found, part, rows, decides)
    if len(parts) > 1 and is_flat(found) and not isinstance(found, Constant):
        return from_truth(truth(found, rows.count))
    return found


def _one_joined(left: Values, part: Any, rows: _Rows, decides: bool) -> Values:
    function = np.logical_or if decides else np.logical_and
    if not is_flat(left):
        return applied(function, [left, _value(part, rows)], rows.count)
    so_far = truth(left, rows.count)
    open_ = np.array([i for i, one in enumerate(so_far) if one is not decides], np.int64)
    if not len(open_):
        return from_truth(so_far)
    right = _value(part, rows if len(open_) == rows.count else rows.of(open_))
    if not is_flat(right):
        return applied(function, [left, _value(part, rows)], rows.count)
    for i, one in zip(open_.tolist(), truth(right, len(open_)), strict=True):
        before = so_far[i]
        if decides:
            before, one = _opposite(before), _opposite(one)
        now = operators.both(before, one)
        so_far[i] = _opposite(now) if decides else now
    return from_truth(so_far)


def _opposite(one: bool | None) -> bool | None:
    return None if one is None else not one


def _flat(node: Any, kind: type[Any]) -> Any:
    todo = [node]
    while todo:
        one = todo.pop()
        if type(one) is kind:
            todo += [one.expression, one.this]
        else:
            yield one


def _bracket(node: Any, rows: _Rows, stack: bool = True) -> Values:
    items = [_item(i, rows) for i in node.expressions]
    return slice_values(_value(node.this, rows), items, rows.count, stack)


def _views(node: Any, rows: _Rows) -> Values:
    return _bracket(node, rows, False)


def _item(node: Any, rows: _Rows) -> Item:
    if isinstance(node, exp.Var):
        return Constant(...) if node.name == "..." else None
    if not isinstance(node, exp.Slice):
        return _value(node, rows)
    parts = [node.this, node.expression, node.args.get("step")]
    return Bounds(*[None if part is None else _value(part, rows) for part in parts])


def _array(node: Any, rows: _Rows) -> Values:
    parts = [_value(part, rows) for part in node.expressions]

    def one(*items: Any) -> Any:
        made = [np.asarray(item) for item in items]
        if len({item.shape for item in made}) > 1:
            raise ValueError(f"the parts of an array have shapes {[item.shape for item in made]}")
        found = np.array(items) if all(item.ndim == 0 for item in made) else np.stack(made)
        if found.dtype == object:
            raise TypeError(
                f"the parts of an array have types {[str(item.dtype) for item in made]}"
            )
        return found

    return by_rows(one, parts, rows.count) if parts else Constant(np.zeros(0))


def _case(node: Any, rows: _Rows) -> Values:
    if isinstance(node, exp.If):
        branches: list[tuple[Any, Any]] = [(node.this, node.args["true"])]
        default = node.args.get("false")
    else:
        subject = node.this
        branches = [
            (one.this if subject is None else exp.EQ(this=subject.copy(), expression=one.this.copy()),
             one.args["true"])
            for one in node.args["ifs"]
        ]  # fmt: skip
        default = node.args.get("default")
    out: list[Any] = [None] * rows.count
    left = np.arange(rows.count)
    for condition, result in branches:
        if not len(left):
            break
        part = rows if len(left) == rows.count else rows.of(left)
        true = np.array([one is True for one in truth(_value(condition, part), len(left))], bool)
        _fill(out, left[true], result, rows)
        left = left[~true]
    if default is not None:
        _fill(out, left, default, rows)
    return gathered(out)


def _fill(out: list[Any], index: Array, node: Any, rows: _Rows) -> None:
    if len(index):
        values = _value(node, rows.of(index))
        for i, item in zip(index.tolist(), items_of(values, len(index)), strict=True):
            out[i] = item


def _cast(node: Any, rows: _Rows) -> Values:
    dtype = cast_dtype(node)
    lenient = isinstance(node, exp.TryCast)

    def one(x: Any) -> Any:
        try:
            return operators.cast(x, dtype)[()]
        except (TypeError, ValueError):
            if lenient:
                return None
            raise

    values = _value(node.this, rows)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and dtype.kind in "biuf":
        return values.astype(dtype)
    return by_rows(one, [values], rows.count)


def _between(node: Any, rows: _Rows) -> Values:
    this = _value(node.this, rows)
    low = applied(np.greater_equal, [this, _value(node.args["low"], rows)], rows.count)
    high = applied(np.less_equal, [this, _value(node.args["high"], rows)], rows.count)
    if not (is_flat(low) and is_flat(high)):
        return applied(np.logical_and, [low, high], rows.count)
    pairs = zip(truth(low, rows.count), truth(high, rows.count), strict=True)
    return from_truth([operators.both(a, b) for a, b in pairs])


def _in(node: Any, rows: _Rows) -> Values:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        return _refused(node)
    options = [_option(one, rows) for one in node.expressions]
    return operators.among(_value(node.this, rows), options, rows.count)


def _option(node: Any, rows: _Rows) -> Values:
    """Return what IN compares with: of a list of Python's numbers each is as it would be alone."""
    found = _value(node, rows)
    given = rows.parameters.get(node.name) if isinstance(node, exp.Placeholder) else None
    if not isinstance(given, (list, tuple)) or not isinstance(found, Constant):
        return found
    is_list = found.value.ndim == 1 and found.value.dtype.kind in "iuf"
    return Constant(found.value.tolist()) if is_list else found


def _is(node: Any, rows: _Rows) -> Values:
    missing = operators.is_missing(_value(node.this, rows), rows.count)
    if isinstance(node.expression, exp.Null):
        return missing
    wanted = bool(node.expression.this)
    found = truth(_value(node.this, rows), rows.count)
    return from_truth([one is wanted for one in found])


def _like(node: Any, rows: _Rows) -> Values:
    both = _value(node.this, rows), _value(node.expression, rows)
    found = operators.alike(*both, rows.count, fold=isinstance(node, exp.ILike))
    return operators.inverse(found, rows.count) if node.args.get("negate") else found


def _refused(node: Any, rows: _Rows | None = None) -> Values:
    raise InvalidQueryError(STANDS_ALONE.format(text_of(node)))


def _function(node: Any, rows: _Rows) -> Values:
    name = function_name(node)
    function = find(name) if isinstance(node, exp.Anonymous) and name else None
    if function is not None:
        # Those of this package take parts of arrays as they lie.
        brackets = _bracket if function.users else _views
        return function([_value(one, rows, brackets) for one in arguments_of(node)], rows.count)
    if name is None or isinstance(node, (exp.AggFunc, exp.Window)):
        return _refused(node)
    given = arguments_of(node)
    if name in ("coalesce", "ifnull", "nvl"):
        return operators.first_given([_value(one, rows) for one in given], rows.count)
    if name == "nullif":
        return operators.null_if(_value(given[0], rows), _value(given[1], rows), rows.count)
    element = operators.ELEMENTS.get(name)
    if element is None:
        near = did_you_mean(name, {*FUNCTIONS.names(), *operators.ELEMENTS})
        raise InvalidQueryError(
            f"{text_of(node):.200}: {name!r:.80} is not a function on tensors{near}"
        )
    values = [_value(one, rows) for one in given]
    if name in ("greatest", "least") and values:
        found = values[0]
        for other in values[1:]:
            found = applied(element, [found, other], rows.count)
        return found
    return applied(element, values, rows.count)


_HANDLERS: dict[type[Any], Callable[[Any, _Rows], Values]] = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_UNARY, _unary),
    exp.Column: _column,
    exp.Identifier: _refused,
    exp.Literal: _literal,
    exp.Boolean: lambda node, rows: Constant(bool(node.this)),
    exp.Null: lambda node, rows: Constant(None),
    exp.Placeholder: _parameter,
    exp.Paren: lambda node, rows: _value(node.this, rows),
    exp.Alias: lambda node, rows: _value(node.this, rows),
    exp.And: _joined,
    exp.Or: _joined,
    exp.Bracket: _bracket,
    exp.Array: _array,
    exp.Case: _case,
    exp.If: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
}
