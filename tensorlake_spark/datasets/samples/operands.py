"""What is compared in a condition: columns, and literals brought to the type of a column."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.delta.log.time_travel import moment_in
from tensorlake_spark.errors import did_you_mean

DIGITS = decimal.Context(prec=100)
"""Literals are computed with so many digits."""


class RefusedError(Exception):
    """What cannot be compared or computed; who knows the place in the text says it to the user."""


@dataclass(frozen=True)
class Operand:
    """What is compared: a column, what is computed of columns, or a literal.

    Attributes
    ----------
    text : str
        What was written, for messages.
    family : str
        ``int``, ``float``, ``decimal``, ``text``, ``bool``, ``date``, ``timestamp``, ``null`` or ``other``.
    expression : pyarrow.compute.Expression, or None
        Of a column; None for a literal.
    type : pyarrow.DataType, or None
        Its type.
    of : Type, or None
        The type of the column.
    value : object
        Of a literal: Decimal, str, bool, date, datetime or None.
    """

    text: str
    family: str
    expression: pc.Expression | None = None
    type: pa.DataType | None = None
    of: Type | None = None
    value: Any = None

    @property
    def is_literal(self) -> bool:
        """Whether it is one value for all samples."""
        return self.expression is None

    def as_expression(self) -> pc.Expression:
        """Return it for arithmetic."""
        if self.expression is not None:
            return self.expression.cast(pa.int64() if self.family == "int" else pa.float64())
        if self.family == "float":
            return pc.scalar(float(self.value))
        if not -(1 << 63) <= self.value < 1 << 63:
            raise RefusedError(f"{self.text} does not fit into 64 bits")
        return pc.scalar(pa.scalar(int(self.value), pa.int64()))


def family_of(kind: pa.DataType) -> str:
    """Return what values of an Arrow type are compared with.

    Examples
    --------
    >>> family_of(pa.int8()), family_of(pa.string()), family_of(pa.binary())
    ('int', 'text', 'other')
    """
    t = pa.types
    families: list[tuple[Callable[[pa.DataType], bool], str]] = [
        (t.is_boolean, "bool"), (t.is_integer, "int"), (t.is_floating, "float"),
        (t.is_decimal, "decimal"), (t.is_string, "text"), (t.is_large_string, "text"),
        (t.is_date, "date"), (t.is_timestamp, "timestamp"),
    ]  # fmt: skip
    return next((family for check, family in families if check(kind)), "other")


def literal(value: Any, text: str) -> Operand:
    """Return a literal: a Decimal, a text, a bool, a date, a datetime, or None."""
    if isinstance(value, decimal.Decimal):
        whole = value.as_tuple().exponent == 0
        return Operand(text, "int" if whole else "float", value=value)
    kinds = [(bool, "bool"), (str, "text"), (dt.datetime, "timestamp"), (dt.date, "date")]
    family = next((name for kind, name in kinds if isinstance(value, kind)), "null")
    return Operand(text, family, value=value)


def ends_of(op: str, operand: Operand, value: Operand) -> tuple[Any, Any]:
    """Return the greatest value of the column's type that is not above a literal, and the least not below it.

    None where there is none; both are the same where the type has the literal.
    """
    if isinstance(operand.of, ClassLabel) and value.family == "text":
        if op not in ("=", "<>"):
            raise RefusedError(
                f"classes have no order; {operand.text} takes = <> IN with names, and all with numbers"
            )
        if value.value not in operand.of.names:
            near = did_you_mean(value.value, operand.of.names)
            raise RefusedError(
                f"{operand.text} has no class {value.text}{near}; there are {len(operand.of.names)}: "
                f"{', '.join(operand.of.names[:20])}"
            )
        number = operand.of.names.index(value.value)
        return number, number
    family, kind = operand.family, operand.type
    if family in ("int", "float", "decimal") and value.family in ("int", "float"):
        return _number_ends(family, kind, value.value)
    if family == "bool" and value.family == "bool" and op in ("=", "<>"):
        return value.value, value.value
    if family == "text" and value.family == "text":
        return value.value, value.value
    if family in ("date", "timestamp") and value.family in ("date", "timestamp", "text"):
        moment = as_moment(value.value, value.text)
        return _day_ends(moment) if family == "date" else _moment_ends(moment, kind)
    raise unlike(operand, value)


def _number_ends(family: str, kind: Any, value: decimal.Decimal) -> tuple[Any, Any]:
    if family == "float":
        with np.errstate(over="ignore"):
            near = float(value)
            if kind == pa.float64():
                return near, near
            single = np.float32(near)
            lo = single if float(single) <= near else np.nextafter(single, np.float32(-np.inf))
            hi = single if float(single) >= near else np.nextafter(single, np.float32(np.inf))
        return float(lo), float(hi)
    if family == "int":
        most = (1 << (kind.bit_width - 1)) - 1
        least, step = -most - 1, decimal.Decimal(1)
    else:
        step = decimal.Decimal(1).scaleb(-kind.scale, DIGITS)
        most = DIGITS.multiply(decimal.Decimal(10**kind.precision - 1), step)
        least = -most
    if value > most:
        return most, None
    if value < least:
        return None, least
    lo, hi = (
        value.quantize(step, rounding, DIGITS)
        for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING)
    )
    return (int(lo), int(hi)) if family == "int" else (lo, hi)


def as_moment(value: Any, text: str) -> dt.datetime:
    """Return a date, a time or a text as a time in UTC: a text without a zone is taken as UTC.

    Raises
    ------
    RefusedError
        If a text is neither a date nor a time.
    """
    if isinstance(value, str):
        try:
            value = moment_in(value)
        except ValueError as error:
            raise RefusedError(
                f"{text} is not a date or a time; write it as '2026-01-31' or '2026-01-31 12:00:00'"
            ) from error
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.timezone.utc)
    aware = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
    try:
        return aware.astimezone(dt.timezone.utc)
    except OverflowError as error:
        raise RefusedError(f"{text} is outside of the years 1 to 9999") from error


def _day_ends(moment: dt.datetime) -> tuple[Any, Any]:
    day = moment.date()
    exact = moment.time() == dt.time()
    if not exact and day == dt.date.max:
        return day, None
    return day, day if exact else day + dt.timedelta(days=1)


def _moment_ends(moment: dt.datetime, kind: Any) -> tuple[Any, Any]:
    here = moment if kind.tz else moment.replace(tzinfo=None)
    return here, here


def unlike(left: Operand, right: Operand) -> RefusedError:
    """Return the error for what is not compared."""
    return RefusedError(
        f"{left.text} is {called(left)}, and {right.text} is {called(right)}; these are not compared"
    )


def called(operand: Operand) -> str:
    """Return what an operand is, for messages."""
    names = {"int": "a number", "float": "a number", "decimal": "a decimal", "text": "a text",
             "bool": "true or false", "date": "a date", "timestamp": "a time", "null": "null"}  # fmt: skip
    named = names.get(operand.family)
    if named is None:
        return f"of type {operand.of or operand.type}"
    if operand.is_literal or operand.of is None:
        return named
    return f"{named} ({operand.of})"
