"""What is said of a record that will not do: where it lies, what it has, and what to do about it."""

import numpy as np
import pytest
from pyspark.sql import Row

from tensorlake_spark.spark.ingest.records.axis_rules import Rule
from tensorlake_spark.spark.ingest.records.bad_records import others, short, too_early, why
from tensorlake_spark.spark.ingest.records.record_files import FILE, ROW


def row(value, file="/data/x.parquet"):
    return Row(**{"c": value, FILE: file, ROW: 3})


@pytest.mark.parametrize(
    ("value", "rule", "dtype", "says"),
    [
        (None, None, None, 'is null; --where "c is not null" leaves such records out'),
        ("", Rule("int"), None, "is null; --where"),
        ("abc", None, None, "has 'abc', which is not a number that a value could be"),
        (str(2**70), None, np.dtype("f8"), "beyond int64, as which whole numbers are read"),
        ("300", None, np.dtype("u1"), "which is no uint8, the dtype of the tensor"),
        (
            "1.5",
            Rule("int"),
            None,
            "not an integer; --axis a=c:1 makes bins of numbers, --axis a=c:label",
        ),
        (
            "0.5",
            Rule("int", start=1, is_labelled=False),
            None,
            "those of .tns files are integers from 1 on",
        ),
        ("inf", Rule("bins"), None, "not a finite number"),
        ("x", Rule("label"), None, "no label"),
        (
            "31.12.2024",
            Rule("time", 1, "D"),
            None,
            '--column makes one, as --column "t=to_timestamp(c, ',
        ),
    ],
)
def test_why_a_value_will_not_do(value, rule, dtype, says):
    said = why(row(value), "c", "a", rule, dtype)
    assert said.startswith("/data/x.parquet, row 3 (from 0): column 'c' ")
    assert says in said


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Rule("int"), "is below 0, the first index of axis 'a'; --axis a=c@START counts"),
        (Rule("int", start=5), "is below 5, the first index"),
        (
            Rule("int", start=1, is_labelled=False),
            "indices of .tns files count from 1, add 1 if these count from 0",
        ),
        (
            Rule("time", 15, "m", "2024-01-01"),
            "the first bin of axis 'a', 2024-01-01; write the tensor anew with --mode overwrite and an earlier start, --axis a=c:15minute@START",
        ),
        (
            Rule("bins", 0.5, None, 2.0),
            "--axis a=c:0.5@START, or leave such records out with --where",
        ),
    ],
)
def test_why_a_value_is_too_early(rule, says):
    assert says in too_early("a", "c", rule)


def test_long_texts_are_cut():
    assert short("a" * 80) == repr("a" * 80)
    assert short("a" * 81) == repr("a" * 80 + "...")
    assert len(why(row("x" * 10_000), "c", "a", None)) < 300


def test_how_many_records_are_so():
    assert others(1) == ""
    assert others(7) == " (7 records are so)"
