"""What a query reads, as DataFrames."""

import numpy as np
import pandas as pd
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
        assert found.kinds == {"sid": Kind("scalar"), "x": Kind("array", 2), "g/n": Kind("scalar")}
        assert found.frame.columns == ["sid", "x", "g/n"]
        assert found.hidden == {"sid"}
    frame = source_of(spark, pd.DataFrame({"a": [1], "b": [[1.0, 2.0]]}), "t")
    assert frame.kinds == {"a": Kind("scalar"), "b": Kind("array", 1)}


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
