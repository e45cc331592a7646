"""Spark writes features: partitions one after the other, one commit."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark import plain_errors


def write(frame, path, mode="append", **options):
    named = {"view": "features", "id": "ctr", **options}
    frame.write.format("tensor").options(**named).mode(mode).save(str(path))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lake"


def test_rows_come_in_the_order_of_partitions(spark, path):
    frame = spark.range(0, 10_000, 1, 4).selectExpr(
        "id", "cast(id as float) x", "if(id % 3 = 0, null, id > 5) ok", "timestamp_seconds(id) at"
    )
    write(frame, path)
    lake = tl.open(path)
    found = lake.features("ctr").read()
    assert found["id"].to_pylist() == [*range(10_000)]
    assert found["ok"].null_count == 3334
    assert found.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert lake["ctr/int64"].block_shape == (4096, 16)
    assert lake["ctr/float32"]._meta.spec.segments[0] == (
        0,
    )  # partitions are joined to full blocks
    assert lake.version == 1
    assert not [name for name in os.listdir(path) if name.endswith(".arrow")]


def test_an_append_keeps_the_types_of_the_features(spark, path):
    table = pa.table({"a": pa.array([1, 2], pa.uint8()), "b": pa.array([0.5, None], pa.float16())})
    lake = tl.open(path)
    lake.features("ctr").write(table)
    write(spark.createDataFrame([(1.5, 255), (None, 7)], "b float, a int"), path)
    found = lake.features("ctr").read()
    assert found.schema == table.schema
    assert found["a"].to_pylist() == [1, 2, 255, 7]
    assert found["b"].to_pylist() == [0.5, None, 1.5, None]
    with plain_errors(), pytest.raises(Exception, match="column 'a' of type int32 does not fit the feature"):  # fmt: skip
        write(spark.createDataFrame([(1.5, 256)], "b float, a int"), path)
    assert len(lake.features("ctr")) == 4
    assert not [name for name in os.listdir(path) if name.endswith(".arrow")]


def test_overwrite_and_batches(spark, path):
    for value in (1, 2):
        write(spark.createDataFrame([(value,)], "a int"), path, "overwrite")
    for _ in range(2):
        write(spark.createDataFrame([(3,)], "a int"), path, txnAppId="app", txnVersion="1")
    assert tl.open(path).features("ctr").read()["a"].to_pylist() == [2, 3]


def test_what_python_wrote_spark_copies(spark, path):
    table = pa.table({f"f{k}": np.arange(50, dtype=np.float32) * k for k in range(30)})
    tl.open(path).features("ctr").write(table)
    named = {"view": "features", "id": "ctr"}
    write(spark.read.format("tensor").options(**named).load(str(path)), path, id="copy")
    assert tl.open(path).features("copy").read().equals(table)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("a string", {}, "feature 'a' has the type string, which is not a type of numbers"),
        ("a int, A2 array<int>", {}, "feature 'A2' has the type list"),
        ("a int", {"view": "cells"}, "option view='cells' is not a view that can be written"),
        ("a int", {"axis": "1"}, "option axis='1' is not one of the view 'features'"),
        ("a int", {"columns": "a"}, "unknown option 'columns' for writing"),
    ],
)
def test_what_is_wrong_is_said(spark, path, columns, options, message):
    with pytest.raises((AnalysisException, InvalidTensorError), match=message):
        write(spark.createDataFrame([], columns), path, **options)
    assert not path.exists() or not os.listdir(path)
