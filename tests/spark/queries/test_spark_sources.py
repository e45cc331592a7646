"""What a query reads, as DataFrames."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError
from tensorlake_spark.spark import query
from tensorlake_spark.spark.queries import spark_sources
from tensorlake_spark.spark.queries.result_kinds import Kind
from tensorlake_spark.spark.queries.spark_sources import source_of


def test_kinds_of_datasets_and_frames(spark, tmp_path):
    ds = tl.dataset(
        str(tmp_path / "ds"), {"x": tl.types.Tensor("float32", (None, 3)), "g/n": "int32"}
    )
    ds.extend({"x": [np.zeros((2, 3), "f4")], "g/n": [1]})
    for given in (ds, ds.uri):
        found = source_of(spark, given, "ds")
        plain = dict.fromkeys(["sid", "x/dtype", "g/n"], Kind("scalar"))
        assert found.kinds == {**plain, "x": Kind("array", 2)}
        assert found.frame.columns == ["sid", "x", "g/n", "x/dtype"]
        assert found.hidden == {"sid", "x/dtype"}
    frame = source_of(spark, pd.DataFrame({"a": [1], "b": [[1.0, 2.0]]}), "t")
    assert frame.kinds == {"a": Kind("scalar"), "b": Kind("array", 1, listed=True)}


def test_a_version_of_a_dataset_is_analysed_once(spark, tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    ds.extend({"n": [1, 2]})
    first = source_of(spark, ds.uri, "ds")
    assert source_of(spark, ds, "again") is first
    ds.extend({"n": [3]})  # a new version is seen at once, and an old one stays what it is
    newer = source_of(spark, ds.uri, "ds")
    assert (newer.frame.count(), first.frame.count()) == (3, 2)
    assert source_of(spark, ds.uri, "ds", 1) is first
    shutil.rmtree(ds.uri)
    again = tl.dataset(ds.uri, {"m": "int64"})
    again.extend({"m": [7]})
    again.extend({"m": [8]})
    assert again.version == ds.version
    assert source_of(spark, ds.uri, "ds").frame.columns == ["sid", "m"]


def test_few_datasets_are_kept_and_go_with_their_session(spark, tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    for number in range(spark_sources._MOST_KEPT + 2):
        ds.extend({"n": [number]})
    session = spark.newSession()
    oldest = source_of(session, ds.uri, "ds", 1)
    for version in range(2, ds.version + 1):
        assert source_of(session, ds.uri, "ds", 1) is oldest  # asked again, it stays
        source_of(session, ds.uri, "ds", version)
    source_of(session, ds.uri, "ds", 2)
    assert len(session.__dict__[spark_sources._KEPT]) == spark_sources._MOST_KEPT
    assert source_of(spark.newSession(), ds.uri, "ds", 1) is not oldest


def test_a_dataset_under_two_names_is_joined_with_itself(spark, tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32", "x": tl.types.Tensor("int32", (2,))})
    ds.extend({"n": [1, 2, 3], "x": np.arange(6, dtype="int32").reshape(3, 2)})
    sql = (
        "SELECT a.n, b.n AS m, array_sum(a.x) AS s, array_sum(b.x) AS t FROM a JOIN b ON a.n = b.n + 1 "
        "WHERE a.sid IN (SELECT c.sid FROM a AS c) ORDER BY a.n"
    )
    found = query(spark, sql, a=ds, b=ds.uri).collect()
    assert [tuple(map(int, row)) for row in found] == [(2, 1, 5, 1), (3, 2, 9, 5)]


def test_plain_delta_and_nothing(spark, tmp_path):
    place = str(tmp_path / "delta")
    spark.range(3).write.format("delta").save(place)
    spark.range(5).write.format("delta").mode("overwrite").save(place)
    assert source_of(spark, place, "t").frame.count() == 5
    assert source_of(spark, place, "t", 0).frame.count() == 3
    with pytest.raises(TableNotFoundError):
        source_of(spark, str(tmp_path / "nothing"), "t")
    with pytest.raises(InvalidOptionError, match="source t=list"):
        source_of(spark, [1], "t")


def test_tables_in_memory(spark):
    table = pa.table(
        {
            "a": pa.array([1, None], pa.uint64()),
            "b": pa.array([0.5, 1], pa.float16()),
            "c": pa.array(["x", "y"]).dictionary_encode(),
            "d": [[1.0, 2.0], []],
        }
    )
    found = source_of(spark, table, "t")
    assert [row.asDict() for row in found.frame.collect()] == [
        {"a": 1, "b": 0.5, "c": "x", "d": [1.0, 2.0]},
        {"a": None, "b": 1.0, "c": "y", "d": []},
    ]
    assert found.kinds["d"] == Kind("array", 1, listed=True)
    with pytest.raises(InvalidOptionError, match="source t: Spark has no type for a column"):
        source_of(spark, pa.table({"a": pa.array([[1]], pa.list_(pa.uint8()))}), "t")
    with pytest.raises(InvalidOptionError, match="t has no versions"):
        source_of(spark, table, "t", 1)


def test_a_lake_is_its_catalog(spark, tmp_path):
    lake = tl.open(str(tmp_path / "lake"))
    lake.write("a", np.zeros((2, 3), "f4"))
    lake.write("b", np.zeros(4))
    for given in (lake, lake.uri):
        found = source_of(spark, given, "t").frame.orderBy("id").collect()
        assert [(row.id, row.shape, row.dtype) for row in found] == [
            ("a", [2, 3], "float32"),
            ("b", [4], "float64"),
        ]
    assert source_of(spark, lake, "t", lake.version - 1).frame.count() == 1
