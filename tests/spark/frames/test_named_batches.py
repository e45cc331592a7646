"""Columns of any names reach the tasks."""

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark import samples, write_samples
from tensorlake_spark.spark.frames.named_batches import in_arrow


@pytest.mark.parametrize("names", [["a.b", "c`d", " e"], ["A", "a"], ["", "c0"]])
def test_batches_have_the_names_of_the_columns(spark, names):
    def told(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"told": [str(batch.to_pydict())]})

    frame = spark.range(1, 2, 1, 1).selectExpr(*(f"id * {k} x{k}" for k in range(len(names))))
    (row,) = in_arrow(frame.toDF(*names), told, "told string").collect()
    assert row.told == str({name: [k] for k, name in enumerate(names)})


def test_features_and_samples_may_have_a_dot_in_their_names(spark, tmp_path):
    frame = spark.sql("select 1 as `a.b`, 2 as `c``d`")
    features = tl.open(tmp_path / "lake").features("ctr").write(frame)
    assert features.append(frame).read().to_pylist() == [{"a.b": 1, "c`d": 2}] * 2
    write_samples(frame, str(tmp_path / "ds"))
    assert samples(spark, str(tmp_path / "ds")).collect()[0].asDict() == {
        "sid": 0,
        "a.b": 1,
        "c`d": 2,
    }
