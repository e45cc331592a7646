"""Divisions and floors of plain numbers, and what is NaN or infinite, in Spark SQL as the other engine has them.

By zero Spark would raise an error. Its ``floor`` of a float is a whole number: NaN becomes 0, and large ones are cut.
Null is not NaN there, and it does not know what is infinite.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tensorlake_spark.query.functions.tree_names import function_name, remainder_by_zero
from tensorlake_spark.spark.frames.wide_numbers import with_wide_number

_NAN = '{"v":"NaN"}'

_EXACT = exp.Literal.number(1 << 52)
"""Floats beyond have no fraction."""


def like_numpy(node: Any) -> Any:
    """Return a number, a division, a remainder or a floor with the other engine's value, any other node as it is.

    By zero it is NumPy's: a quotient is inf or NaN, a remainder NaN if it is a float, and 0 if it is a whole number.
    Floors and ceilings are floats; those of decimals are decimals.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> some = parse("SELECT a / b, a DIV b, a % 3, a + b FROM t").selects
    >>> [like_numpy(one).sql("spark") for one in some][1:]
    ['IF((b) = 0, ((a) - (a)), a DIV b)', 'a % 3', 'a + b']
    """
    if isinstance(node, exp.Literal):
        return with_wide_number(node)
    if isinstance(node, exp.Div):
        return _quotient(node)
    if isinstance(node, exp.BitwiseXor):  # a function becomes an operator, which binds less
        return exp.paren(node, copy=False)
    if isinstance(node, (exp.Ceil, exp.Floor)):
        return _floor(node)
    if isinstance(node, exp.IsNan):
        absent = exp.Is(this=exp.paren(node.this), expression=exp.null())
        return exp.If(this=absent, true=exp.null(), false=node)
    if isinstance(node, exp.IsInf):
        return exp.paren(exp.EQ(this=_size(node.this), expression=_infinite()), copy=False)
    if function_name(node) == "isfinite":
        return exp.paren(
            exp.LT(this=_size(node.expressions[0]), expression=_infinite()), copy=False
        )
    return remainder_by_zero(node, _remainder)


def _size(node: Any) -> Any:
    return exp.Abs(this=_double(node))  # NaN is greater than all numbers


def _infinite() -> Any:
    return _double(exp.Literal.string("Infinity"))


def _floor(node: Any) -> Any:
    """Return a floor or a ceiling with the type that the other engine gives it.

    A zero of that type is added. As in `_nan_or_zero`, only Spark knows it.
    """
    value = exp.paren(node.this)
    kind = exp.Anonymous(this="typeof", expressions=[node.this.copy()])
    is_decimal = exp.Like(this=kind, expression=exp.Literal.string("decimal%"))
    exact = exp.Between(this=value.copy(), low=exp.Neg(this=_EXACT.copy()), high=_EXACT.copy())
    rounded = exp.If(this=exp.or_(is_decimal, exact), true=node, false=value)
    wanted = exp.If(this=is_decimal.copy(), true=kind.copy(), false=exp.Literal.string("double"))
    return exp.paren(exp.Add(this=rounded, expression=_read('{"v":0}', wanted)))


def _quotient(node: Any) -> Any:
    above, infinite = _double(node.this.copy()), _infinite()
    return _where_zero(
        node.expression,
        exp.Mul(this=above, expression=infinite),
        exp.Div(this=exp.Paren(this=above.copy()), expression=exp.paren(node.expression)),
    )


def _remainder(node: Any) -> Any:
    # A difference has the type of its parts; a product with 0 would have that of 0 too.
    nothing: Any = exp.paren(exp.Sub(this=exp.paren(node.this), expression=exp.paren(node.this)))
    if isinstance(node, exp.Mod):
        nothing = exp.Add(this=nothing, expression=_nan_or_zero(node, nothing.copy()))
    return _where_zero(node.expression, nothing, node)


def _nan_or_zero(node: Any, zero: Any) -> Any:
    """Return NaN if Spark finds that a node is a float, else 0, and in both cases the type stays.

    Only Spark knows the type of an expression, and no literal is NaN for floats and 0 for whole numbers. JSON is read
    as the type that it is told: as a whole number, NaN is null. Spark does this once, when it makes its plan.
    """
    kind = exp.Anonymous(this="typeof", expressions=[node.copy()])
    return exp.Coalesce(this=_read(_NAN, kind), expressions=[zero])


def _read(text: str, kind: Any) -> Any:
    """Return the value ``v`` of a text in JSON, as a type that an expression names."""
    schema = exp.Anonymous(this="concat", expressions=[exp.Literal.string("v "), kind])
    read = exp.Anonymous(this="from_json", expressions=[exp.Literal.string(text), schema])
    return exp.Dot(this=read, expression=exp.to_identifier("v"))


def _double(node: Any) -> Any:
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def _where_zero(below: Any, then: Any, otherwise: Any) -> Any:
    is_zero = exp.EQ(this=exp.paren(below), expression=exp.Literal.number(0))
    return exp.If(this=is_zero, true=then, false=otherwise)
