"""What the nodes of a query's tree are called: columns, functions, arguments; and the values of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator

from tensorlake_spark.errors import InvalidQueryError


def name_of(column: Any) -> str:
    """Return the name by which `evaluate` looks for a column: its parts with dots between them.

    Examples
    --------
    >>> from sqlglot import exp
    >>> name_of(exp.column("images", table="d"))
    'd.images'
    """
    return ".".join(part.name for part in column.parts)


REMAINDERS = (exp.Mod, exp.IntDiv)
"""What is left of a division of whole numbers, and how often it goes."""


def remainder_by_zero(node: Any, made: Callable[[Any], Any]) -> Any:
    """Return what `made` makes of a remainder that may be by zero, any other node as it is.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> some = parse("SELECT a % 3, a % 0, a % b, a + b FROM t").selects
    >>> [remainder_by_zero(one, lambda found: "by zero") == "by zero" for one in some]
    [False, True, True, False]
    """
    if not isinstance(node, REMAINDERS):
        return node
    by = node.expression
    return node if isinstance(by, exp.Literal) and by.name.strip("0.") else made(node)


def sources_of(node: Any) -> set[str]:
    """Return the names of the columns that an expression needs.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> sorted(sources_of(parse("SELECT iou(a, d.b) FROM d").selects[0]))
    ['a', 'd.b']
    """
    return {name_of(column) for column in node.find_all(exp.Column)}


def _slice_text(printer: Any, node: Any) -> str:
    text = f"{printer.sql(node, 'this')}:{printer.sql(node, 'expression')}"
    step = node.args.get("step")
    return f"{text}:{printer.sql(step)}" if step is not None else text


STANDS_ALONE = "{:.200}: it cannot stand inside an expression on tensors; what is computed over many rows stands alone"
"""What is wrong with an aggregate or a window there, with its text."""

TYPED = "typed"
"""In the meta of a CAST that the text has as ``TIMESTAMP '2026-01-31'``."""

PRINTED: dict[type[Any], Callable[[Any, Any], str]] = {
    exp.Array: lambda self, e: f"[{self.expressions(e, flat=True)}]",
    exp.Bracket: lambda self, e: f"{self.sql(e, 'this')}[{self.expressions(e, flat=True)}]",
    exp.Slice: _slice_text,
    exp.IntDiv: lambda self, e: self.binary(e, "DIV"),
    exp.BitwiseXor: lambda self, e: self.func("XOR", e.this.unnest(), e.expression.unnest()),
    exp.Cast: lambda self, e: (
        f"{self.sql(e, 'to')} {self.sql(e, 'this')}" if e.meta.get(TYPED) else self.cast_sql(e)
    ),
    exp.Placeholder: lambda self, e: f"${e.this}" if e.args.get("this") else "?",
}
"""How nodes are printed that sqlglot's own printer does not write as queries have them."""


class _Printer(Generator):
    TRANSFORMS: ClassVar[Any] = {**Generator.TRANSFORMS, **PRINTED}


def text_of(node: Any) -> str:
    """Return an expression as text, for messages and names.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> [text_of(one) for one in parse("SELECT x[::-1, 1:], i DIV 2, -x[2:a + 1:3], DATE '2026-01-31' FROM t").selects]
    ['x[::-1, 1:]', 'i DIV 2', '-x[2:a + 1:3]', "DATE '2026-01-31'"]
    """
    try:
        return str(_Printer().generate(node))
    except (SqlglotError, RecursionError, ValueError):
        return type(node).__name__


def own_nodes(node: Any) -> list[Any]:
    """Return a node and all in it, of queries in it the query alone: what these name is theirs.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> where = parse("SELECT a FROM t WHERE b IN (SELECT c FROM u)").args["where"]
    >>> [one.name for one in own_nodes(where) if isinstance(one, exp.Column)]
    ['b']
    """
    return list(node.walk(prune=lambda one: isinstance(one, exp.Query)))


def arguments_of(node: Any) -> list[Any]:
    """Return the arguments of a call, in order.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> [str(one) for one in arguments_of(parse("SELECT clip(x, 0, 1) FROM t").selects[0])]
    ['x', '0', '1']
    """
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[Any] = []
    for name in node.arg_types:
        value = node.args.get(name)
        if isinstance(value, list):
            found += value
        elif isinstance(value, (exp.Condition, exp.Expression)):
            found.append(value)
    return found


def function_name(node: Any) -> str | None:
    """Return the name of the function that a node calls, in lower case, or None if it calls none.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> function_name(parse("SELECT SQRT(x) FROM t").selects[0])
    'sqrt'
    """
    if isinstance(node, exp.Anonymous):
        return str(node.name).casefold()
    if isinstance(node, exp.Pad):  # one node for two functions
        return "lpad" if node.args.get("is_left") else "rpad"
    return str(node.sql_name()).casefold() if isinstance(node, exp.Func) else None


def parameter_value(name: str, value: Any) -> Any:
    """Return the value of a parameter as expressions take it: lists become arrays.

    Raises
    ------
    InvalidQueryError
        If it is neither a number, text, truth, moment, array, nor a list of these, or is masked somewhere.

    Examples
    --------
    >>> parameter_value("q", [1, 2])
    array([1, 2])
    """
    if value is None or isinstance(value, (bool, int, float, complex, str, np.generic)):
        return value
    if np.ma.is_masked(value):
        raise InvalidQueryError(
            f"the parameter :{name} is masked in some places; fill them, as value.filled(0) does"
        )
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.zeros(0, object)
    if array.dtype.kind == "O":
        raise InvalidQueryError(
            f"the parameter :{name} is {type(value).__name__}; a number, a text, a list of these or an array is taken"
        )
    return array if array.ndim else array[()]


DTYPES = {
    "BOOLEAN": "bool", "TINYINT": "int8", "SMALLINT": "int16", "INT": "int32", "BIGINT": "int64",
    "UTINYINT": "uint8", "USMALLINT": "uint16", "UINT": "uint32", "UBIGINT": "uint64",
    "FLOAT": "float32", "DOUBLE": "float64", "TEXT": "str", "VARCHAR": "str", "CHAR": "str",
    "DATE": "datetime64[D]", "TIMESTAMP": "datetime64[us]", "DATETIME": "datetime64[us]",
}  # fmt: skip
"""The dtype that CAST gives, by sqlglot's name of the type."""


def cast_dtype(node: Any) -> np.dtype[Any]:
    """Return the dtype that a CAST gives.

    Raises
    ------
    InvalidQueryError
        If NumPy has no such type.
    """
    kind = node.args["to"].this
    name = str(getattr(kind, "name", kind)).upper()
    if name not in DTYPES or node.args["to"].expressions:
        raise InvalidQueryError(
            f"{text_of(node):.200}: a tensor cannot be cast to it; there are {', '.join(DTYPES)}"
        )
    return np.dtype(DTYPES[name])
