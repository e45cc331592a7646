"""What indices and values are computed from, and how: expressions of Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.spark.ingest.records.axis_rules import Rule

if TYPE_CHECKING:
    from pyspark.sql import Column

WHOLE = r"^\s*[+-]?\d+\s*$"
REAL = r"(?i)^\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)\s*$"
"""Texts that are integers, and numbers."""

# Spark would take 10:00 for ten o'clock today, and 201301 for the year.
_TIME = r"^\s*\d{4}(-\d{1,2}(-\d{1,2}([T ].*)?)?)?\s*$"
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"
_MICROS = {
    "us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "D": 86400 * 10**6,
    "W": 7 * 86400 * 10**6,
}  # fmt: skip
_VALUE = re.compile(r"(count|sum)\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Value:
    """What an element of the tensor is.

    Attributes
    ----------
    how : {"column", "sum", "count"}
        The value of a column, of which an element has one; or records that fall in one cell together.
    column : str
        Of the records; empty for a count.
    kind : str
        Spark's name of the type as which the column is taken; empty until `decide` has looked at it.
    """

    how: str
    column: str = ""
    kind: str = ""

    @classmethod
    def parse(cls, text: str, columns: Sequence[str]) -> Value:
        """Return what ``--value`` says; a column may be named ``count``.

        Examples
        --------
        >>> Value.parse("count()", ()), Value.parse("sum(fare)", ("fare",))
        (Value(how='count', column='', kind=''), Value(how='sum', column='fare', kind=''))
        """
        text = text.strip()
        found = _VALUE.fullmatch(text)
        if text not in columns and not found and re.fullmatch(r"\w+\s*\(.*\)", text):
            raise InvalidOptionError(
                f"--value {text!r} is neither a column nor count() nor sum(COLUMN); compute others with Spark, and "
                "ingest the table that it writes"
            )
        if text in columns or not (found or text == "count"):
            return cls("column", text)
        inner = found[2].strip() if found else ""
        if found and found[1] == "sum":
            return cls("sum", inner)
        if inner not in ("", "*"):
            raise InvalidOptionError(
                f"--value {text!r}: count() counts records; --where '{inner} is not null' leaves some out"
            )
        return cls("count")


def is_text(kind: t.DataType) -> bool:
    return isinstance(kind, t.StringType)


def is_time(kind: t.DataType) -> bool:
    return isinstance(kind, (t.TimestampType, t.TimestampNTZType, t.DateType))


def measure_of(rule: Rule, column: Column, kind: t.DataType) -> Column:
    """Return what an index is computed from, null where a value will not do.

    Integers and the units of time since 1970 are bigint, numbers of bins double, labels text.
    """
    text = is_text(kind)
    if rule.kind == "label":
        label = column.cast("string")
        return f.when(~f.isnan(column), label) if _is_float(kind) else label
    if rule.kind == "int":
        if text or isinstance(kind, t.IntegralType):
            return column.try_cast("bigint")
        return f.when(f.rint(column) == column.cast("double"), column.try_cast("bigint"))
    if rule.kind == "bins":
        number = (f.when(column.rlike(REAL), column.try_cast("double")) if text else column).cast(
            "double"
        )
        return f.when(~f.isnan(number) & (f.abs(number) < 1e300), number)
    if text:
        column = f.when(column.rlike(_TIME), column.try_cast("timestamp"))
    # By the clock on the wall of the session's time zone; what has no zone is taken as it stands.
    local = column.cast("timestamp_ntz")
    if rule.unit in ("Y", "M"):
        years = f.year(local).cast("bigint") - 1970
        return years if rule.unit == "Y" else years * 12 + f.month(local) - 1
    micros = f.timestamp_diff("MICROSECOND", f.expr(_EPOCH), local)
    if rule.unit == "ns":
        return micros * 1000
    return _floored(micros, _MICROS[str(rule.unit)])


def _floored(column: Column, step: int) -> Column:
    """Divide integers, rounding down."""
    if step == 1:
        return column
    return f.call_function("div", column - f.pmod(column, f.lit(step)), f.lit(step))


def _is_float(kind: t.DataType) -> bool:
    return isinstance(kind, (t.FloatType, t.DoubleType))


def value_of(value: Value, column: Column, kind: t.DataType, dtype: np.dtype[Any] | None) -> Column:
    """Return the value of a record, null where it will not do.

    Parameters
    ----------
    value : Value
        Its `kind` is known.
    column, kind
        The column of records, and its type; of no matter for a count.
    dtype : numpy.dtype, or None
        The tensor's, where it is known: an integer has to fit, and is rounded to a small float.
    """
    if value.how == "count":
        return f.lit(1).cast("bigint")
    if isinstance(kind, t.StructType):
        return column
    if is_text(kind):
        is_number = column.rlike(REAL)
        column = (
            column.try_cast("bigint")
            if value.kind == "bigint"
            else f.when(is_number, column.try_cast("double"))
        )
    column = column.cast(value.kind)
    if dtype is None or value.how == "sum":
        return column
    if dtype.kind == "f":
        return column.cast("float" if dtype.itemsize < 8 else "double")
    if dtype.kind in "iu" and value.kind != "boolean":
        bounds = np.iinfo(dtype)
        # Bounds as decimals of no digit after the point: those of uint64 are no bigint.
        low, high = (f.lit(str(n)).cast("decimal(20,0)") for n in (bounds.min, bounds.max))
        fits = column.between(low, high)
        whole = f.rint(column) == column if value.kind in ("float", "double") else f.lit(True)
        return f.when(fits & whole, column)
    return column


def index_of(rule: Rule, measure: Column) -> Column:
    """Return the index that a measure is, for a rule whose start is known."""
    origin = rule.origin
    if rule.kind == "bins":
        # As labels.Regular has it: a value on an edge belongs to the bin that begins there.
        exact = (measure - f.lit(float(origin))) / f.lit(float(rule.step))
        near = f.rint(exact)
        return f.when(f.abs(exact - near) < 1e-9, near).otherwise(f.floor(exact)).cast("bigint")
    return _floored(measure - f.lit(origin), rule.step)
