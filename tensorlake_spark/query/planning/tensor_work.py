"""Which parts of a tree NumPy computes, and which are left to DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.datasets.types.annotations import BoundingBox
from tensorlake_spark.query.functions.boxes import with_forms
from tensorlake_spark.query.functions.expressions import arguments_of, function_name
from tensorlake_spark.query.functions.operators import ELEMENTS
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.sources.source_columns import Lazy, Leaf, Ref, ScalarLeaf, TensorLeaf

SCALAR, NUMBER, ARRAY = "scalar", "number", "array"
"""What a node is: for DuckDB; one value a row that NumPy computes; a tensor a row."""

SAID = "said"
"""What the text calls a column, in the meta of a node whose name a step has changed."""

_LOGIC = (exp.And, exp.Or, exp.Not)
_OPERATIONS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.EQ, exp.NEQ, exp.LT,
    exp.LTE, exp.GT, exp.GTE, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
    exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Between, exp.Case, exp.If, exp.Cast,
    exp.TryCast, exp.Is, exp.In, exp.Like, exp.ILike, exp.Paren, exp.Array,
)  # fmt: skip
_LEAVES = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder)
_OVER_ROWS = (exp.AggFunc, exp.Window, exp.Subquery, exp.Exists, exp.Query)
_ROWS = "rows"  # a scalar in which something is computed over rows, as NumPy cannot


def is_leaf(node: Any) -> bool:
    """Whether a node of a resolved tree is a tensor: stored columns have a table, tensors have none."""
    return isinstance(node, exp.Column) and not node.table


def kind_of(node: Any, parameters: Mapping[str, Any]) -> str:
    """Return what a node of a resolved tree is.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT t.a, x, array_mean(x), x * 2, array_mean(x) > t.a, t.a > 3, sum(t.a) FROM t")
    >>> [kind_of(one, {}) for one in tree.selects]
    ['scalar', 'array', 'number', 'array', 'number', 'scalar', 'scalar']
    """
    kind = _kind_or_rows(node, parameters)
    return SCALAR if kind == _ROWS else kind


def _kind_or_rows(node: Any, parameters: Mapping[str, Any]) -> str:
    if is_leaf(node):
        return ARRAY
    if isinstance(node, exp.Placeholder):
        return ARRAY if _is_array(parameters.get(node.name)) else SCALAR
    if isinstance(node, exp.Bracket):
        return ARRAY
    if isinstance(node, (exp.Alias, exp.Paren)):
        return _kind_or_rows(node.this, parameters)
    if isinstance(node, _OVER_ROWS):
        return _ROWS
    if isinstance(node, _LEAVES):
        return SCALAR
    if isinstance(node, exp.Anonymous) and find(node.name) is not None:
        return _called(node, parameters)
    kinds = {_kind_or_rows(child, parameters) for child in children(node)}
    if _ROWS in kinds:  # beside it, DuckDB has the values of tensors
        return _ROWS
    if ARRAY in kinds and (isinstance(node, (*_OPERATIONS, *_LOGIC)) or _is_elementwise(node)):
        return ARRAY
    if NUMBER in kinds and not isinstance(node, _LOGIC) and is_evaluable(node):
        return NUMBER
    return SCALAR


def _called(node: Any, parameters: Mapping[str, Any]) -> str:
    function = find(node.name)
    given = arguments_of(node)
    if function is None or (
        function.name == "array_mean"
        and node.name.casefold() == "mean"
        and all(kind_of(one, parameters) == SCALAR for one in given)
    ):
        return SCALAR
    if function.result == ARRAY or (_takes_axis(function.name) and len(given) > 1):
        return ARRAY
    return NUMBER


def _takes_axis(name: str) -> bool:
    return name.startswith("array_") or name in ("any", "all")


def _is_elementwise(node: Any) -> bool:
    name = function_name(node)
    return name is not None and (
        name in ELEMENTS or name in ("coalesce", "ifnull", "nvl", "nullif", "greatest", "least")
    )


def children(node: Any) -> Iterator[Any]:
    """Return what is in a node. A chain of OR has all its terms in it, so that a long one is not deep."""
    is_chain = isinstance(node, exp.Connector)
    found: Iterator[Any] = node.flatten(unnest=False) if is_chain else node.iter_expressions()
    return found


def is_evaluable(node: Any) -> bool:
    """Whether NumPy can compute all that is in a node."""
    for one in node.walk():
        if isinstance(one, _OVER_ROWS):
            return False
        known = isinstance(one, (*_OPERATIONS, *_LOGIC, *_LEAVES, exp.Bracket, exp.Slice))
        plain = isinstance(one, (exp.Identifier, exp.Var, exp.DataType, exp.Alias))
        if known or plain or _is_elementwise(one):
            continue
        if isinstance(one, exp.Anonymous) and find(one.name) is not None:
            continue
        return False
    return True


def has_tensors(node: Any, parameters: Mapping[str, Any]) -> bool:
    """Whether NumPy has to compute a part of a node."""
    return any(True for _ in tensor_parts(node, parameters))


def tensor_parts(node: Any, parameters: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the largest parts of a tree that NumPy computes."""
    if isinstance(node, (exp.Query, exp.Subquery)):
        return
    if _is_part(node, parameters):
        yield node
        return
    for child in children(node):
        yield from tensor_parts(child, parameters)


def _is_part(node: Any, parameters: Mapping[str, Any]) -> bool:
    """Whether NumPy computes a node as a whole. WHEN and THEN of a CASE are two nodes, not one value."""
    if isinstance(node, exp.Placeholder) or (
        isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    ):
        return False
    return kind_of(node, parameters) != SCALAR


def with_parts(node: Any, parameters: Mapping[str, Any], made: Callable[[Any], Any]) -> Any:
    """Return a tree in which each part that NumPy computes is replaced by what `made` returns of it."""
    if isinstance(node, (exp.Query, exp.Subquery)):
        return node
    if _is_part(node, parameters):
        return made(node)
    if isinstance(node, exp.Connector):
        for term in list(children(node)):
            new = with_parts(term, parameters, made)
            if new is not term:
                term.replace(new)
        return node
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            new = with_parts(value, parameters, made)
            if new is not value:
                node.set(key, new)
        elif isinstance(value, list):
            items = [
                with_parts(v, parameters, made) if isinstance(v, exp.Expression) else v
                for v in value
            ]
            if any(a is not b for a, b in zip(items, value, strict=True)):
                node.set(key, items)
    return node


def lazy_of(node: Any, leaves: Mapping[str, Leaf], types: Mapping[Ref, Any]) -> Lazy:
    """Return a part of a resolved tree as what NumPy computes when it is asked for.

    Parameters
    ----------
    node : sqlglot expression
        Without aliases.
    leaves : mapping from str to Leaf
        What its columns without a table are.
    types : mapping from Ref to Type
        Of stored columns.
    """
    node = node.copy()
    node = node.this if isinstance(node, exp.Alias) else node
    found: dict[Leaf, str] = {}

    def renamed(one: Any) -> Any:
        if not isinstance(one, exp.Column):
            return one
        ref = (one.table, one.name)
        leaf = ScalarLeaf(ref, types.get(ref)) if one.table else leaves[one.name]
        if leaf not in found:
            found[leaf] = _free_name(leaf, one.meta.get(SAID), found.values())
        return exp.column(exp.to_identifier(found[leaf], quoted="/" in found[leaf]))

    made = node.transform(renamed, copy=False)
    forms = {name: form for leaf, name in found.items() if (form := _form_of(leaf)) is not None}
    if set(forms.values()) - {"xyxy"}:
        made = with_forms(made, forms)
    return Lazy.of(made, {name: leaf for leaf, name in found.items()})


def _form_of(leaf: Leaf) -> str | None:
    """Return the form of boxes that a column declares, None if it has no boxes."""
    if not isinstance(leaf, TensorLeaf) or leaf.source is None:
        return None
    kind = leaf.source.dataset.schema[leaf.column]
    return kind.form if isinstance(kind, BoundingBox) else None


def _free_name(leaf: Leaf, said: str | None, taken: Collection[str]) -> str:
    """Return the name of a column for messages, with a number if another has it."""
    name = f"x{len(taken)}"
    if isinstance(leaf, TensorLeaf):
        name = leaf.column
    elif isinstance(leaf, ScalarLeaf):
        name = said or leaf.ref[1]
    if name.casefold() not in {one.casefold() for one in taken}:
        return name
    return f"{name}_{len(taken)}"


def is_number(lazy: Lazy, parameters: Mapping[str, Any]) -> bool:
    """Whether NumPy computes one value a row, not a tensor a row."""
    stored = [name for name, leaf in lazy.leaves.items() if isinstance(leaf, ScalarLeaf)]
    node = lazy.node.copy()
    for column in node.find_all(exp.Column):
        if column.name in stored:
            column.set("table", exp.to_identifier("stored"))
    return kind_of(node, parameters) == NUMBER


def conjuncts(node: Any) -> list[Any]:
    """Return the conditions that AND joins.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> where = parse("SELECT 1 FROM t WHERE a AND (b AND c) AND (d OR e)").args["where"].this
    >>> [str(one) for one in conjuncts(where)]
    ['a', 'b', 'c', '(d OR e)']
    """
    todo, out = [node], []
    while todo:
        one = todo.pop()
        inner = one
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.And):
            todo += [inner.expression, inner.this]
        else:
            out.append(one)
    return out


def _is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0
