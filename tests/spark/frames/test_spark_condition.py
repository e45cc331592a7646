"""Conditions on samples: Spark finds those that plain Python finds."""

import datetime as dt

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.spark import samples
from tensorlake_spark.spark.frames.spark_condition import spark_condition

COLUMNS = {
    "label": tl.types.ClassLabel(["cat", "dog", "it's"]),
    "caption": "string",
    "day": "date",
    "training/score": "float64",
}
CONDITIONS = (
    "label = 'dog'",
    "label IN ('cat', 'it''s')",
    "'cat' <> LABEL",
    "label = 2 OR training.score IS NULL",
    '"training/score" BETWEEN 0.2 AND 0.5',
    "training.score * 2 - 1 > -0.5 AND NOT (label = 'cat')",
    "caption LIKE 's%1' AND `caption` IS NOT NULL",
    "caption = 'back\\slash'",
    "day >= DATE '2026-01-05'",
    "label % 2 = 1",
    "TRUE",
)


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    ds = tl.dataset(str(tmp_path_factory.mktemp("conditions") / "ds"), COLUMNS)
    ds.extend(
        {
            "label": [n % 3 for n in range(12)],
            "caption": [
                None if n == 5 else "back\\slash" if n == 6 else f"s{n}" for n in range(12)
            ],
            "day": [dt.date(2026, 1, 1 + n) for n in range(12)],
            "training/score": [None if n % 5 == 4 else n / 10 for n in range(12)],
        }
    )
    return ds


@pytest.mark.parametrize("where", CONDITIONS)
def test_spark_finds_what_python_finds(spark, ds, where):
    wanted = ds.to_arrow(["day"], where=where).column("day").to_pylist()
    assert wanted
    found = samples(spark, ds.uri, ["day"], where=where).collect()
    assert sorted(row.day for row in found) == wanted


NUMBERS = (
    "n / 0 IS NULL",
    "n / n IS NULL OR f / (n - 5) IS NULL",
    "n % 0 IS NULL AND 1 / 0 IS NULL",
    "n + 1 > 0",
    "(n + 1) * 2 > 10 AND - - n > 0",
    "-small = 128",
    "small * small > 100",
    "n * 0.1 > 0.3 AND n < 4",
    "f * f > 0.01",
)


@pytest.mark.parametrize("where", NUMBERS)
def test_numbers_are_computed_as_in_python(spark, tmp_path, where):
    """Spark's overflow and its division by zero ended the query, and -(-128) was -128."""
    ds = tl.dataset(tmp_path / "ds", {"n": "int32", "small": "int8", "f": "float32"})
    values = {"n": [5, 0, 3, 2**31 - 1], "small": [127, 0, -128, 3], "f": [0.1, -0.0, 0.3, 2.0]}
    ds.extend({name: np.array(of, ds.schema[name].dtype) for name, of in values.items()})
    wanted = ds.to_arrow(["n"], where=where).column("n").to_pylist()
    assert wanted
    assert sorted(r.n for r in samples(spark, ds.uri, ["n"], where=where).collect()) == sorted(
        wanted
    )


WIDE = (
    "n <= 18446744073709551615",
    "n > -9223372036854775809 AND small < 9223372036854775807.5",
    "NOT small BETWEEN 9223372036854775808 AND 3",
    "n + 0 < 9223372036854775808 OR n < -9223372036854775808",
    "n < 12345678901234567890123456789012345678901234567890",
    "n > 0.1234567890123456789012345678901234567890",
    "n < 1e400 AND -n > -1e400",
)


@pytest.mark.parametrize("where", WIDE)
def test_numbers_beyond_64_bits_leave_out_nulls(spark, tmp_path, where):
    """Spark took such comparisons for true, of nulls too, and refused numbers beyond its decimals and doubles."""
    ds = tl.dataset(tmp_path / "ds", {"n": "int64", "small": "int8"})
    ds.extend({"n": [1, None, 2**63 - 1], "small": [1, None, 3]})
    wanted = ds.to_arrow(["n"], where=where)["n"].to_pylist()
    assert wanted == [1, 2**63 - 1]
    assert [row.n for row in samples(spark, ds.uri, ["n"], where=where).collect()] == wanted


TIMES = (
    "at = TIMESTAMP '2026-01-01 03:00:00'",
    "at >= '2026-01-01 03:00:00' AND at < TIMESTAMP '2026-01-01 06:00:00+02:00'",
    "at BETWEEN TIMESTAMP '2026-01-01T03:00:00Z' AND '2026-01-01 03:30:00'",
    "AT IN (TIMESTAMP '2026-01-01 03:00:00', DATE '2027-01-01')",
    "DATE '2026-01-01' < at AND NOT at > '2026-01-01 04:00:00' AND at <> '2026-01-01 01:00:00' AND n > 2",
)


@pytest.mark.parametrize("where", TIMES)
def test_times_without_a_zone_are_those_of_utc_in_any_session(spark, tmp_path, where):
    """Spark took them as times in the session's zone, and found other samples than Python."""
    ds = tl.dataset(tmp_path / "ds", {"n": "int64", "at": "timestamp"})
    start = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    ds.extend({"n": range(12), "at": [start + dt.timedelta(hours=n) for n in range(12)]})
    wanted = ds.to_arrow(["n"], where=where)["n"].to_pylist()
    assert wanted[0] == 3
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = [row.n for row in samples(spark, ds.uri, ["n"], where=where).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert sorted(found) == wanted


APART_CONDITIONS = (
    "image.height > 6",
    "image.height > 6 AND label = 'dog'",
    "label <> 'cat' AND (image.height < 6 OR day = DATE '2026-01-05')",
    "NOT (image.width = 3 OR image IS NULL) AND training.score >= 0.2",
    "training.note LIKE 'n%1' AND image.height < 100",
)


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """The same samples with columns apart, in two files."""
    columns = {
        **COLUMNS,
        "image": tl.types.Image("png", apart=True),
        "training/note": tl.types.Text(apart=True),
    }
    ds = tl.dataset(str(tmp_path_factory.mktemp("apart") / "ds"), columns)
    for start in (0, 6):
        numbers = range(start, start + 6)
        ds.extend(
            {
                "label": [n % 3 for n in numbers],
                "caption": [f"s{n}" for n in numbers],
                "day": [dt.date(2026, 1, 1 + n) for n in numbers],
                "training/score": [n / 10 for n in numbers],
                "image": [
                    None if n == 8 else np.zeros((1 + n, 3 + n % 2, 3), np.uint8) for n in numbers
                ],
                "training/note": [f"n{n}" for n in numbers],
            }
        )
    return ds


@pytest.mark.parametrize("where", APART_CONDITIONS)
def test_columns_that_are_kept_apart_are_asked_too(spark, apart, where):
    wanted = apart.to_arrow(["day"], where=where).column("day").to_pylist()
    assert 0 < len(wanted) < 12
    found = samples(spark, apart.uri, ["day"], where=where).collect()
    assert sorted(row.day for row in found) == wanted


def test_what_the_table_can_be_asked_reaches_spark(apart):
    table = apart.stored.schema
    both = spark_condition("image.height > 6 AND label = 'dog'", apart.schema, table)
    assert both == ("`label` = 1", True)
    alone = spark_condition("image.height > 6 OR label = 'dog'", apart.schema, table)
    assert alone == ("TRUE", True)
    with pytest.raises(InvalidOptionError, match=r"'image' has no field 'hight'.*'height'"):
        spark_condition("image.hight > 6", apart.schema, table)


def test_mistakes_are_named(ds):
    table = ds.schema.to_arrow()
    with pytest.raises(InvalidOptionError, match=r"no column 'lable'.*'label'"):
        spark_condition("lable = 1", ds.schema, table)
    with pytest.raises(InvalidOptionError, match="bird"):
        spark_condition("label = 'bird'", ds.schema, table)
