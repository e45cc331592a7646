"""Divisions of plain numbers as Spark SQL: the types of their values are Spark's, and by zero they are NumPy's."""

import decimal
import math

import numpy as np
import pytest

from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark.queries.divisions import like_numpy


def sql(text):
    return parse(f"SELECT {text}").selects[0].transform(like_numpy).sql("spark")


@pytest.mark.parametrize("text", ["1 + 2", "5 % 3", "7 DIV 2.5"])
def test_what_is_not_by_zero_stays(text):
    assert sql(text) == text


def test_zeros_below_whole_numbers_floats_and_decimals(spark):
    kinds = {
        "int": 0,
        "smallint": 0,
        "bigint": 0,
        "double": math.nan,
        "float": math.nan,
        "decimal(5,2)": 0,
    }
    items = [sql(f"c{n} % 0") + f" AS c{n}" for n, _ in enumerate(kinds)]
    columns = [f"CAST(2 AS {kind}) AS c{n}" for n, kind in enumerate(kinds)]
    given = f"(SELECT {', '.join(columns)})"
    frame = spark.sql(f"SELECT {', '.join(items)} FROM {given}")
    whole = [kind for name, kind in frame.dtypes if name != "c5"]
    assert whole == ["int", "int", "bigint", "double", "double"]  # as those of `% 1`
    for found, wanted in zip(frame.first(), kinds.values(), strict=True):
        assert math.isnan(found) if math.isnan(wanted) else found == 0
    items = f"{sql('c0 / 0')} AS a, {sql('c0 DIV 0')} AS b, {sql('(c0 - 2) / 0')} AS c"
    row = spark.sql(f"SELECT {items} FROM {given}").first()
    assert (row.a, row.b) == (math.inf, 0)
    assert math.isnan(row.c)


def test_floors_of_floats_are_floats(spark):
    given = [2.5, -2.5, math.nan, math.inf, -math.inf, 1e300, -(2.0**52) - 1, 2.0**51 + 0.5, None]
    frame = spark.createDataFrame([(value,) for value in given], "w double")
    frame = frame.selectExpr(f"{sql('floor(w)')} AS a", f"{sql('ceil(w)')} AS b")
    rows = frame.selectExpr("a", "b", f"{sql('a % 0')} AS c", f"{sql('b % 0')} AS d").collect()
    for row, value in zip(rows[:-1], given, strict=False):
        wanted = np.floor(value), np.ceil(value), math.nan, math.nan
        assert np.array_equal(tuple(row), wanted, equal_nan=True)
    assert tuple(rows[-1]) == (None,) * 4


def test_floors_of_whole_numbers_and_decimals_have_the_types_of_the_other_engine(spark):
    texts = ["floor(i)", "floor(f)", "ceil(d)"]
    items = ", ".join(f"{sql(text)} AS c{n}" for n, text in enumerate(texts))
    large = "CAST('98765432109876543210.5' AS decimal(30, 1)) AS d"
    frame = spark.sql(f"SELECT {items} FROM (SELECT 7L AS i, CAST(-0.5 AS float) AS f, {large})")
    kinds = [kind.partition("(")[0] for _, kind in frame.dtypes]
    assert kinds == ["double", "double", "decimal"]
    assert tuple(frame.first()) == (7, -1, decimal.Decimal("98765432109876543211"))


@pytest.mark.parametrize(
    "text", ["n < 18446744073709551615", "n > -9223372036854775808.5", "n < 1e400"]
)
def test_numbers_beyond_64_bits_are_compared_with_values(spark, text):
    """Spark took the first two for true where n is null, and refused the third."""
    frame = spark.createDataFrame([(1,), (None,)], "n bigint")
    assert [row.n for row in frame.where(sql(text)).collect()] == [1]


def test_xor_binds_as_a_function_does(spark):
    """Spark has an operator for it, which binds less than a sign and a product."""
    assert spark.sql(f"SELECT {sql('-xor(3, 2 | 4) * 2')} AS a").first().a == -10


def test_what_is_nan_or_infinite_is_null_of_null(spark):
    """Spark's isnan of null is false, so that NOT isnan(f) kept nulls; it has no isinf."""
    names = ("isnan(f)", "NOT isnan(f)", "isinf(-f)", "isfinite(f)")
    items = ", ".join(f"{sql(text)} AS c{number}" for number, text in enumerate(names))
    rows = spark.sql(
        f"SELECT {items} FROM VALUES (1D), (DOUBLE('NaN')), (DOUBLE('Infinity')), (NULL) AS t(f)"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (False, True, False, True),
        (True, False, False, False),
        (False, True, True, False),
        (None, None, None, None),
    ]
