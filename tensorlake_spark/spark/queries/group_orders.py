"""What stands behind a SELECT and Spark does not compute there becomes a hidden item of it.

That is what ORDER BY computes beside HAVING, QUALIFY or by a window, and QUALIFY itself, which comes before LIMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from tensorlake_spark.query.functions.tree_names import own_nodes
from tensorlake_spark.query.planning.select_text import OVER_ROWS

_BEHIND = ("order", "limit", "offset")
_KEPT = "__qualify"


def named_in_order(
    select: Any, written: Mapping[str, Any], column_of: Callable[[Any], Any]
) -> None:
    """Let the names in ORDER BY of a SELECT mean what they mean in the other engine.

    What a SELECT calls an item comes before a column, and the last one of several so called. In what reads rows, as an
    aggregate does, the column comes first.

    Parameters
    ----------
    select : sqlglot Select
        Its items have names of their own; it is changed.
    written : dict of str to str
        What these are, by what the text calls them with AS, over lower case.
    column_of : callable
        Takes a column without a table; returns it with its table, None if no table has it, and raises an error if
        several have.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT a AS a, -a AS a_1 FROM t ORDER BY a, max(a)")
    >>> named_in_order(tree, {"a": "a_1"}, lambda column: exp.column(column.name, table="t"))
    >>> tree.args["order"].sql()
    'ORDER BY "a_1" NULLS LAST, MAX(t.a) NULLS LAST'
    """
    order = select.args.get("order")
    names = [item.alias_or_name.casefold() for item in select.expressions]
    for one in own_nodes(order) if order is not None else ():
        if not isinstance(one, exp.Column) or one.table or isinstance(one.this, exp.Star):
            continue
        if one.find_ancestor(exp.Order, *OVER_ROWS) is not order:
            found = column_of(one)
            if found is not None:
                one.replace(found)
        elif one.name.casefold() in written:
            one.set("this", exp.to_identifier(written[one.name.casefold()], quoted=True))
        elif f"{one.name.casefold()}_1" in names:
            column_of(one)  # several items are so called


def with_keys(select: Any) -> bool:
    """Let a SELECT select its QUALIFY, and what its ORDER BY computes beside that or HAVING; say whether it does.

    Parameters
    ----------
    select : sqlglot Select
        Its items have names, and nothing is rewritten; it is changed.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT a AS a FROM t GROUP BY a HAVING max(b) > 1 ORDER BY min(b) DESC")
    >>> with_keys(tree), tree.sql()
    (True, 'SELECT a AS a, MIN(b) AS "__order0" FROM t GROUP BY a HAVING MAX(b) > 1 ORDER BY "__order0" DESC')
    """
    order, qualify = select.args.get("order"), select.args.get("qualify")
    items = {item.alias.casefold(): item.this for item in select.expressions}
    keys = [] if order is None or select.args.get("distinct") else order.expressions
    if qualify is None and select.args.get("having") is None:
        keys = [one for one in keys if one.find(exp.Window) is not None]
    keys = [one for one in keys if not _is_given(one.this, items)]
    for number, one in enumerate(keys):
        item = exp.alias_(without_names(one.this, items), f"__order{number}", quoted=True)
        select.append("expressions", item)
        one.set("this", exp.column(exp.to_identifier(item.alias, quoted=True)))
    if qualify is not None:
        select.append("expressions", exp.alias_(qualify.this, _KEPT, quoted=True))
        select.set("qualify", None)
    return bool(keys) or qualify is not None


def put_around(select: Any, names: Sequence[str]) -> None:
    """Put ORDER BY and LIMIT of a SELECT around it, what QUALIFY keeps and DISTINCT too, and leave some of its columns.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT a, b FROM t ORDER BY b DESC LIMIT 1")
    >>> put_around(tree, ["a"])
    >>> tree.sql()
    'SELECT "a" AS "a" FROM (SELECT a, b FROM t) AS __groups ORDER BY b DESC LIMIT 1'
    """
    behind = {key: select.args.get(key) for key in (*_BEHIND, "distinct")}
    if any(item.alias == _KEPT for item in select.expressions):
        behind["where"] = exp.Where(this=exp.column(exp.to_identifier(_KEPT, quoted=True)))
    for key in [*_BEHIND, "distinct"]:
        select.set(key, None)
    inner = select.copy()
    for key in list(select.args):
        select.set(key, None)
    columns = [
        exp.alias_(exp.column(exp.to_identifier(name, quoted=True)), name, quoted=True)
        for name in names
    ]
    outer = exp.select(*columns).from_(
        exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("__groups")))
    )
    for key, value in {**outer.args, **behind}.items():
        select.set(key, value)


def _is_given(key: Any, items: dict[str, Any]) -> bool:
    """Whether a key of ORDER BY is the name of an item, or its number."""
    if isinstance(key, exp.Column):
        return not key.table and key.name.casefold() in items
    return isinstance(key, exp.Literal)


def without_names(key: Any, items: dict[str, Any]) -> Any:
    """Return a key with the items themselves in the places of their names.

    Examples
    --------
    >>> without_names(exp.column("a") + 1, {"a": exp.column("b")}).sql()
    '(b) + 1'
    """

    def meant(node: Any) -> Any:
        is_name = isinstance(node, exp.Column) and not node.table
        item = items.get(node.name.casefold()) if is_name else None
        return node if item is None else exp.Paren(this=item.copy())

    return key.copy().transform(meant)
