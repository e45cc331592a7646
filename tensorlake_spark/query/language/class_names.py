"""Names of classes in a query: where a column of classes is compared with them, they become its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.language.mistakes import mistake

_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARISONS = (exp.EQ, exp.NEQ, *_ORDERS, exp.NullSafeEQ, exp.NullSafeNEQ)


def with_class_numbers(
    sql: str, node: Any, classes_of: Callable[[Any], Sequence[str] | None]
) -> Any:
    """Replace names of classes by their numbers where they are compared with a column of classes.

    Parameters
    ----------
    sql : str
        The whole query, for messages.
    node : sqlglot expression
        A part of it, which is changed. Queries inside it are not.
    classes_of : callable
        Returns the names of the classes of an expression, None if it is not a column of classes.

    Raises
    ------
    InvalidQueryError
        If there is no such class, or classes are compared by order.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT k = 'dog', k IN ('cat', 2), n = 'dog' FROM t")
    >>> names = lambda column: ["cat", "dog"] if column.name == "k" else None
    >>> made = [with_class_numbers("", one, names) for one in tree.selects]
    >>> [one.sql() for one in made]
    ['k = 1', 'k IN (0, 2)', "n = 'dog'"]
    """
    for one in list(node.walk(prune=lambda inner: isinstance(inner, exp.Query))):
        if isinstance(one, _COMPARISONS):
            sides = ("this", "expression")
            for here, there in (sides, sides[::-1]):
                names = classes_of(one.args[here])
                if names is not None:
                    one.set(there, _number(sql, one.args[there], names, isinstance(one, _ORDERS)))
        elif isinstance(one, exp.In):
            names = classes_of(one.this)
            if names is not None:
                numbers = [_number(sql, name, names, False) for name in one.expressions]
                one.set("expressions", numbers)
    return node


def _number(sql: str, node: Any, names: Sequence[str], order: bool) -> Any:
    if not isinstance(node, exp.Literal) or not node.is_string:
        return node
    if order:
        raise mistake(
            sql, node, "classes have no order", "compare names by = <> IN, or compare numbers"
        )
    if node.this not in names:
        near = did_you_mean(node.this, names).removeprefix("; ")
        some = ", ".join(names[:20])
        raise mistake(
            sql, node, f"there is no class {node.this!r:.80}", near or f"there are {some}"
        )
    number = exp.Literal.number(list(names).index(node.this))
    number.meta.update(node.meta)
    return number
