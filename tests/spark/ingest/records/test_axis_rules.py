"""What ``--axis`` says, what an append may say, and that Spark puts values where the labels have them."""

import datetime as dt

import numpy as np
import pytest
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.spark.ingest.records.axis_rules import Rule, merged_labels, parse_axis, settle
from tensorlake_spark.spark.ingest.records.bins import index_of, measure_of
from tensorlake_spark.tensor.labels import Listed, Regular


@pytest.mark.parametrize(
    ("text", "name", "column", "rule"),
    [
        ("carrier", "carrier", "carrier", None),
        ("day=time hour:day", "day", "time hour", Rule("time", 1, "D")),
        ("t:15minute@2013-01-01T05:00", "t", "t", Rule("time", 15, "m", "2013-01-01T05:00")),
        ("t:2 weeks", "t", "t", Rule("time", 14, "D", align=-3)),
        ("lat:0.01", "lat", "lat", Rule("bins", 0.01)),
        ("x:10@-20", "x", "x", Rule("bins", 10, None, -20)),
        ("x:1e-2@0.5", "x", "x", Rule("bins", 0.01, None, 0.5)),
        ("user=uid@1", "user", "uid", Rule("int", start=1)),
        ("zone:label", "zone", "zone", Rule("label")),
        ("m:month@2013-05-17", "m", "m", Rule("time", 1, "M", "2013-05")),
    ],
)
def test_an_axis_in_words(text, name, column, rule):
    assert parse_axis(text) == (name, column, rule)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not NAME"),
        ("a:hour:b", "is not NAME"),
        ("two words", "cannot name an axis"),
        ("value=fare", "not 'value'"),
        ("t:howr", "did you mean 'hour'"),
        ("t:0", "length above 0"),
        ("t:0hour", "unknown rule"),
        ("t:hour@yesterday", "not a time"),
        ("t:hour@2013-01-01T05:00Z", "not a time"),
        ("x:0.1@nan", "not a number"),
        ("x@1.5", "not an integer"),
        ("c:label@3", "no start"),
    ],
)
def test_mistakes_in_an_axis(text, says):
    with pytest.raises(InvalidOptionError, match=says):
        parse_axis(text)


HOURS = Regular("2013-01-01T05", 1, "h")


@pytest.mark.parametrize(
    ("given", "stored", "want"),
    [
        (None, None, Rule("int")),
        (None, Listed(("a",)), Rule("label")),
        (Rule("label"), Listed(("a",)), Rule("label")),
        (None, HOURS, Rule("time", 1, "h", "2013-01-01T05")),
        (Rule("time", 1, "h"), HOURS, Rule("time", 1, "h", "2013-01-01T05")),
        (None, Regular(0.5, 0.25), Rule("bins", 0.25, None, 0.5)),
        (None, Regular(1, 1), Rule("int", start=1)),
        (Rule("bins", 1), Regular(1, 1), Rule("bins", 1, None, 1)),
        (Rule("time", 7, "D", align=-3), Regular("2012-12-31", 7, "D"), None),
    ],
)
def test_an_append_goes_on_as_the_tensor_is(given, stored, want):
    found = settle("x", given, stored)
    assert found.labels() == stored if isinstance(stored, Regular) else found == want
    if want is not None:
        assert (found.kind, found.start) == (want.kind, want.start)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (Rule("label"), None),
        (Rule("int", start=1), None),
        (Rule("time", 1, "D"), HOURS),
        (Rule("time", 1, "h", "2014-01-01T00"), HOURS),
        (Rule("bins", 1), HOURS),
        (Rule("label"), HOURS),
        (Rule("int"), Listed(("a",))),
        (Rule("bins", 0.5), Regular(0.5, 0.25)),
    ],
)
def test_an_append_may_not_say_something_else(given, stored):
    with pytest.raises(InvalidTensorError, match="do not go with them"):
        settle("x", given, stored)


def test_new_labels_come_after_the_old_ones():
    assert merged_labels("c", ("b", "a"), ["d", "a", "c"]) == ("b", "a", "c", "d")
    assert merged_labels("c", (10, 9), [11.0, 10.0]) == (10, 9, 11)
    with pytest.raises(InvalidTensorError, match="none of that type"):
        merged_labels("c", (10, 9), ["10"])


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
