"""Rows of a DataFrame become features by executors: in order, in one commit, and none of them in the driver."""

import os

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.columns.elsewhere import rows_aside
from tensorlake_spark.columns.elsewhere.feature_parts import PartEncoding
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidTensorError,
    TensorExistsError,
    UnsupportedDtypeError,
)
from tensorlake_spark.spark.frames import feature_frame


@pytest.fixture
def lake(tmp_path):
    return tl.open(tmp_path / "lake")


@pytest.fixture
def small_parts(monkeypatch):
    """A part is one block of rows, so that a small table has several."""
    monkeypatch.setattr(rows_aside, "_PART_BYTES", 1)


def numbers(spark, rows, partitions=4, start=0):
    return spark.range(start, start + rows, 1, partitions).selectExpr(
        "id", "cast(id as float) x", "if(id % 3 = 0, null, id > 5) ok", "timestamp_seconds(id) at"
    )


def leftovers(lake):
    return [name for name in os.listdir(lake.uri) if name.endswith(".arrow")]


def test_rows_keep_their_order_in_one_commit(spark, lake, small_parts):
    features = lake.features("ctr").write(numbers(spark, 10_000))
    assert lake.version == features.version == 1
    found = features.read()
    assert found["id"].to_pylist() == found["x"].to_pylist() == [*range(10_000)]
    assert found["ok"].to_pylist() == [None if k % 3 == 0 else k > 5 for k in range(10_000)]
    assert found.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert lake["ctr/float32"]._meta.totals.rows == 3
    assert lake["ctr/float32"]._meta.spec.segments[0] == (0,)
    assert not leftovers(lake)
    assert lake.check().ok


def test_it_is_the_table_that_python_writes(spark, lake, small_parts):
    frame = numbers(spark, 9000)
    lake.features("a").write(frame)
    lake.features("b").write(lake.features("a").read())
    assert lake.features("a").schema == lake.features("b").schema
    for name in ("int64", "float32", "bool", "bool/null"):
        a, b = lake[f"a/{name}"]._meta, lake[f"b/{name}"]._meta
        assert (a.spec.shape, a.spec.block_shape, a.spec.codec, a.spec.attrs, a.spec.labels) == (
            b.spec.shape, b.spec.block_shape, b.spec.codec, b.spec.attrs, b.spec.labels,
        )  # fmt: skip
        assert a.totals == b.totals


def test_the_driver_reads_a_sample_and_no_more(spark, lake, monkeypatch):
    def here(*_):
        raise AssertionError("the driver encodes")

    read, real = [], rows_aside.read_span

    def counted(storage, span, places=None):
        batch = real(storage, span, places)
        read.append(batch.num_columns)
        return batch

    # Executors are other processes, which have neither of these.
    monkeypatch.setattr(PartEncoding, "encode", here)
    monkeypatch.setattr(rows_aside, "read_span", counted)
    frame = spark.range(0, 5000, 1, 2).selectExpr(
        *(f"cast(id + {k} as float) f{k}" for k in range(40))
    )
    found = lake.features("ctr").write(frame).read()
    assert read == [16]
    for k in range(40):
        assert found[f"f{k}"].to_pylist() == [*range(k, 5000 + k)]


@pytest.mark.parametrize("before", [0, 1000, 4096])
def test_an_append_continues_rows_types_and_nulls(spark, lake, small_parts, before):
    table = pa.table(
        {
            "a": pa.array(np.arange(before) % 200, pa.uint8()),
            "b": pa.array(np.arange(before) % 64 / 8, pa.float16()),
            "c": pa.array(np.arange(before) % 7, pa.uint8()),
        }
    )
    features = lake.features("ctr").write(table)
    features.deprecate(["c"])
    frame = spark.range(0, 9000, 1, 3).selectExpr(
        "if(id = 8000, null, cast(id % 8 as double)) b", "cast(id % 256 as int) a"
    )
    features.append(frame)
    assert features.version == 3
    assert len(features) == before + 9000
    found = features.read()
    assert found.schema == table.select(["a", "b"]).schema
    assert found["a"].to_pylist() == [*(np.arange(before) % 200), *(np.arange(9000) % 256)]
    want = [*(np.arange(before) % 64 / 8), *(np.arange(9000) % 8)]
    want[before + 8000] = None
    assert found["b"].to_pylist() == want
    with pytest.warns(FutureWarning):
        assert features.read(["c"])["c"].null_count == 9000
    features.append(pa.table({"a": pa.array([1], pa.uint8()), "b": pa.array([None], pa.float16())}))
    features.append(frame.limit(5))
    assert features.read(rows=slice(before + 9000, None))["b"].to_pylist() == [None, 0, 1, 2, 3, 4]
    assert not leftovers(lake)
    assert lake.check().ok


def test_an_append_goes_on_after_features_were_added(spark, lake, small_parts):
    features = lake.features("ctr").write(pa.table({f"f{k}": np.arange(5.0) for k in range(20)}))
    features.add(pa.table({f"g{k}": np.arange(5.0) for k in range(20)}))
    frame = spark.range(0, 6000, 1, 2).selectExpr(
        *(f"cast(id * {k} as double) {name}" for k, name in enumerate(features.names))
    )
    features.append(frame)
    found = features.read()
    for k, name in enumerate(features.names):
        assert found[name].to_pylist() == [0, 1, 2, 3, 4, *(k * i for i in range(6000))]
    assert lake.check().ok


@pytest.mark.parametrize("pieces", [(9000,), (100, 5000, 3900)])
def test_features_are_added_by_executors(spark, lake, small_parts, monkeypatch, pieces):
    def here(*_):
        raise AssertionError("the driver encodes")

    features = lake.features("ctr").write(pa.table({"a": np.arange(pieces[0])}))
    for rows in pieces[1:]:
        features.append(pa.table({"a": np.arange(rows)}))
    before = {*os.listdir(lake.uri)}
    monkeypatch.setattr(PartEncoding, "encode", here)
    features.add(numbers(spark, 9000).withColumnRenamed("id", "b"))
    assert features.version == len(pieces) + 1
    assert features.names == ["a", "b", "x", "ok", "at"]
    found = features.read()
    assert found["b"].to_pylist() == found["x"].to_pylist() == [*range(9000)]
    assert found["ok"].to_pylist() == [None if k % 3 == 0 else k > 5 for k in range(9000)]
    assert found.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert before < {*os.listdir(lake.uri)}
    assert not leftovers(lake)
    assert lake.check().ok


def test_features_that_do_not_fit_are_not_added(spark, lake):
    features = lake.features("ctr").write(pa.table({"a": [1, 2]}))
    before = {*os.listdir(lake.uri)}
    with pytest.raises(InvalidTensorError, match="3 rows of new features do not fit 'ctr'"):
        features.add(spark.range(3).selectExpr("id b"))
    with pytest.raises(InvalidTensorError, match="feature 'a' is in 'ctr' already"):
        features.add(spark.range(2).selectExpr("id a"))
    assert {*os.listdir(lake.uri)} == before
    assert features.names == ["a"]


def test_overwrite_batches_and_no_rows(spark, lake):
    features = lake.features("ctr")
    for value in (1, 2):
        features.write(spark.createDataFrame([(value,)], "a int"), mode="overwrite")
    for _ in range(2):
        features.append(spark.createDataFrame([(3,)], "a int"), transaction=("app", 1))
    assert features.read()["a"].to_pylist() == [2, 3]
    with pytest.raises(TensorExistsError, match="exist in"):
        features.write(spark.createDataFrame([(3,)], "a int"))
    empty = lake.features("none").write(spark.createDataFrame([], "a int, b float"))
    assert empty.names == ["a", "b"]
    assert len(empty) == 0
    empty.append(spark.createDataFrame([(1, None)], "a int, b float"))
    assert empty.read().to_pylist() == [{"a": 1, "b": None}]


def test_rows_that_are_never_the_same_again_are_computed_once(spark, lake, small_parts):
    frame = spark.range(0, 9000, 1, 3).selectExpr("id", "rand() r", "uuid() > '8' u")
    found = lake.features("ctr").write(frame).read()
    assert found["id"].to_pylist() == [*range(9000)]
    assert len({*found["r"].to_pylist()}) > 8990


def test_another_writer_is_met_by_encoding_anew(spark, lake, monkeypatch):
    features = lake.features("ctr").write(pa.table({"a": [0, 1]}))
    real, jobs = feature_frame.FrameRows.encode, []

    def beside(rows, encoding):
        jobs.append(encoding)
        yield from real(rows, encoding)
        if len(jobs) == 1:
            lake.features("ctr").append(pa.table({"a": [2]}))

    monkeypatch.setattr(feature_frame.FrameRows, "encode", beside)
    features.append(spark.range(3, 6, 1, 2).selectExpr("id a"))
    assert len(jobs) == 2
    assert features.read()["a"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert not leftovers(lake)
    live = {*lake._snapshot().files.path}
    assert {n for n in os.listdir(lake.uri) if n.endswith(".parquet")} == live


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("a string", UnsupportedDtypeError, "feature 'a' has the type string"),
        (
            "a int, m interval month",
            UnsupportedDtypeError,
            "column 'm' has the type interval month",
        ),
        ("b int, B2 array<int>", UnsupportedDtypeError, "feature 'B2' has the type list"),
    ],
)
def test_columns_that_are_no_features_are_refused(spark, lake, columns, error, message):
    with pytest.raises(error, match=message):
        lake.features("ctr").write(spark.createDataFrame([], columns))
    assert not os.path.exists(lake.uri) or not os.listdir(lake.uri)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select 256 a", "column 'a' of type int32 does not fit the feature, which has uint8"),
        ("select 1 b", "column 'b' is not a feature of 'ctr'"),
        ("select assert_true(false) is null a", "is not true"),
    ],
)
def test_an_append_that_fails_leaves_nothing(spark, lake, query, message):
    features = lake.features("ctr").write(pa.table({"a": pa.array([1], pa.uint8())}))
    before = {*os.listdir(lake.uri)}
    with pytest.raises(Exception, match=message) as raised:
        features.append(spark.sql(query))
    if "assert_true" not in query:
        assert isinstance(raised.value, InvalidTensorError)
    assert {*os.listdir(lake.uri)} == before
    assert features.read()["a"].to_pylist() == [1]


def test_a_codec_that_is_not_there_is_said_before_a_job_begins(spark, lake):
    seen = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    frame = spark.range(5).mapInArrow(count, "id long")
    with pytest.raises(InvalidOptionError, match="unknown codec 'zstt'; did you mean 'zstd'"):
        lake.features("ctr").write(frame, codec="zstt")
    lake.features("ctr").write(frame)
    assert seen.value == 5  # those of the second write alone
