"""Tensors of the rows of a group: collected into an array, or one of them picked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from tensorlake_spark.spark.queries.result_kinds import ARRAY, SCALAR, Kind, Resolve, kind_of

PICKING = (exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin)
"""Aggregates that give one of the values of a group."""


def is_grouped(select: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> bool:
    """Whether the rows of a SELECT are groups.

    Parameters
    ----------
    select : sqlglot Select
    resolve, parameters
        As for `kind_of`: the mean of a tensor is one value a row.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> texts = ["a FROM t GROUP BY a", "max(a), b FROM t", "max(a) OVER (), b FROM t", "(SELECT max(a) FROM t)"]
    >>> [is_grouped(parse(f"SELECT {text}"), lambda column: Kind(SCALAR), {}) for text in texts]
    [True, True, False, False]
    """
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(
        isinstance(one, exp.AggFunc)
        or list_of(one) is not None
        or (
            isinstance(one, exp.Anonymous)
            and one.name.casefold() == "mean"
            and kind_of(one, resolve, parameters).name == SCALAR
        )
        for item in select.expressions
        for one in item.walk(prune=lambda node: isinstance(node, (exp.Window, exp.Query)))
    )


def list_of(node: Any) -> Any:
    """Return what ``array_agg(x)`` or ``list(x)`` collects, None of any other node."""
    if isinstance(node, exp.ArrayAgg):
        return node.this
    named = isinstance(node, exp.List) or (
        isinstance(node, exp.Anonymous) and node.name.casefold() == "list"
    )
    return node.expressions[0] if named and len(node.expressions) == 1 else None


def collect(
    select: Any, resolve: Resolve, parameters: Mapping[str, Any], text_of: Callable[[Any], str]
) -> None:
    """Let a grouped SELECT collect the tensors that it names without an aggregate.

    Parameters
    ----------
    select : sqlglot Select
        Its items have names; it is changed.
    resolve, parameters
        As for `kind_of`.
    text_of : callable
        Returns the same for nodes that mean the same.
    """
    group = select.args.get("group")
    items = select.expressions
    keys = {text_of(_positional(one, items)) for one in (group.expressions if group else ())}
    for item in items:
        if (
            kind_of(item.this, resolve, parameters).name != SCALAR
            and text_of(_bare(item.this)) not in keys
        ):
            item.set("this", exp.ArrayAgg(this=item.this))


def by_names(select: Any, text_of: Callable[[Any], str]) -> None:
    """Let HAVING and ORDER BY name what a SELECT gives, where Spark does not know it by its text.

    Spark orders what DISTINCT has left by its names alone, and does not take a sub-query for the one that GROUP BY has.

    Parameters
    ----------
    select : sqlglot Select
        Its items have names; it is changed.
    text_of : callable
        Returns the same for nodes that mean the same.
    """
    is_distinct = select.args.get("distinct") is not None
    known = {
        text_of(_bare(item.this)): item.alias
        for item in select.expressions
        if is_distinct or (is_sub_query(item.this) and select.args.get("group") is not None)
    }

    names = {item.alias.casefold() for item in select.expressions}

    def named(node: Any) -> Any:
        if isinstance(node, (exp.Order, exp.Ordered, exp.Having, exp.Literal, exp.Alias)):
            return node
        is_name = isinstance(node, exp.Column) and not node.table and node.name.casefold() in names
        if is_name and node.find_ancestor(exp.Order) is not None:  # a name, and then a column
            return node
        alias = known.get(text_of(_bare(node)))
        return node if alias is None else exp.column(exp.to_identifier(alias, quoted=True))

    for key in ("having", "order") if known else ():
        if select.args.get(key) is not None:
            select.set(key, select.args[key].transform(named))


def is_sub_query(node: Any) -> bool:
    """Whether a part of a SELECT has a query in it, as ``a IN (SELECT b FROM t)``."""
    return node.find(exp.Query) is not None


def _positional(node: Any, items: Sequence[Any]) -> Any:
    if isinstance(node, exp.Literal) and node.is_int and 1 <= int(node.this) <= len(items):
        return _bare(items[int(node.this) - 1].this)
    return _bare(node)


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def item_kind(node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> Kind:
    """Return what an item of a SELECT gives, an aggregate of tensors among them.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> items = parse("SELECT array_agg(x), first(x), max(n) FROM t").selects
    >>> [item_kind(one, lambda column: Kind("array", 2) if column.name == "x" else Kind("scalar"), {}) for one in items]
    [Kind(name='array', ndim=3, form=None, collected=True, listed=False), Kind(name='array', ndim=2, form=None, \
collected=False, listed=False), Kind(name='scalar', ndim=None, form=None, collected=False, listed=False)]
    """
    while isinstance(node, (exp.Alias, exp.Paren, exp.Filter)):
        node = node.this
    inner = list_of(node)
    if inner is not None:
        kind = kind_of(inner, resolve, parameters)
        if kind.name == ARRAY:
            return Kind(ARRAY, None if kind.ndim is None else kind.ndim + 1, collected=True)
        return Kind(SCALAR) if kind.name == SCALAR else Kind(ARRAY, 1, collected=True)
    if isinstance(node, PICKING) and isinstance(node.this, exp.Expression):
        kind = kind_of(node.this, resolve, parameters)
        return kind if kind.name == ARRAY else Kind(SCALAR)
    return kind_of(node, resolve, parameters)


def kept_where(aggregate: Any, where: Any) -> Any:
    """Return an aggregate of the rows that fit a condition, of all rows if that is None."""
    return aggregate if where is None else exp.Filter(this=aggregate, expression=where)


def collected(value: Any, keys: Sequence[Any], where: Any = None) -> Any:
    """Return the call that collects a value of each row of a group, nulls too, in the order of some keys.

    Parameters
    ----------
    value : sqlglot expression
        As Spark has it.
    keys : sequence of sqlglot expression
        The sids of the rows; without them the order is Spark's.
    where : sqlglot Where, optional
        Leaves rows out.
    """
    fields: list[Any] = []
    for number, key in enumerate(keys):
        fields += [exp.Literal.string(f"k{number}"), key]
    row = _call("named_struct", *fields, exp.Literal.string("v"), value)
    rows = kept_where(_call("collect_list", row), where)
    if keys:
        rows = _call("array_sort", rows)
    field = exp.Lambda(this=exp.column("v", table="r"), expressions=[exp.to_identifier("r")])
    return _call("transform", rows, field)


def passing_nulls(node: Any) -> Any:
    """Return what picks one of the values of a group so that it passes nulls by, any other node as it is.

    Without this, Spark picks the null of a row, too.

    Parameters
    ----------
    node : sqlglot expression
        Its arguments are as Spark has them.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> some = parse("SELECT any_value(x), arg_max(x, n), first(x) FROM t").selects
    >>> [passing_nulls(one).sql("spark") for one in some]
    ['ANY_VALUE(x, TRUE)', 'MAX_BY(x, CASE WHEN NOT (x) IS NULL THEN n END)', 'FIRST(x)']
    """
    if isinstance(node, exp.AnyValue) and isinstance(node.this, exp.Expression):
        return _call("ANY_VALUE", node.this, exp.true())
    if isinstance(node, (exp.ArgMax, exp.ArgMin)):
        absent = exp.Is(this=exp.paren(node.this.copy()), expression=exp.null())
        known = exp.If(this=exp.not_(absent, copy=False), true=node.expression)
        node.set("expression", exp.Case(ifs=[known]))
    return node


def _call(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=name, expressions=list(arguments))
