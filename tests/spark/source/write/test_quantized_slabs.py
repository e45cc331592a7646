"""The option `quantize` of Spark's data source: executors write it, and both sides read it."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as t

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts.quantization.kinds import quantization_of
from tensorlake_spark.spark.source.schemas import TENSOR
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.source_writer import TensorWriter

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


CELLS = t.StructType([*(t.StructField(name, t.LongType()) for name in ("i0", "i1"))])
CELLS.add("value", t.DoubleType())


def few(share):
    rng = np.random.default_rng(0)
    return np.where(rng.random((40, 50)) < share, rng.standard_normal((40, 50)), 0)


def written(x, place, overwrite, **options):
    """Write cells as a task and its driver do, in this process."""
    given = SparkWriteOptions.parse({"path": place, "id": "x", "shape": "40,50", **options})
    writer = TensorWriter(given, CELLS, overwrite)
    at = np.argwhere(x)
    columns = [*map(pa.array, at.T), pa.array(x[tuple(at.T)])]
    batch = pa.record_batch(columns, ["i0", "i1", "value"])
    writer.commit([writer.write(iter([batch]))])
    return tl.open(place)["x"]


@pytest.mark.parametrize("quantize", ["bfloat16", {"error": 0.3}, {"relative": 0.3}], ids=str)
@pytest.mark.parametrize(
    ("share", "overwrite", "layout"), [(0.5, True, "ftsf"), (0.5, False, "bsgs"), (0.03, True, "bsgs")]
)  # fmt: skip
def test_cells_are_quantised_once(place, quantize, share, overwrite, layout):
    """Cells that became chunks were rounded twice, and were off by more than the bound."""
    x = few(share)
    text = quantize if isinstance(quantize, str) else json.dumps(quantize)
    ref = written(x, place, overwrite, quantize=text)
    y = ref[...] if layout == "ftsf" else ref[...].todense()
    assert ref.layout == layout
    assert ref.quantization.kind == (
        quantize if isinstance(quantize, str) else next(iter(quantize))
    )
    bound = {"bfloat16": np.abs(x) / 256, "error": 0.3, "relative": 0.3 * np.abs(x)}
    assert (np.abs(y - x) <= bound[ref.quantization.kind]).all()
    assert not tl.open(place).check().findings


@pytest.mark.parametrize("quantize", ["int8", "split"])
def test_cells_have_no_rows_to_scale(place, quantize):
    said = f"'{quantize}' needs arrays, and cells .* give one of float16, .*layout='ftsf', quantize='{quantize}'"
    for overwrite in (True, False):
        with pytest.raises(InvalidOptionError, match=said):
            written(few(0.5), place, overwrite, quantize=quantize)


def test_the_option_is_checked_before_a_task_runs():
    good = SparkWriteOptions.parse({"path": "x", "quantize": '{"relative": 0.5}'})
    assert good.write.quantization == quantization_of({"relative": 0.5})
    with pytest.raises(InvalidOptionError, match="did you mean 'int8'"):
        SparkWriteOptions.parse({"path": "x", "quantize": "int7"})
