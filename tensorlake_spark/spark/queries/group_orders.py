"""ORDER BY of what groups beside HAVING give and a SELECT does not: Spark knows only what it selects there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

_BEHIND = ("order", "limit", "offset")


def with_keys(select: Any) -> bool:
    """Let a grouped SELECT with HAVING select what its ORDER BY computes, and say whether it does.

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
    order = select.args.get("order")
    if order is None or select.args.get("having") is None or select.args.get("distinct"):
        return False
    items = {item.alias.casefold(): item.this for item in select.expressions}
    keys = [one for one in order.expressions if not _is_given(one.this, items)]
    for number, one in enumerate(keys):
        item = exp.alias_(_without_names(one.this, items), f"__order{number}", quoted=True)
        select.append("expressions", item)
        one.set("this", exp.column(exp.to_identifier(item.alias, quoted=True)))
    return bool(keys)


def put_around(select: Any, names: Sequence[str]) -> None:
    """Put ORDER BY and LIMIT of a SELECT around it, and leave some of its columns.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT a, b FROM t ORDER BY b DESC LIMIT 1")
    >>> put_around(tree, ["a"])
    >>> tree.sql()
    'SELECT "a" FROM (SELECT a, b FROM t) AS __groups ORDER BY b DESC LIMIT 1'
    """
    behind = {key: select.args.get(key) for key in _BEHIND}
    for key in behind:
        select.set(key, None)
    inner = select.copy()
    for key in list(select.args):
        select.set(key, None)
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
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


def _without_names(key: Any, items: dict[str, Any]) -> Any:
    """Return a key with the items themselves in the places of their names."""

    def meant(node: Any) -> Any:
        is_name = isinstance(node, exp.Column) and not node.table
        item = items.get(node.name.casefold()) if is_name else None
        return node if item is None else exp.Paren(this=item.copy())

    return key.copy().transform(meant)
