"""Spark writes features: executors encode partitions one after the other, and the driver makes one commit."""

import datetime as dt
import os

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import tensorlake_spark as tl
from tensorlake_spark.columns.elsewhere import rows_aside
from tensorlake_spark.columns.elsewhere.feature_parts import PartEncoding
from tensorlake_spark.errors import ConcurrentWriteError, InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.spark import plain_errors
from tensorlake_spark.spark.source.data_source import TensorDataSource
from tensorlake_spark.spark.source.schemas import arrow_schema
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.feature_writer import FeatureWriter


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


@pytest.mark.parametrize("partitions", [1, 4, 9])
def test_the_driver_encodes_no_more_than_the_rest_of_a_block(spark, path, tmp_path, partitions):
    told = str(tmp_path / "told")

    class CountingWriter(FeatureWriter):
        def commit(self, messages):
            real = PartEncoding.encode

            def counted(encoding, table, start, mark):
                with open(told, "a") as file:
                    file.write(f"{table.num_rows}\n")
                return real(encoding, table, start, mark)

            PartEncoding.encode = counted  # in the process that commits; those of tasks are others
            try:
                super().commit(messages)
            finally:
                PartEncoding.encode = real

    class Counting(TensorDataSource):
        @classmethod
        def name(cls):
            return "counting"

        def writer(self, schema, overwrite):
            return CountingWriter(
                SparkWriteOptions.parse(self.options, self.s3a), schema, overwrite
            )

    spark.dataSource.register(Counting)
    for before in (0, 30_000):  # written, and appended
        frame = spark.range(before, before + 30_000, 1, partitions).selectExpr(
            "id", "cast(id as float) x", "if(id % 3 = 0, null, id) n"
        )
        named = {"view": "features", "id": "ctr"}
        frame.write.format("counting").options(**named).mode("append").save(str(path))
    with open(told) as file:
        assert [int(line) for line in file] == [30_000 % 4096] * 2
    lake = tl.open(path)
    found = lake.features("ctr").read()
    assert found["id"].to_pylist() == found["x"].to_pylist() == [*range(60_000)]
    assert found["n"].to_pylist() == [None if k % 3 == 0 else k for k in range(60_000)]
    assert lake.version == 2
    assert lake.check().ok
    assert {*os.listdir(path)} == {"_delta_log", *lake._snapshot().files.path}


def test_it_is_the_table_that_python_writes(spark, path):
    frame = spark.range(0, 30_000, 1, 5).selectExpr("id", "if(id > 20000, null, id > 5) ok")
    write(frame, path, id="a")
    lake = tl.open(path)
    lake.features("b").write(lake.features("a").read())
    for name in ("int64", "bool", "bool/null"):
        a, b = lake[f"a/{name}"]._meta, lake[f"b/{name}"]._meta
        assert a.totals == b.totals
        assert (a.spec.shape, a.spec.codec, a.spec.attrs, a.spec.labels) == (
            b.spec.shape, b.spec.codec, b.spec.attrs, b.spec.labels,
        )  # fmt: skip


class Tasks:
    """Tasks of one write in the order that a test gives them, and the rows that its driver encodes."""

    def __init__(self, path, spark, monkeypatch, overwrite=False):
        schema = spark.range(1).select("id").schema
        options = SparkWriteOptions.parse({"path": str(path), "id": "ctr", "view": "features"}, {})
        self.writer = FeatureWriter(options, schema, overwrite)
        self.schema = arrow_schema(schema)
        self.encoded = []
        real = PartEncoding.encode

        def counted(encoding, table, start, mark):
            self.encoded.append((start, table.num_rows))
            return real(encoding, table, start, mark)

        monkeypatch.setattr(PartEncoding, "encode", counted)

    def do(self, partition, numbers):
        batch = pa.record_batch([pa.array(numbers, pa.int64())], schema=self.schema)
        return self.writer.write_partition(partition, iter([batch]), patience=0)

    def commit(self, messages):
        """Return what the driver encodes."""
        self.encoded.clear()
        self.writer.commit(messages)
        return self.encoded


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_tasks_may_end_in_any_order(spark, path, monkeypatch, order):
    tasks = Tasks(path, spark, monkeypatch)
    messages = [tasks.do(k, range(5000 * k, 5000 * k + 5000)) for k in order]
    assert tasks.commit(messages) == [(16384, 20_000 - 16384)]
    lake = tl.open(path)
    assert lake.features("ctr").read()["id"].to_pylist() == [*range(20_000)]
    assert {*os.listdir(path)} == {"_delta_log", *lake._snapshot().files.path}


def test_a_task_that_is_tried_again_keeps_the_rows_that_others_count_on(spark, path, monkeypatch):
    tasks = Tasks(path, spark, monkeypatch)
    tasks.do(0, range(5000))  # its answer is lost
    second = tasks.do(1, range(5000, 9000))
    first = tasks.do(0, range(9000, 9100))
    assert tasks.commit([first, second]) == [(8192, 808)]
    assert tl.open(path).features("ctr").read()["id"].to_pylist() == [*range(9000)]


def test_parts_of_rows_that_do_not_count_are_encoded_anew(spark, path, monkeypatch):
    tasks = Tasks(path, spark, monkeypatch)
    other = Tasks(path, spark, monkeypatch)
    second = [tasks.do(0, range(5000)), tasks.do(1, range(5000, 9000))][1]
    first = other.do(0, range(100))  # of a task that ran at the same time, in files of its own
    assert tasks.commit([first, second]) == [(0, 4096), (4096, 4)]
    assert tl.open(path).features("ctr").read()["id"].to_pylist() == [
        *range(100),
        *range(5000, 9000),
    ]


def test_what_a_lost_task_has_encoded_is_encoded_by_the_driver(spark, path, monkeypatch):
    monkeypatch.setattr(rows_aside, "_PART_BYTES", 1)
    tasks = Tasks(path, spark, monkeypatch)
    last = tasks.do(1, range(5000, 13_000))
    tasks.do(0, range(5000))  # it has encoded the rows of both, and its answer is lost
    first = tasks.do(0, [])
    assert len(first.parts) == 3
    first = type(first)(first.file, first.parts[1:2])
    assert tasks.commit([last, first]) == [(0, 4096), (8192, 4096), (12_288, 712)]
    assert tl.open(path).features("ctr").read()["id"].to_pylist() == [*range(13_000)]


def test_another_writer_is_met_by_encoding_in_the_driver(spark, path, monkeypatch):
    features = tl.open(path).features("ctr")
    features.write(pa.table({"id": [0, 1]}))
    tasks = Tasks(path, spark, monkeypatch)
    told = tasks.do(0, range(5000))
    features.append(pa.table({"id": [2]}))
    assert tasks.commit([told]) == [(0, 5000)]
    lake = tl.open(path)
    assert lake.features("ctr").read()["id"].to_pylist() == [0, 1, 2, *range(5000)]
    assert {*os.listdir(path)} == {"_delta_log", *lake._snapshot().files.path}


def test_other_types_than_when_the_write_began_are_an_error(spark, path, monkeypatch):
    features = tl.open(path).features("ctr")
    features.write(pa.table({"id": pa.array([0, 1], pa.int16())}))
    tasks = Tasks(path, spark, monkeypatch)
    told = tasks.do(0, range(5000))
    features.write(pa.table({"id": pa.array([0, 1], pa.int32())}), mode="overwrite")
    before = {*os.listdir(path)}
    with pytest.raises(ConcurrentWriteError, match="has changed the types of the features"):
        tasks.commit([told])
    assert {*os.listdir(path)} < before


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


def test_what_spark_reads_of_features_can_be_appended_to_them(spark, path):
    """Spark has no uint64, no times of day and no durations."""
    table = pa.table(
        {
            "big": pa.array([2**64 - 1, None], pa.uint64()),
            "at": pa.array([dt.time(0, 0, 1), None], pa.time32("s")),
            "took": pa.array([dt.timedelta(seconds=1), None], pa.duration("ms")),
            "day": pa.array([dt.date(2000, 1, 1), None], pa.date64()),
            "half": pa.array([0.5, None], pa.float16()),
        }
    )
    features = tl.open(path).features("ctr").write(table)
    named = {"view": "features", "id": "ctr"}
    frame = spark.read.format("tensor").options(**named).load(str(path))
    write(frame, path)
    assert tl.open(path).features("ctr").read().equals(pa.concat_tables([table, table]))
    features = tl.open(path).features("ctr").append(frame)
    assert features.read().equals(pa.concat_tables([table, table, table]))
    wrong = frame.selectExpr(*frame.columns[1:], "cast(-1 as decimal(20, 0)) big")
    with plain_errors(), pytest.raises(Exception, match=r"column 'big' of type decimal.* does not fit the feature"):  # fmt: skip
        write(wrong, path)
    with pytest.raises(UnsupportedDtypeError, match="feature 'big' has the type decimal"):
        tl.open(path).features("new").write(frame)


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
        ("a int, m interval year", {}, "column 'm' has the type interval year, which .*; cast it"),
        ("a int", {"view": "cells"}, "option view='cells' is not a view that can be written"),
        ("a int", {"axis": "1"}, "option axis='1' is not one of the view 'features'"),
        ("a int", {"columns": "a"}, "unknown option 'columns' for writing"),
        ("a int", {"codec": "zstt"}, "unknown codec 'zstt'; did you mean 'zstd'"),
        ("a int", {"codec": "int8+zstd"}, "its step int8 quantises; give quantize='int8'"),
        ("a int, b boolean", {"codec": "pco"}, "no form for dtype bool, which feature 'b' has"),
        ("a int", {"quantize": "int8"}, "option quantize='int8' is not one of the view 'features'"),
    ],
)
def test_what_is_wrong_is_said(spark, path, columns, options, message):
    with pytest.raises((AnalysisException, InvalidTensorError), match=message):
        write(spark.createDataFrame([], columns), path, **options)
    assert not path.exists() or not os.listdir(path)
