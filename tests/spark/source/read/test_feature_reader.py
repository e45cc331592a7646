"""Spark reads features by name, in types of its own."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import tensorlake_spark as tl

TABLE = pa.table(
    {
        "age": pa.array([31, None, 54], pa.uint8()),
        "big": pa.array([2**64 - 1, 1, None], pa.uint64()),
        "half": pa.array([0.5, None, 1.5], pa.float16()),
        "seen": pa.array([dt.datetime(2020, 1, 1)] * 3, pa.timestamp("ns", tz="UTC")),
        "local": pa.array([dt.datetime(2020, 1, 1)] * 3, pa.timestamp("s")),
        "born": pa.array([dt.date(1990, 1, 1), None, dt.date(2000, 1, 1)]),
        "at": pa.array([dt.time(0, 0, 1), None, None], pa.time32("s")),
        "ok": pa.array([True, None, False]),
        "a,b": pa.array([1.0, 2.0, 3.0]),
    }
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("features") / "lake")
    lake = tl.open(path)
    lake.features("ctr").write(TABLE)
    many = {f"f{k}": np.arange(20_000, dtype=np.float32) + k for k in range(40)}
    lake.features("many").write(pa.table(many))
    lake.write("x", np.zeros(3))
    return path


def read(spark, path, **options):
    named = {"view": "features", "id": "ctr", **options}
    return spark.read.format("tensor").options(**named).load(path)


def test_types_and_values(spark, path):
    rows = read(spark, path).collect()
    assert dict(read(spark, path).dtypes) == {
        "age": "smallint", "big": "decimal(20,0)", "half": "float", "seen": "timestamp", "local": "timestamp_ntz",
        "born": "date", "at": "bigint", "ok": "boolean", "a,b": "double",
    }  # fmt: skip
    assert [r.age for r in rows] == [31, None, 54]
    assert [r.big for r in rows] == [decimal.Decimal(2**64 - 1), decimal.Decimal(1), None]
    assert [r.half for r in rows] == [0.5, None, 1.5]
    assert [r.at for r in rows] == [1, None, None]
    assert [r.ok for r in rows] == [True, None, False]
    assert rows[0].local == dt.datetime(2020, 1, 1)
    assert rows[0].born == dt.date(1990, 1, 1)


def test_columns_come_as_asked(spark, path):
    assert read(spark, path, columns="half, age").columns == ["half", "age"]
    assert read(spark, path, columns='["a,b", "age"]').columns == ["a,b", "age"]
    found = read(spark, path, columns="age", slice="1:").collect()
    assert [r.age for r in found] == [None, 54]


def test_rows_without_a_column_are_counted(spark, path, tmp_path):
    assert read(spark, path, columns="[]").count() == 3
    assert read(spark, path, columns="[]", id="many", slice="5:").count() == 19_995
    lake = tl.open(tmp_path)
    lake.features("ctr").write(TABLE.select(["age"])).deprecate(["age"])
    assert read(spark, str(tmp_path)).selectExpr("1 one").collect() == [(1,)] * 3


def test_many_partitions(spark, path):
    found = read(
        spark, path, id="many", columns="f3,f39", slice="100:20000", maxPartitionBytes="65536"
    )
    assert found.rdd.getNumPartitions() == 5
    x = np.array(found.collect())
    assert np.array_equal(x[:, 0], np.arange(100, 20000) + 3)
    assert np.array_equal(x[:, 1], np.arange(100, 20000) + 39)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "agee"}, "there is no feature 'agee' in 'ctr'; did you mean 'age'"),
        ({"columns": "age,age"}, "feature 'age' occurs 2 times"),
        ({"columns": "[1]"}, "is not a JSON array of strings"),
        ({"columns": "[a"}, "is not JSON"),
        ({"id": "ctl"}, "there are no features 'ctl' .* did you mean 'ctr'"),
        ({"slice": "0:2, 1"}, "is not a range of rows"),
        ({"slice": "::2"}, "is not a range of rows"),
        (
            {"view": "cells", "columns": "age", "id": "x"},
            "goes with view='features', not with 'cells'",
        ),
        ({"view": "feature"}, "unknown view 'feature'; did you mean 'features'"),
    ],
)
def test_what_is_wrong_is_said(spark, path, options, message):
    with pytest.raises(AnalysisException, match=message):
        read(spark, path, **options)
