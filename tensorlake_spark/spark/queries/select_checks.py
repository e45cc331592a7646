"""What a SELECT may not say, found before Spark reads it; and what Spark itself refuses, as an error of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.tree_names import STANDS_ALONE, name_of, text_of
from tensorlake_spark.query.language.mistakes import (
    NO_FILTER,
    NOT_SELECTED,
    mistake,
    numbered_item,
    place_named,
)
from tensorlake_spark.spark.queries.group_values import PICKING, is_sub_query, list_of
from tensorlake_spark.spark.queries.result_kinds import ARRAY, Resolve, kind_of

_REDUCE = "reduce it, as array_mean(x), any(x) or all(x) do, or choose an element"
_PLACES = {"order": "ORDER BY", "group": "GROUP BY"}
_CONDITIONS = ("where", "having")
_LIMITS = ("limit", "offset")


def check_aggregate(sql: str, node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> None:
    """Refuse an aggregate of tensors, which Spark would compare by their bytes, one that picks several values, and a
    FILTER of tensors that are collected.

    Raises
    ------
    InvalidQueryError
        If a node is one.
    """
    if isinstance(node, (exp.ArgMax, exp.ArgMin)) and node.args.get("count") is not None:
        raise mistake(
            sql, node, "Spark picks one value of a group, not several",
            "number the rows by row_number() OVER (PARTITION BY ... ORDER BY ...) in a query in brackets, and keep the "
            "first ones",
        )  # fmt: skip
    listed = list_of(node.this) if isinstance(node, exp.Filter) else None
    if listed is not None and _is_tensor(listed, resolve, parameters):
        said, remedy = NO_FILTER
        raise mistake(sql, node.this, said.format("array_agg"), remedy)
    if not isinstance(node, exp.AggFunc) or isinstance(node, (exp.ArrayAgg, exp.Count, *PICKING)):
        return
    inner = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if isinstance(inner, exp.Expression) and _is_tensor(inner, resolve, parameters):
        raise mistake(
            sql, node, f"{node.sql_name().lower()} takes a value a row, and this is a tensor a row",
            "reduce each tensor first, as array_mean(x) or array_max(x) does",
        )  # fmt: skip


def check_alone(sql: str, node: Any) -> None:
    """Refuse an expression on tensors in which something is computed over rows.

    Raises
    ------
    InvalidQueryError
        With the place.
    """
    inner = node.find(exp.Window) or node.find(exp.AggFunc)
    if inner is not None:
        raise mistake(sql, inner, STANDS_ALONE.format(text_of(inner)))


def check_places(
    sql: str, select: Any, resolve: Resolve, in_order: Resolve, parameters: Mapping[str, Any]
) -> None:
    """Refuse what clauses of a SELECT cannot take: tensors, numbers of columns that are not there, other limits.

    Parameters
    ----------
    sql : str
        The text.
    select : sqlglot Select
        Its items have names, and nothing is rewritten.
    resolve, in_order, parameters
        As for `kind_of`. In ORDER BY, the names of items come before those of columns.

    Raises
    ------
    InvalidQueryError
        With the place.
    """
    names = {item.alias.casefold() for item in select.expressions}
    is_distinct = select.args.get("distinct") is not None
    for key, said in _PLACES.items():
        clause = select.args.get(key)
        for one in clause.expressions if clause is not None else ():
            value = one.this if isinstance(one, exp.Ordered) else one
            item = numbered_item(sql, value, said, select.expressions)
            if item is not None:
                named = exp.column(exp.to_identifier(item.alias, quoted=True))
                if key == "order" and _is_tensor(named, in_order, parameters):
                    raise _not_a_value(sql, value, said, item.alias)
                continue
            if is_distinct and key == "order":
                _check_selected(sql, value, names)
            if _is_tensor(value, in_order if key == "order" else resolve, parameters):
                raise _not_a_value(sql, value, said)
    for key in _CONDITIONS:
        clause = select.args.get(key)
        if clause is not None and _is_tensor(clause.this, resolve, parameters):
            raise _not_a_value(sql, clause.this, key.upper())
    for key in _LIMITS:
        clause = select.args.get(key)
        if clause is not None and not isinstance(clause, exp.Fetch):
            _check_number(sql, clause.expression, key.upper(), parameters)


def _not_a_value(sql: str, node: Any, said: str, name: str = "") -> InvalidQueryError:
    what = f"{name or text_of(node)} is an array a row, and {said} takes a value a row"
    return mistake(sql, node, what, _REDUCE)


def _check_selected(sql: str, value: Any, names: set[str]) -> None:
    for column in value.find_all(exp.Column):
        is_outside = column.find_ancestor(exp.Query) is not value.find_ancestor(exp.Query)
        if not is_outside and (column.table or column.name.casefold() not in names):
            said, remedy = NOT_SELECTED
            raise mistake(sql, column, said.format(name_of(column)), remedy)


def _check_number(sql: str, node: Any, what: str, parameters: Mapping[str, Any]) -> None:
    value: Any = parameters.get(node.name) if isinstance(node, exp.Placeholder) else None
    if isinstance(node, exp.Placeholder) and node.name not in parameters:
        return  # which is said elsewhere
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        value = int(node.name)
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise mistake(sql, node, f"{what} takes a number of rows", "such as 10, or :n with a parameter")  # fmt: skip


def _is_tensor(node: Any, resolve: Resolve, parameters: Mapping[str, Any]) -> bool:
    kind = kind_of(node, resolve, parameters)
    return kind.name == ARRAY and not kind.listed


def check_keys(sql: str, select: Any, text_of_node: Any) -> None:
    """Refuse a sub-query of GROUP BY that HAVING or ORDER BY repeats, which Spark does not take for the same.

    Raises
    ------
    InvalidQueryError
        With the place.
    """
    group = select.args.get("group")
    keys = [one for one in (group.expressions if group else ()) if is_sub_query(one)]
    texts = {text_of_node(one) for one in keys}
    for key in ("having", "order") if texts else ():
        for one in select.args[key].walk() if select.args.get(key) is not None else ():
            if is_sub_query(one) and text_of_node(one) in texts:
                said = _PLACES.get(key, key.upper())
                raise mistake(
                    sql, one, f"with Spark, {said} cannot repeat a sub-query of GROUP BY",
                    "select it too, and give it a name by AS",
                )  # fmt: skip


def refused(sql: str, error: Exception) -> InvalidQueryError:
    """Return what Spark refuses as an error of ours: what it says, at the place of the word that it names.

    Parameters
    ----------
    sql : str
        The text of the query.
    error : pyspark.errors.AnalysisException
        Of the SQL that was made of it.
    """
    said = re.sub(r" SQLSTATE: .*", "", str(error), flags=re.DOTALL)
    said = re.sub(r"^\[[A-Z0-9_.]+\] ", "", said).replace("\n", " ").replace("`", "'")
    return mistake(
        sql, place_named(sql, said), f"Spark refuses the query: {said:.400}".rstrip(". ")
    )
