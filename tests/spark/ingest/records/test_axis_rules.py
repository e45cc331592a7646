"""What ``--axis`` says, what an append may say, and that Spark puts values where the labels have them."""

import pytest

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.spark.ingest.records.axis_rules import Rule, merged_labels, parse_axis, settle
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
