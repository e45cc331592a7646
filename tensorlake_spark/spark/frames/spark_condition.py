"""Conditions on samples as Spark writes them: the same text means the same here and in plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from tensorlake_spark.datasets.samples.operands import as_moment
from tensorlake_spark.datasets.samples.where import SampleConditions, parse_where, parts_of
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.spark.frames.wide_numbers import with_wide_number
from tensorlake_spark.spark.source.cell_columns import quoted

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between)


def spark_condition(text: str, schema: SampleSchema, table: pa.Schema) -> tuple[str, bool]:
    """Return a condition on samples as SQL of Spark, as far as the table itself can be asked.

    Parameters
    ----------
    text : str
        As `Dataset.to_arrow` takes it: ``label = 'cat' AND training.score > 0.5``.
    schema : SampleSchema
        The columns.
    table : pyarrow.Schema
        As they are stored.

    Returns
    -------
    sql : str
        Of an AND those parts that ask no column that is kept apart; ``TRUE`` where there is none.
    asks_apart : bool
        Whether there are other parts, which executors have to look at: `sample_decoding.ApartCondition`.

    Raises
    ------
    InvalidOptionError
        If it is no such condition.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types.texts import Text
    >>> columns = {"label": ClassLabel(["cat", "dog"]), "training/score": "float32", "note": Text(apart=True)}
    >>> schema = SampleSchema(columns)
    >>> spark_condition("label = 'dog' AND training.score > 0.5", schema, schema.to_arrow())
    ('`label` = 1 AND `training`.`score` > 0.5', False)
    >>> spark_condition("note LIKE 'a%' AND label = 'cat'", schema, schema.to_arrow())
    ('`label` = 0', True)
    """
    asks_apart = parse_where(text, schema, table).beside is not None  # raises for a mistake
    tree: Any = sqlglot.parse_one(text, into=exp.Condition, dialect=SampleConditions)
    if asks_apart:
        alone = [part for part in parts_of(tree, exp.And) if not _asks_apart(part, schema)]
        tree = exp.and_(*alone) if alone else exp.true()
    for node in list(tree.find_all(*_COMPARED)):
        labels = [_label(one, schema) for one in node.iter_expressions()]
        names = next((label.names for label in labels if label is not None), None) or ()
        for literal in list(node.iter_expressions()) if names else []:
            if isinstance(literal, exp.Literal) and literal.is_string:
                literal.replace(exp.Literal.number(names.index(literal.this)))
        if any(_is_instant(one, table) for one in node.iter_expressions()):
            for one in list(node.iter_expressions()):
                _name_zone(one)
    for node in list(tree.find_all(exp.Neg, *_ARITHMETIC)):
        _compute_wide(node, table)
    tree = tree.transform(_in_backticks).transform(with_wide_number)
    return str(tree.sql(dialect="spark")), asks_apart


def _asks_apart(part: Any, schema: SampleSchema) -> bool:
    """Whether a part of a condition asks a column that is kept apart, or a field of one."""
    apart = [f"{name}/".casefold() for name, kind in schema.items() if kind.apart]
    asked = [f"{'/'.join(_names(node))}/".casefold() for node in part.find_all(exp.Column, exp.Dot)]
    return any(name.startswith(column) for name in asked for column in apart)


def _names(node: Any) -> list[str]:
    """Return the names of the structs around a column and its own, as they are written."""
    return [part for one in _identifiers(node) for part in one.this.split("/")]


def _identifiers(node: Any) -> list[Any]:
    if isinstance(node, exp.Dot):
        return [*_identifiers(node.this), *_identifiers(node.expression)]
    if isinstance(node, exp.Column):
        return list(node.parts)
    return [node] if isinstance(node, exp.Identifier) else []


def _label(node: Any, schema: SampleSchema) -> ClassLabel | None:
    if not isinstance(node, (exp.Column, exp.Dot)):
        return None
    asked = "/".join(_names(node)).casefold()
    found = next((kind for name, kind in schema.items() if name.casefold() == asked), None)
    return found if isinstance(found, ClassLabel) else None


def _is_instant(node: Any, table: pa.Schema) -> bool:
    """Whether a node is a column of timestamps that have a zone."""
    if not isinstance(node, (exp.Column, exp.Dot)):
        return False
    kind = _type_of(node, table)
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _name_zone(node: Any) -> None:
    """Write a time of a condition with its zone: without one Spark takes that of the session, and we take UTC."""
    text = node.this if isinstance(node, exp.Cast) else node
    if isinstance(text, exp.Literal) and text.is_string:
        moment = as_moment(text.this, text.this).isoformat(sep=" ")
        node.replace(exp.cast(exp.Literal.string(moment), "timestamp"))


def _compute_wide(node: Any, table: pa.Schema) -> None:
    """Have Spark compute as plain Python does: in bigint or double, and null where a divisor is zero.

    Spark would compute in the columns' own types and as decimals, and end the query at an overflow or a zero.
    """
    if _asks(node):
        wide = "bigint" if _is_whole(node, table) else "double"
        for one in list(node.iter_expressions()):
            if not (isinstance(one.unnest(), (exp.Neg, *_ARITHMETIC)) and _asks(one)):
                one.replace(exp.cast(one.copy(), wide))
    if isinstance(node, (exp.Div, exp.Mod)):
        below = [node.expression, exp.Literal.number(0)]
        node.set("expression", exp.Anonymous(this="nullif", expressions=below))


def _asks(node: Any) -> bool:
    """Whether there is a column in a node; else its numbers are written out."""
    return node.find(exp.Column, exp.Dot) is not None


def _is_whole(node: Any, table: pa.Schema) -> bool:
    """Whether a number is one of 64 bits, and not a float."""
    if isinstance(node, exp.Paren):
        return _is_whole(node.this, table)
    if isinstance(node, exp.Literal):
        return node.is_int
    if isinstance(node, (exp.Column, exp.Dot)):
        return bool(pa.types.is_integer(_type_of(node, table)))
    parts = list(node.iter_expressions())
    return not isinstance(node, exp.Div) and all(_is_whole(part, table) for part in parts)


def _type_of(column: Any, table: pa.Schema) -> pa.DataType:
    """Return the type of a column, or of a field of one, as it is stored."""
    fields: Any = list(table)
    for name in _names(column):
        kind = next(f.type for f in fields if f.name.casefold() == name.casefold())
        fields = list(kind) if pa.types.is_struct(kind) else []
    return kind


def _in_backticks(node: Any) -> Any:
    if isinstance(node, (exp.Column, exp.Dot)):
        return exp.Var(this=".".join(map(quoted, _names(node))))
    return node
