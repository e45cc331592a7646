"""What a query reads, as DataFrames."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError
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
