"""What ``format("tensor")`` refuses to be."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as t

import tensorlake_spark as tl
from tensorlake_spark.spark import plain_errors
from tensorlake_spark.spark.source.data_source import TensorDataSource


@pytest.mark.parametrize("way", ["readStream", "writeStream"])
def test_a_stream_is_told_what_takes_its_place(spark, tmp_path, way):
    tl.open(tmp_path / "lake")
    rate = spark.readStream.format("rate").load()
    kind = "tensor" if way == "writeStream" else "noop"
    if way == "readStream":
        reader = spark.readStream.format("tensor").schema("lo array<bigint>")
        rate = reader.option("id", "x").load(str(tmp_path / "lake"))
    stream = rate.writeStream.format(kind).option("id", "x")
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with (
        pytest.raises(tl.InvalidOptionError, match=f"has no {way}: "),
        plain_errors(),
    ):
        stream.start(str(tmp_path / "lake")).awaitTermination(60)


@pytest.mark.parametrize(
    ("options", "schema", "says"),
    [
        ({"id": "x", "view": "cells"}, "value int", "'value' as int, .* it as double; .*cast"),
        ({"id": "x", "view": "cells"}, "i0 string, value double", "'i0' as string, .* as bigint"),
        ({"id": "x"}, "tensor struct<dtype:string>", "'tensor' as struct<dtype:string>, .*"),
        ({"view": "catalog"}, "attrs map<string,string>", "'attrs' as map.*, .* it as string"),
        ({"id": "f", "view": "features"}, "a int", "'a' as int, .* it as bigint"),
        ({"id": "x", "view": "cells"}, "value double, value double", "column 'value' 2 times"),
    ],
)
def test_a_schema_with_other_types_is_refused_before_a_task_runs(
    spark, tmp_path, options, schema, says
):
    """A feature of 2**40 was read as 0, and tasks ended with an error of Arrow or of the JVM."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.array([0.5, 1.5]))
    lake.features("f").write(pa.table({"a": [2**40]}))
    source = TensorDataSource({"path": lake.uri, **options})
    with pytest.raises(tl.InvalidOptionError, match=says):
        source.reader(t.StructType.fromDDL(schema))
