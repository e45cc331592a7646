"""What an expression of a query gives for a row, known before it runs: Spark wants the type of every column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.query.functions.operators import ELEMENTS
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.tree_names import DTYPES, arguments_of, function_name

SCALAR, ARRAY = "scalar", "array"
"""What Spark computes itself, and a tensor a row. Others are one value a row that NumPy computes."""

TEXT, DATE, TIME, TIME_NTZ = "text", "date", "time", "time_ntz"

EQUAL, EQUALS = "equal", "equals"
"""A tensor, or the tensors of a group, as Spark can compare them."""

_OVER_ROWS = (exp.AggFunc, exp.Window, exp.Subquery, exp.Exists, exp.Query)
_LOGIC = (exp.And, exp.Or, exp.Not)
_TRUTHS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is, exp.Like,
    exp.ILike, exp.Not, exp.And, exp.Or,
)  # fmt: skip
_NUMBERS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.BitwiseAnd,
    exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip
_CHOICES = (exp.Case, exp.If, exp.Cast, exp.TryCast, exp.Array)
_LEAVES = (exp.Literal, exp.Boolean, exp.Null)
_GIVEN = ("coalesce", "ifnull", "nvl", "nullif")


@dataclass(frozen=True)
class Kind:
    """What an expression gives for a row.

    Attributes
    ----------
    name : str
        `SCALAR`, `ARRAY`, ``"number"``, ``"int"``, ``"bool"``, `TEXT`, `DATE`, `TIME` or
        `TIME_NTZ`.
    ndim : int, or None
        Axes of an array, if that is known.
    form : str, or None
        Of boxes: what their numbers are, as their column declares it.
    collected : bool
        Whether it has a value of each row of a group.
    listed : bool
        Whether it is a list of scalars for Spark, not the struct TENSOR.
    classes : tuple of str, or None
        Of a column of classes: their names.
    most : int, or None
        Axes that an array has at most, if that is known.
    element : str
        What the name of an element's kind is.
    """

    name: str
    ndim: int | None = None
    form: str | None = None
    collected: bool = False
    listed: bool = False
    classes: tuple[str, ...] | None = field(default=None, repr=False)
    most: int | None = field(default=None, repr=False, compare=False)
    element: str = field(default="number", repr=False)


Resolve = Callable[[Any], Kind]

_PLAIN = Kind(SCALAR)


def kind_of(node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> Kind:
    """Return what an expression gives.

    Parameters
    ----------
    node : sqlglot expression
        From `parse`.
    resolve : callable
        Says it of a column.
    parameters : mapping of str to object
        Values of ``:name``.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT x[0], x[0, 1], x[1:], array_mean(x) > 2, x > 2, label + 1, sum(array_max(x)) FROM t")
    >>> def resolve(column):
    ...     return Kind("array", 2) if column.name == "x" else Kind("scalar")
    >>> [kind_of(one, resolve, {}).name for one in tree.selects]
    ['array', 'number', 'array', 'bool', 'array', 'scalar', 'scalar']
    """
    if isinstance(node, exp.Column):
        return resolve(node)
    if isinstance(node, exp.Placeholder):
        value: Any = parameters.get(node.name)
        is_array = isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0
        return Kind(ARRAY, int(np.ndim(value))) if is_array else _PLAIN
    if isinstance(node, (exp.Alias, exp.Paren)):
        return kind_of(node.this, resolve, parameters)
    if isinstance(node, (*_OVER_ROWS, *_LEAVES)):
        return _PLAIN
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return _PLAIN  # Spark knows whether a tensor is there
    if isinstance(node, exp.Bracket):
        return _sliced(node, resolve, parameters)
    if isinstance(node, exp.Anonymous):
        return _called(node, resolve, parameters)
    if not _is_evaluable(node):
        return _PLAIN
    kinds = [kind_of(child, resolve, parameters) for child in node.iter_expressions()]
    arrays = [kind for kind in kinds if kind.name == ARRAY]
    if arrays:
        known = [kind.ndim for kind in arrays if kind.ndim is not None]
        ndim = max(known) if len(known) == len(arrays) else None
        return _chosen(arrays, ndim) if _is_choice(node) else Kind(ARRAY, ndim)
    if all(kind.name == SCALAR for kind in kinds) or _is_sparks(node):
        return _PLAIN
    return _computed(node, resolve, parameters)


def _computed(node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> Kind:
    if isinstance(node, _TRUTHS):
        return Kind("bool")
    if isinstance(node, (exp.Cast, exp.TryCast)):
        dtype = DTYPES.get(str(getattr(node.args["to"].this, "name", "")).upper(), "float64")
        return Kind({"b": "bool", "i": "int", "u": "int", "s": TEXT}.get(dtype[0], "number"))
    return Kind(ARRAY, 1) if isinstance(node, exp.Array) else Kind("number")


def _is_choice(node: Any) -> bool:
    return isinstance(node, (exp.Case, exp.If)) or function_name(node) in _GIVEN


def _chosen(arrays: Sequence[Kind], ndim: int | None) -> Kind:
    """Return what one of some arrays is: its elements are theirs."""
    first, *others = (kind.element for kind in arrays)
    element = first if all(one == first for one in others) else "number"
    return Kind(ARRAY, ndim, listed=ndim == 1 and element == TEXT, element=element)


def _is_sparks(node: Any) -> bool:
    """Whether Spark does a part of the text over numbers of tensors: it joins conditions, so that those on scalars
    reach the files, and knows the types of what a choice is made of."""
    return isinstance(node, _LOGIC) or _is_choice(node)


def _sliced(node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> Kind:
    inner = kind_of(node.this, resolve, parameters)
    spans = [one for one in node.expressions if isinstance(one, (exp.Slice, exp.Var))]
    added = sum(isinstance(one, exp.Var) and one.name != "..." for one in spans)
    places = [one for one in node.expressions if not isinstance(one, (exp.Slice, exp.Var))]
    if any(
        isinstance(one, exp.Array) or kind_of(one, resolve, parameters).name == ARRAY
        for one in places
    ):
        return Kind(ARRAY, form=inner.form, element=inner.element)
    if inner.ndim is None:
        is_element = not spans and inner.most is not None and len(places) >= inner.most
        return Kind(inner.element) if is_element else Kind(ARRAY, form=inner.form)
    left = inner.ndim + added - len(places)
    is_list = left == 1 and inner.element == TEXT  # which no tensor holds
    if left > 0:
        return Kind(ARRAY, left, inner.form, listed=is_list, element=inner.element)
    return Kind(inner.element)


def _called(node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> Kind:
    function = find(node.name)
    if function is None:
        return _PLAIN
    given = arguments_of(node)
    kinds = [kind_of(one, resolve, parameters) for one in given]
    if node.name.casefold() == "mean" and all(kind.name == SCALAR for kind in kinds):
        return _PLAIN
    result = function.result if isinstance(function.result, str) else ARRAY
    if (function.name.startswith("array_") or function.name in ("any", "all")) and len(given) > 1:
        result = ARRAY
    if function.name == "shape" and len(given) > 1:
        result = "int"
    return Kind(result)


def _is_evaluable(node: Any) -> bool:
    """Whether NumPy can compute a node, and all that is in it."""
    for one in node.walk():
        if isinstance(one, _OVER_ROWS):
            return False
        if isinstance(one, (*_TRUTHS, *_NUMBERS, *_CHOICES, *_LEAVES, exp.Column, exp.Placeholder)):
            continue
        if isinstance(
            one,
            (exp.Bracket, exp.Slice, exp.Identifier, exp.Var, exp.DataType, exp.Alias, exp.Paren),
        ):
            continue
        name = function_name(one)
        if (
            name in ELEMENTS
            or name in (*_GIVEN, "greatest", "least")
            or (name and find(name) is not None)
        ):
            continue
        return False
    return True


def outside(kind: Kind) -> Kind:
    """Return what a column of an inner query is outside: what was computed is there."""
    return kind if kind.name == ARRAY else Kind(SCALAR, classes=kind.classes)
