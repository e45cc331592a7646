"""Comparisons and arithmetic of SQL as expressions of Arrow: with the nulls and the NaN that Spark has."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.samples.operands import (
    DIGITS,
    Operand,
    RefusedError,
    called,
    ends_of,
    unlike,
)
from tensorlake_spark.datasets.types.class_label import ClassLabel

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_LONGEST = 80  # characters of an operand in a message
_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class Condition(NamedTuple):
    """What is true of the samples that are meant; of others it is false or null.

    Attributes
    ----------
    exact : pyarrow.compute.Expression
        The condition.
    ordered : pyarrow.compute.Expression
        The same where no value is NaN: bounds of values can then rule out a file.
    loose : pyarrow.compute.Expression
        What bounds can rule out where values may be NaN, of which they say nothing: true of all that is meant.
    """

    exact: pc.Expression
    ordered: pc.Expression
    loose: pc.Expression

    @classmethod
    def of(cls, expression: pc.Expression) -> Condition:
        """Return a condition that NaN does not make true."""
        return cls(expression, expression, expression)

    @classmethod
    def with_nan(cls, exact: pc.Expression, ordered: pc.Expression) -> Condition:
        """Return a condition that NaN may make true."""
        return cls(exact, ordered, pc.scalar(True))


NEVER = Condition.of(pc.scalar(False))


def compared(op: str, left: Operand, right: Operand) -> Condition:
    """Return that one of ``=``, ``<>``, ``<``, ``<=``, ``>`` and ``>=`` is true."""
    if left.is_literal and right.is_literal:
        return _of_literals(op, left, right)
    if left.is_literal:
        return compared(FLIPPED[op], right, left)
    if right.is_literal:
        return _with_literal(op, left, right)
    return _of_columns(op, left, right)


def among(operand: Operand, values: Sequence[Operand], negated: bool) -> Condition:
    """Return that an operand is one of some values, or that it is none of them."""
    if negated and any(value.family == "null" for value in values):
        return NEVER
    known = [v for v in values if v.is_literal and v.family != "null" and not operand.is_literal]
    found = [
        compared("<>" if negated else "=", operand, value)
        for value in values
        if value.family != "null" and not (value.is_literal and not operand.is_literal)
    ]
    if known or not found:
        found.append(_among_literals(operand, known, negated))
    return joined(found, every=negated)


def _among_literals(operand: Operand, values: Sequence[Operand], negated: bool) -> Condition:
    field, kind = operand.expression, operand.type
    if field is None or kind is None:
        return NEVER
    ends = [ends_of("=", operand, value) for value in values]
    exact = [lo for lo, hi in ends if lo is not None and lo == hi]
    if not exact:
        return Condition.of(field.is_valid()) if negated else NEVER
    both = [*exact, -0.0] if operand.family == "float" and 0.0 in exact else exact
    inside = field.isin(pa.array(both, kind))
    if negated:
        outside = ~inside & field.is_valid()
        is_float = operand.family == "float"
        if is_float:
            return Condition.with_nan(outside | pc.is_nan(field), outside)
        return Condition.of(outside)
    # With their bounds: these rule out files wherever Arrow does not look into the list.
    least, most = (pa.scalar(end(exact), kind) for end in (min, max))
    return Condition.of(inside & (field >= least) & (field <= most))


def alike(operand: Operand, pattern: Operand, negated: bool) -> Condition:
    """Return that a text is like a pattern with ``%`` and ``_``, which a backslash escapes."""
    if pattern.family == "null":
        return NEVER
    if operand.family != "text" or operand.expression is None or pattern.family != "text":
        raise RefusedError(
            f"LIKE takes a column of texts and a text, not {operand.text} and {pattern.text}"
        )
    said = pattern.value
    if re.search(r"\\(?![%_\\])", re.sub(r"\\[%_\\]", "", said)):
        raise RefusedError(
            f"in the pattern {said!r:.80} a backslash stands before what is none of % _ \\; double it"
        )
    field = operand.expression
    found = pc.match_like(field, said)
    if negated:
        return Condition.of(~found)
    start = re.split(r"[%_\\]", said, maxsplit=1)[0]
    if not start:
        return Condition.of(found)
    found = found & (field >= start)
    if ord(start[-1]) < 0xD7FF:
        found = found & (field < start[:-1] + chr(ord(start[-1]) + 1))
    return Condition.of(found)


def null(operand: Operand, negated: bool) -> Condition:
    """Return that something is null, or that it is not."""
    if operand.expression is None:
        return Condition.of(pc.scalar((operand.family == "null") is not negated))
    return Condition.of(operand.expression.is_valid() if negated else operand.expression.is_null())


def joined(conditions: Sequence[Condition], every: bool) -> Condition:
    """Return that all conditions are true, or that one is: as a tree that is not deep."""

    def join(parts: list[pc.Expression]) -> pc.Expression:
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [
                reduce((lambda a, b: a & b) if every else (lambda a, b: a | b), p) for p in pairs
            ]
        return parts[0]

    return Condition(*(join([*parts]) for parts in zip(*conditions, strict=True)))


def computed(op: str, left: Operand, right: Operand) -> Operand:
    """Return the result of ``+``, ``-``, ``*``, ``/`` or ``%``: whole numbers in 64 bits, others in float64.

    What is divided by zero is null. A result that 64 bits do not hold is an error when it is computed.
    """
    text = f"{left.text} {op} {right.text}"
    text = text if len(text) < _LONGEST else f"{text[:_LONGEST]}..."
    for one in (left, right):
        if one.family == "null":
            return Operand(text, "null")
        if one.family not in ("int", "float"):
            raise RefusedError(
                f"{op} takes numbers, and {one.text} is {called(one)}; compare it with a value"
            )
    whole = left.family == right.family == "int" and op != "/"
    if left.is_literal and right.is_literal:
        return _folded(op, left, right, text)
    a, b = left.as_expression(), right.as_expression()
    if op in "/%":
        zero = pa.scalar(0, pa.int64()) if right.family == "int" else pa.scalar(0.0)
        b = pc.if_else(b == zero, pc.scalar(pa.scalar(None, zero.type)), b)
    if op == "%":
        if not whole:
            raise RefusedError(f"% takes whole numbers, and {text} has others")
        found = pc.subtract_checked(a, pc.multiply_checked(pc.divide_checked(a, b), b))
        return Operand(text, "int", found, pa.int64())
    if not whole:
        a, b = _as_floats(a), _as_floats(b)
    functions = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
    checked = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
    found = checked[op](a, b) if whole else functions[op](a, b)
    return Operand(text, "int" if whole else "float", found, pa.int64() if whole else pa.float64())


def _folded(op: str, left: Operand, right: Operand, text: str) -> Operand:
    a, b = left.value, right.value
    if op in "/%" and not b:
        return Operand(text, "null")
    try:
        found = {
            "+": DIGITS.add, "-": DIGITS.subtract, "*": DIGITS.multiply,
            "/": DIGITS.divide, "%": DIGITS.remainder,
        }[op](a, b)  # fmt: skip
    except decimal.DecimalException as error:
        raise RefusedError(f"{text} cannot be computed: {error}") from error
    whole = left.family == right.family == "int" and op != "/"
    return Operand(text, "int" if whole else "float", value=found)


def _of_literals(op: str, left: Operand, right: Operand) -> Condition:
    if "null" in (left.family, right.family):
        return NEVER
    number = {"int", "float"}
    if left.family != right.family and not {left.family, right.family} <= number:
        raise unlike(left, right)
    return Condition.of(pc.scalar(bool(_OPS[op](left.value, right.value))))


def _with_literal(op: str, operand: Operand, value: Operand) -> Condition:
    """Return a comparison with a literal, which is brought to the column's type: bounds are of that type."""
    if value.family == "null":
        return NEVER
    field, kind = operand.expression, operand.type
    if field is None or kind is None:
        return NEVER
    lo, hi = ends_of(op, operand, value)
    if lo is not None and lo == hi:
        found = _OPS[op](field, pa.scalar(lo, kind))
    elif op == "<>":
        return Condition.of(field.is_valid())
    elif op in ("<", "<=") and lo is not None:
        found = field <= pa.scalar(lo, kind)
    elif op in (">", ">=") and hi is not None:
        found = field >= pa.scalar(hi, kind)
    else:
        return NEVER
    if operand.family == "float" and op in (">", ">=", "<>"):
        return Condition.with_nan(found | pc.is_nan(field), found)  # Spark: NaN is greater than all
    return Condition.of(found)


def _of_columns(op: str, left: Operand, right: Operand) -> Condition:
    a, b = left.expression, right.expression
    if a is None or b is None:
        return NEVER
    families = {left.family, right.family}
    labels = [one.of.names for one in (left, right) if isinstance(one.of, ClassLabel)]
    if len(labels) == 2 and labels[0] != labels[1]:
        raise RefusedError(f"{left.text} and {right.text} have other classes")
    if families <= {"int", "float"}:
        if families == {"int"}:
            return Condition.of(_OPS[op](a, b))
        exact = _of_floats(op, _as_floats(a), _as_floats(b))
        return Condition.with_nan(exact, exact)
    if (
        len(families) > 1
        or "other" in families
        or (left.type != right.type and families != {"text"})
    ):
        raise unlike(left, right)
    if families == {"bool"} and op not in ("=", "<>"):
        raise unlike(left, right)
    return Condition.of(_OPS[op](a, b))


def _as_floats(numbers: pc.Expression) -> pc.Expression:
    """Return numbers as float64: of integers that it does not hold the nearest one, as SQL has it."""
    return numbers.cast(pa.float64(), safe=False)


def _of_floats(op: str, a: pc.Expression, b: pc.Expression) -> pc.Expression:
    """Return a comparison for which NaN equals NaN and is greater than all, as in Spark."""
    a_nan, b_nan = pc.is_nan(a), pc.is_nan(b)
    plain = _OPS[op](a, b)
    if op == "=":
        return plain | (a_nan & b_nan)
    if op == "<>":
        return plain & ~(a_nan & b_nan)
    if op in (">", "<="):
        more = a_nan & ~b_nan if op == ">" else b_nan
    else:
        more = b_nan & ~a_nan if op == "<" else a_nan
    return plain | (more & a.is_valid() & b.is_valid())
