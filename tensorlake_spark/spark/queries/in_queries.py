"""``x IN (SELECT ...)`` with the nulls of SQL: Spark says false where nobody knows."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tensorlake_spark.query.language.mistakes import mistake

_LIST, _VALUE = "__list", "__value"


def as_in(sql: str, node: Any) -> Any:
    """Return ``x = ANY (SELECT ...)`` and ``x <> ALL (SELECT ...)`` as IN and NOT IN, any other node as it is.

    Raises
    ------
    InvalidQueryError
        If another comparison has ANY or ALL of a query, which Spark has not.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT k = ANY (SELECT v FROM t), k <> ALL (SELECT v FROM t), k = 1 FROM d")
    >>> [as_in("", one).sql() for one in tree.selects]
    ['k IN (SELECT v FROM t)', 'NOT k IN (SELECT v FROM t)', 'k = 1']
    """
    of = node.expression if isinstance(node, exp.Binary) else None
    query = of.this if isinstance(of, (exp.Any, exp.All)) else None
    if isinstance(query, exp.Paren):
        query = query.this
    if not isinstance(query, exp.Query):
        return node
    query = query.this if isinstance(query, exp.Subquery) else query
    found = exp.In(this=node.this, query=exp.Subquery(this=query))
    if isinstance(node, exp.EQ) and isinstance(of, exp.Any):
        return found
    if isinstance(node, exp.NEQ) and isinstance(of, exp.All):
        return exp.Not(this=found)
    raise mistake(
        sql, node, "with Spark, only = ANY and <> ALL compare with the rows of a query",
        "compare with (SELECT min(...) ...) or (SELECT max(...) ...)",
    )  # fmt: skip


def is_null_false(node: Any) -> bool:
    """Whether it is the same for the query if an IN is null or false: it decides which rows are kept, or chosen.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> text = "k IN (SELECT v FROM t)"
    >>> some = ["WHERE {}", "WHERE NOT {} OR k > 1", "WHERE ({}) IS NULL", "GROUP BY {}"]
    >>> some += ["GROUP BY CASE WHEN {} THEN 1 END"]
    >>> trees = [parse("SELECT count(*) FROM d " + one.format(text)) for one in some]
    >>> [is_null_false(tree.find(exp.In)) for tree in trees]
    [True, True, False, False, True]
    """
    child, parent = node, node.parent
    is_bare, is_negated = True, False  # Spark knows NOT IN, but not in the condition of a join
    while isinstance(parent, (exp.Paren, exp.And, exp.Or)) or (
        isinstance(parent, exp.Not) and is_bare
    ):
        is_negated = is_negated or isinstance(parent, exp.Not)
        is_bare = is_bare and isinstance(parent, exp.Paren)
        child, parent = parent, parent.parent
    if isinstance(parent, exp.Join):
        return child is parent.args.get("on") and not is_negated
    if isinstance(parent, exp.If):
        return child is parent.this
    return isinstance(parent, (exp.Where, exp.Having, exp.Qualify))


def with_nulls(node: Any) -> Any:
    """Return an IN that is null where it is not known: nothing is equal, and the value or one of the query is null.

    Parameters
    ----------
    node : sqlglot In
        Of a query, in its place of the tree. It is the same as Spark's if nobody can tell, and for several values at
        once.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT k IN (SELECT v FROM t) FROM d WHERE k IN (SELECT v FROM t)")
    >>> with_nulls(tree.args["where"].this).sql("spark")
    'k IN (SELECT v FROM t)'
    >>> with_nulls(tree.selects[0]).sql("spark")[:72]
    'CASE WHEN k IN (SELECT v FROM t) THEN TRUE WHEN (k IS NULL AND (SELECT C'
    """
    value = node.this
    query = node.args["query"]
    while isinstance(query.this, exp.Subquery):  # Spark would take its rows for one value
        query = query.this
    node.set("query", query)
    if is_null_false(node) or isinstance(_bare(value), exp.Tuple):
        return node
    one, zero, column = exp.Literal.number(1), exp.Literal.number(0), exp.column(_VALUE)
    rows = _value_of(query, exp.Count(this=one))
    nulls = _value_of(query, exp.Sub(this=exp.Count(this=one.copy()), expression=exp.Count(this=column)))  # fmt: skip
    is_alone = exp.And(
        this=exp.Is(this=value.copy(), expression=exp.Null()),
        expression=exp.GT(this=rows, expression=zero),
    )
    is_unknown = exp.Or(
        this=exp.Paren(this=is_alone), expression=exp.GT(this=nulls, expression=zero.copy())
    )
    nothing = exp.Cast(this=exp.Null(), to=exp.DataType.build("boolean"))
    found = _among_all(value, query) if _orders(node) else node.copy()
    # Spark moves NOT into what OR joins, and its NOT IN is never null. Into CASE it does not.
    ways = [exp.If(this=found, true=exp.true()), exp.If(this=is_unknown, true=nothing)]
    return exp.Case(ifs=ways, default=exp.false())


def _orders(node: Any) -> bool:
    """Whether a part of the tree stands in the ORDER BY of a query, where Spark takes no IN of another."""
    ordered = node.find_ancestor(exp.Ordered, exp.Query)
    return (
        isinstance(ordered, exp.Ordered)
        and isinstance(ordered.parent, exp.Order)
        and isinstance(ordered.parent.parent, exp.Query)
    )


def _among_all(value: Any, query: Any) -> Any:
    """Return whether a value is in the list of all that a query finds, which has no nulls."""
    collected = exp.Anonymous(this="collect_set", expressions=[exp.column(_VALUE)])
    found = exp.Anonymous(
        this="array_contains", expressions=[_value_of(query, collected), value.copy()]
    )
    return exp.Coalesce(this=found, expressions=[exp.false()])


def _value_of(query: Any, total: Any) -> Any:
    """Return a query for one value of the rows of another."""
    alias = exp.TableAlias(this=exp.to_identifier(_LIST), columns=[exp.to_identifier(_VALUE)])
    inner = exp.Subquery(this=query.this.copy(), alias=alias)
    return exp.Subquery(this=exp.select(total).from_(inner))


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
