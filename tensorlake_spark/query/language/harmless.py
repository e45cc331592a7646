"""What a query may have: all else is refused, so that no query reads a file, changes a setting, or writes.

A list of what is allowed is safe where a list of what is forbidden is not: a statement, a function or a kind of table
that is not named here is an error, also one that an engine learns tomorrow.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.functions.expressions import function_name, text_of
from tensorlake_spark.query.functions.operators import ELEMENTS
from tensorlake_spark.query.functions.registry import AGGREGATES, FUNCTIONS, SCALARS, find
from tensorlake_spark.query.language.clauses import Arrange, Expand, SampleBy, Ungroup
from tensorlake_spark.query.language.mistakes import mistake

_NODES = [
    "Select",
    "Union",
    "Intersect",
    "Except",
    "Subquery",
    "CTE",
    "With",
    "From",
    "Join",
    "Where",
    "Group",
    "Having",
    "Order",
    "Ordered",
    "Limit",
    "Offset",
    "Fetch",
    "Distinct",
    "Qualify",
    "Window",
    "WindowSpec",
    "Over",
    "Values",
    "Tuple",
    "Table",
    "TableAlias",
    "Alias",
    "Aliases",
    "Column",
    "Identifier",
    "Star",
    "Dot",
    "Literal",
    "Boolean",
    "Null",
    "Placeholder",
    "Var",
    "Paren",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "IntDiv",
    "Mod",
    "Neg",
    "And",
    "Or",
    "Not",
    "Xor",
    "EQ",
    "NEQ",
    "LT",
    "LTE",
    "GT",
    "GTE",
    "NullSafeEQ",
    "NullSafeNEQ",
    "Is",
    "In",
    "Between",
    "Like",
    "ILike",
    "SimilarTo",
    "Escape",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "BitwiseNot",
    "BitwiseLeftShift",
    "BitwiseRightShift",
    "DPipe",
    "Case",
    "If",
    "Cast",
    "TryCast",
    "DataType",
    "DataTypeParam",
    "Interval",
    "Bracket",
    "Slice",
    "Array",
    "Exists",
    "Any",
    "All",
    "Filter",
    "WithinGroup",
    "IgnoreNulls",
    "RespectNulls",
    "Version",
    "Cube",
    "Rollup",
    "GroupingSets",
    "Anonymous",
    "ArrayContainsAll",
    "ArrayContainedBy",
    "ArrayOverlaps",
    "Extract",
    "ParameterizedAgg",
    "Collate",
    "AtTimeZone",
    "Distance",
    "PropertyEQ",
]

NODES: frozenset[type[Any]] = frozenset(
    [getattr(exp, name) for name in _NODES if hasattr(exp, name)]
    + [Arrange, Expand, SampleBy, Ungroup]
)
"""Kinds of nodes that are no functions."""

TYPES = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINT",
        "UBIGINT",
        "INT128",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
        "TEXT",
        "VARCHAR",
        "CHAR",
        "NCHAR",
        "NVARCHAR",
        "BINARY",
        "VARBINARY",
        "BLOB",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "TIMESTAMPNTZ",
        "TIMESTAMPLTZ",
        "DATETIME",
        "INTERVAL",
        "ARRAY",
        "LIST",
        "UUID",
        "YEAR",
        "MONTH",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
    ]
)
"""Types of CAST."""

_TYPES_SAID = (
    "numbers are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, these with U before them for those that are not negative, "
    "FLOAT (float32), DOUBLE (float64) and DECIMAL; others are TEXT, DATE, TIME and TIMESTAMP"
)

_OF_UNION = {"by_name": "BY NAME", "side": "LEFT and FULL", "kind": "INNER", "on": "ON"}
_OF_CAST = {"format": "CAST with FORMAT", "default": "CAST with DEFAULT"}
_PARTS: dict[str, dict[str, str]] = {
    "Union": _OF_UNION,
    "Intersect": _OF_UNION,
    "Except": _OF_UNION,
    "Select": {"kind": "SELECT AS"},
    "Limit": {"expressions": "LIMIT BY"},
    "Group": {"totals": "WITH TOTALS"},
    "Star": {"ilike": "* LIKE"},
    "Cast": _OF_CAST,
    "TryCast": _OF_CAST,
}
"""Parts of nodes that other dialects have, by the names that sqlglot gives them: queries would pass them over."""

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

_FILE = re.compile(
    r"""(?xi) ^\s*$ | :// | ^[/\\~.] | \\ | [*?] | \.\. |
    \.(parquet|csv|tsv|json|jsonl|ndjson|txt|xlsx|avro|orc|arrow|feather|db|duckdb|sqlite|gz|zst|npy|npz)$"""
)


def check(sql: str, tree: Any) -> None:
    """Refuse a tree that has what queries do not have.

    Parameters
    ----------
    sql : str
        Its text, for messages.
    tree : sqlglot expression

    Raises
    ------
    InvalidQueryError
        With the place of the first thing that is refused.

    Examples
    --------
    >>> import sqlglot
    >>> check("SELECT a FROM t", sqlglot.parse_one("SELECT a FROM t"))
    """
    for node in tree.walk():
        kind = type(node)
        if kind in NODES:
            _check_node(sql, node, kind)
        elif isinstance(node, exp.Func):
            _check_function(sql, node)
        else:
            raise _refusal(sql, node)


def _check_node(sql: str, node: Any, kind: type[Any]) -> None:
    for part, said in _PARTS.get(kind.__name__, {}).items():
        if node.args.get(part):
            raise mistake(sql, node, f"{said} is not taken in a query")
    if kind is exp.Distance:
        raise mistake(sql, node, "<-> is not taken in a query", "write l2_distance(a, b)")
    if kind in _COMPARED:
        _check_comparison(sql, node)
    if kind is exp.Table:
        _check_table(sql, node)
    elif kind is exp.Anonymous:
        _check_function(sql, node)
    elif kind is exp.With and node.args.get("recursive"):
        raise mistake(sql, node, "WITH RECURSIVE is not taken", "a query has no recursion")
    elif kind is exp.DataType:
        name = str(getattr(node.this, "name", node.this)).upper()
        if name not in TYPES:
            text = node.sql()
            raise mistake(sql, node.parent, f"there is no type {text:.60}", _TYPES_SAID)
    elif kind is exp.Placeholder and not node.args.get("this"):
        raise mistake(sql, node, "a parameter has no name", "write :name")
    elif kind is exp.Join and str(node.args.get("method") or "").upper() not in ("", "NATURAL"):
        raise mistake(
            sql, node, f"a join is not {node.args['method']}", "take JOIN ... ON or USING"
        )
    elif kind is exp.Select and (node.args.get("into") or node.args.get("hint")):
        raise mistake(
            sql, node, "SELECT INTO is not taken", "a query gives a view, which can be saved"
        )
    elif kind is exp.Select and not node.expressions:
        raise mistake(sql, node, "SELECT has no columns", "SELECT * takes all")
    elif kind is exp.Ordered and _is_constant(node.this) and _is_of_query(node):
        raise mistake(
            sql, node, f"ORDER BY {node.this.sql():.60} is a constant, which orders nothing",
            "name a column, without single quotes, or the number of one",
        )  # fmt: skip
    elif kind is exp.Dot and not isinstance(node.this, (exp.Column, exp.Dot)):
        raise mistake(
            sql, node, f"{text_of(node.this):.60} has no field {node.name!r:.60}; only columns have",
            "name the field first, and compute with that",
        )  # fmt: skip
    elif (
        kind is exp.Star
        and isinstance(node.parent, exp.Binary)
        and not isinstance(node.parent, exp.Dot)
    ):
        raise mistake(sql, node, "* stands in an expression", "name the columns")
    elif kind is exp.TableAlias and not isinstance(node.this, (exp.Identifier, type(None))):
        raise mistake(
            sql, node.this, "a table is not called so",
            "FROM name VERSION 5, or VERSION 'tag', reads another version",
        )  # fmt: skip
    elif kind is exp.Alias and isinstance(node.parent, exp.Anonymous):
        raise mistake(sql, node, "an argument of a function has no name", "leave AS out")


def _check_comparison(sql: str, node: Any) -> None:
    """Refuse SQL's ANY and ALL of a list: any(x) is a bool here, and a comparison with it would be another one.

    So is an IS behind a comparison, where sqlglot has taken it of the right side alone.
    """
    of = node.expression
    inner = of.this if isinstance(of, exp.Not) else of
    if isinstance(inner, (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)):
        raise mistake(
            sql, inner.this, "IS stands behind a comparison without brackets",
            "write (a > b) IS ..., or a = (b IS ...)",
        )  # fmt: skip
    if not isinstance(of, exp.Anonymous) or len(of.expressions) != 1:
        return
    name, inner = str(of.name).casefold(), of.expressions[0].unnest()
    is_list = isinstance(inner, (exp.Placeholder, exp.Array))
    if name in ("any", "all") and (is_list or isinstance(node.this, exp.Literal)):
        remedy = "write x IN (:list)" if is_list else "contains(array, value) looks into an array"
        raise mistake(sql, of, f"{name}(...) is a bool, not the elements of a list", remedy)


def _is_of_query(node: Any) -> bool:
    """Whether a part of an ORDER BY belongs to a query, not to an aggregate or a window."""
    return node.parent is not None and isinstance(node.parent.parent, exp.Query)


def _is_constant(node: Any) -> bool:
    """Whether a part of an ORDER BY is a constant that is not the number of a column."""
    if isinstance(node, (exp.Paren, exp.Neg)):
        return isinstance(node.this, exp.Literal) or _is_constant(node.this)
    if isinstance(node, exp.Literal):
        return node.is_string or not node.this.isdigit()
    return isinstance(node, (exp.Boolean, exp.Null))


def _check_table(sql: str, node: Any) -> None:
    if not isinstance(node.this, exp.Identifier):
        inner = function_name(node.this) if isinstance(node.this, exp.Func) else None
        if inner:
            raise mistake(
                sql, node.this, f"the table function {inner:.60} is not taken",
                "open the table, and give it as a source: query(sql, name=table)",
            )  # fmt: skip
        raise _refusal(sql, node)
    if any(_FILE.search(part.name) for part in node.parts):
        raise mistake(
            sql, node, f"{node.name!r:.80} looks like a file, and a query reads none",
            "open the table, and give it as a source: query(sql, name=table)",
        )  # fmt: skip


def _check_function(sql: str, node: Any) -> None:
    name = function_name(node) or ""
    if name in SCALARS or name in AGGREGATES or find(name) is not None:
        return
    near = did_you_mean(name, {*FUNCTIONS.names(), *ELEMENTS, *SCALARS, *AGGREGATES})
    raise mistake(
        sql, node, f"there is no function {name!r:.80}", near or "register_function adds one"
    )


def _refusal(sql: str, node: Any) -> Exception:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
    return mistake(
        sql, node, f"{words} is not taken in a query", "a query reads tables that are given to it"
    )
