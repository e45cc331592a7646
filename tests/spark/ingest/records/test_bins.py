"""Bins of times and numbers: Spark puts a value where the labels have it."""

import datetime as dt

import numpy as np
import pytest
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.spark.ingest.records.axis_rules import Rule, parse_axis
from tensorlake_spark.spark.ingest.records.bins import Value, index_of, measure_of


def places(spark, rules, values, kind):
    """Every rule with its start, and the places of all values by it."""
    frame = spark.createDataFrame([(v,) for v in values], t.StructType([t.StructField("v", kind)]))
    measures = [measure_of(rule, f.col("v"), kind) for rule in rules]
    least = frame.agg(*(f.min(m).alias(f"m{i}") for i, m in enumerate(measures))).first()
    rules = [rule.begin(start) for rule, start in zip(rules, least, strict=True)]
    index = [index_of(r, m).alias(f"i{i}") for i, (r, m) in enumerate(zip(rules, measures))]
    return [*zip(rules, zip(*frame.select(*index).collect(), strict=True), strict=True)]


TIMES = "second", "15minute", "hour", "6hour", "day", "month", "3month", "year", "millisecond"


def test_times_lie_where_the_labels_have_them(spark):
    rng = np.random.default_rng(0)
    days = rng.integers(-4000 * 86400, 12000 * 86400, 200)
    times = [
        dt.datetime(1970, 1, 1) + dt.timedelta(seconds=int(s), microseconds=int(s % 7))
        for s in days
    ]
    rules = [parse_axis(f"t:{rule}")[2] for rule in TIMES]
    for rule, found in places(spark, rules, times, t.TimestampNTZType()):
        want = rule.labels().places(np.array(times, "datetime64[us]"))
        np.testing.assert_array_equal(found, want, str(rule))
        assert min(found) == 0


def test_weeks_begin_on_monday(spark):
    days = ["2013-01-06", "2013-01-07", "2013-01-02"]
    ((rule, found),) = places(spark, [parse_axis("t:week")[2]], days, t.StringType())
    assert (rule.start, found) == ("2012-12-31", (0, 1, 0))


def test_numbers_lie_where_the_labels_have_them(spark):
    rng = np.random.default_rng(0)
    values = [*(rng.integers(-500, 500, 200) * 0.01), *rng.normal(0, 50, 200)]
    rules = [parse_axis(f"x:{step}")[2] for step in ("0.01", "0.1", "3", "7.5", "1e-3")]
    for rule, found in places(spark, rules, [float(v) for v in values], t.DoubleType()):
        np.testing.assert_array_equal(found, rule.labels().places(np.array(values)), str(rule))
        assert min(found) == 0


def test_texts_that_are_no_times_or_numbers(spark):
    bad = ["10:00", "201301", "now", "", "2013-13-01", "2013-01-01 25:00", "9D", "0x1", "1_0"]
    kind = t.StringType()
    frame = spark.createDataFrame([(v,) for v in bad], t.StructType([t.StructField("v", kind)]))
    column = f.col("v")
    asked = [measure_of(Rule(k, unit="h"), column, kind) for k in ("time", "bins", "int")]
    rows = frame.select(column, *asked).collect()
    assert [r[0] for r in rows if r[1] is not None] == []
    assert [r[0] for r in rows if r[2] is not None] == ["201301"]
    assert [r[0] for r in rows if r[3] is not None] == ["201301"]


def test_a_function_that_combines_no_records_is_named():
    with pytest.raises(
        InvalidOptionError,
        match=r"^--value 'median\(v\)' is neither a column nor count\(\) nor sum",
    ):
        Value.parse(" median(v) ", ("v",))
    assert Value.parse("median(v)", ("median(v)",)) == Value("column", "median(v)")
