"""The option `quantize` of Spark's data source: executors write it, and both sides read it."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts.quantization.kinds import quantization_of
from tensorlake_spark.spark.source.schemas import TENSOR
from tensorlake_spark.spark.source.source_options import SparkWriteOptions

SLABS = f"lo array<bigint>, tensor {TENSOR.simpleString()}"


def slabs(spark, x, step):
    rows = [
        ([i, 0], (x.dtype.name, [*x[i : i + step].shape], x[i : i + step].tobytes()))
        for i in range(0, len(x), step)
    ]
    return spark.createDataFrame(rows, SLABS).repartition(2)


@pytest.mark.parametrize("quantize", ["int8", '{"error": 0.01}'])
def test_slabs_are_quantised(spark, place, quantize):
    x = np.cumsum(np.random.default_rng(0).standard_normal((40, 16)), axis=0).astype("f4")
    writer = slabs(spark, x, 7).write.format("tensor").mode("append")
    writer.option("id", "x").option("quantize", quantize).save(place)
    ref = tl.open(place)["x"]
    assert ref.quantization == quantization_of(quantize)
    bound = 0.01 if "error" in quantize else np.abs(x).max() / 254 * 1.001
    assert np.abs(ref[...] - x).max() <= bound
    read = spark.read.format("tensor").option("id", "x").option("slice", "3:5").load(place)
    found = np.concatenate(
        [
            np.frombuffer(row.tensor.data, "<f4").reshape(row.tensor.shape)
            for row in sorted(read.collect(), key=lambda row: list(row.lo))
        ]
    )
    assert np.array_equal(found, ref[3:5])


def test_the_option_is_checked_before_a_task_runs():
    good = SparkWriteOptions.parse({"path": "x", "quantize": '{"relative": 0.5}'})
    assert good.write.quantization == quantization_of({"relative": 0.5})
    with pytest.raises(InvalidOptionError, match="did you mean 'int8'"):
        SparkWriteOptions.parse({"path": "x", "quantize": "int7"})
