"""What ``format("tensor")`` refuses to be."""

import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark import plain_errors


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
