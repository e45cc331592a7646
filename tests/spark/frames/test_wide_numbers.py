"""Numbers that Spark does not take as they stand in a text of SQL."""

import pytest
from sqlglot import exp, parse_one

from tensorlake_spark.spark.frames.wide_numbers import with_wide_number


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "CAST(9223372036854775808 AS DECIMAL(19, 0))"),
        ("0.5", "0.5"),
        ("9223372036854775808.25", "CAST(9223372036854775808.25 AS DECIMAL(21, 2))"),
        ("1" + "0" * 37, f"CAST(1{'0' * 37} AS DECIMAL(38, 0))"),
        ("1" + "0" * 38, f"CAST('1{'0' * 38}' AS DOUBLE)"),
        ("1e308", "1e308"),
        ("1e309", "CAST('1e309' AS DOUBLE)"),
    ],
)
def test_a_number_that_no_bigint_and_no_double_holds_is_cast(number, written):
    assert with_wide_number(exp.Literal.number(number)).sql(dialect="spark") == written


def test_all_else_stays():
    for node in (
        exp.Literal.string("9223372036854775808"),
        exp.Literal.number("x"),
        parse_one("a + 1"),
    ):
        assert with_wide_number(node) is node
