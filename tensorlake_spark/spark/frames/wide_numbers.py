"""Numbers of a text of SQL that Spark does not take as they stand there."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_DIGITS = 38  # of a decimal of Spark


def with_wide_number(node: Any) -> Any:
    """Return a number that no bigint and no double holds as a cast, and any other node as it is.

    Spark takes a comparison of integers with a literal beyond bigint for true before it looks at the values, so that
    nulls fulfil it. It refuses literals of more than 38 digits, and those beyond double.

    Examples
    --------
    >>> [with_wide_number(exp.Literal.number(text)).sql("spark") for text in ("7", "9223372036854775808", "1e400")]
    ['7', 'CAST(9223372036854775808 AS DECIMAL(19, 0))', "CAST('1e400' AS DOUBLE)"]
    """
    if not isinstance(node, exp.Literal) or node.is_string:
        return node
    text = node.name
    try:
        value = Decimal(text)
    except InvalidOperation:
        return node
    if "e" in text.casefold():  # a double
        wide = abs(float(value)) == float("inf")
        return exp.cast(exp.Literal.string(text), "double") if wide else node
    whole, _, fraction = text.partition(".")
    digits, places = len(whole.lstrip("0")) + len(fraction), len(fraction)
    if digits > _DIGITS:
        return exp.cast(exp.Literal.string(text), "double")
    if _LEAST <= value <= _MOST:
        return node
    return exp.cast(node.copy(), f"decimal({digits}, {places})")
