"""Names of classes in a query: where a column of classes is compared with them, they become its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.functions.tree_names import own_nodes
from tensorlake_spark.query.language.mistakes import mistake

_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARISONS = (exp.EQ, exp.NEQ, *_ORDERS, exp.NullSafeEQ, exp.NullSafeNEQ)


def with_class_numbers(
    sql: str,
    node: Any,
    classes_of: Callable[[Any], Sequence[str] | None],
    parameters: Mapping[str, Any] | None = None,
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
    parameters : mapping of str to object, optional
        Values of ``:name``, which may be names, too.

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
    given = parameters or {}

    def names_of(one: Any) -> Sequence[str] | None:
        """Return the classes of an expression, of an element or a slice of a list of them, too."""
        found = classes_of(one)
        return names_of(one.this) if found is None and isinstance(one, exp.Bracket) else found

    for one in own_nodes(node):
        if isinstance(one, _COMPARISONS):
            sides = ("this", "expression")
            for here, there in (sides, sides[::-1]):
                names = names_of(one.args[here])
                if names is not None:
                    is_order = isinstance(one, _ORDERS)
                    one.set(there, _number(sql, one.args[there], names, given, is_order))
        elif isinstance(one, exp.In):
            names = names_of(one.this)
            if names is not None:
                listed = [item for name in one.expressions for item in _listed(name, given)]
                one.set("expressions", [_number(sql, name, names, given) for name in listed])
        elif isinstance(one, exp.Case) and one.this is not None:
            names = names_of(one.this)
            if names is not None:
                for when in one.args["ifs"]:
                    when.set("this", _number(sql, when.this, names, given))
        elif isinstance(one, exp.Anonymous) and one.name.casefold() == "contains":
            names = names_of(one.expressions[0]) if len(one.expressions) == 2 else None
            if names is not None:
                column, asked = one.expressions
                listed = (
                    asked.expressions if isinstance(asked, exp.Array) else _listed(asked, given)
                )
                found = [_number(sql, name, names, given) for name in listed]
                is_list = listed != [asked]
                one.set(
                    "expressions", [column, exp.Array(expressions=found) if is_list else found[0]]
                )
    return node


def _listed(node: Any, parameters: Mapping[str, Any]) -> list[Any]:
    """Return a parameter with a list of names as these names, any other node as it is."""
    value = parameters.get(node.name) if isinstance(node, exp.Placeholder) else None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple, set, frozenset)) or not any(
        isinstance(v, str) for v in value
    ):
        return [node]
    made = [exp.convert(v) for v in value]
    for one in made:
        one.meta.update(node.meta)
    return made


def _number(
    sql: str,
    node: Any,
    names: Sequence[str],
    parameters: Mapping[str, Any],
    is_order: bool = False,
) -> Any:
    """Return the number of a class for its name, any other node as it is."""
    text: Any = None
    if isinstance(node, exp.Placeholder):
        text = parameters.get(node.name)
    elif isinstance(node, exp.Literal) and node.is_string:
        text = node.this
    if not isinstance(text, str):
        return node
    if is_order:
        raise mistake(
            sql, node, "classes have no order", "compare names by = <> IN, or compare numbers"
        )
    if text not in names:
        near = did_you_mean(text, names).removeprefix("; ")
        some = ", ".join(names[:20])
        raise mistake(sql, node, f"there is no class {text!r:.80}", near or f"there are {some}")
    number = exp.Literal.number(list(names).index(text))
    number.meta.update(node.meta)
    return number
