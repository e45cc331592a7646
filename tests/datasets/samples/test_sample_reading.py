"""Columns of samples in runs, and as arrays."""

import numpy as np
import pyarrow as pa

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples import sample_reading
from tensorlake_spark.datasets.samples.sample_reading import decoded, read_column, runs_of


def test_runs_follow_the_bytes_of_the_columns_that_are_asked(tmp_path):
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("uint8"), "n": "int32"})
    ds.extend({"x": [np.zeros(1 << 18, np.uint8)] * 200, "n": np.arange(200)})
    large = [len(run) for run in runs_of(ds.parts, ["x"], np.arange(200))]
    assert sum(large) == 200
    assert max(large) << 18 <= 2 * sample_reading.BATCH_BYTES
    assert [len(run) for run in runs_of(ds.parts, ["n"], np.arange(200))] == [200]


def test_a_column_with_a_null_is_a_list(tmp_path):
    ds = tl.dataset(tmp_path, {"n": "int32"})
    ds.extend({"n": [1, None, 3]})
    assert isinstance(read_column(ds.parts, "n", np.arange(3)), pa.Array)
    assert ds["n"][:] == [1, None, 3]
    assert decoded(read_column(ds.parts, "n", np.array([0, 2])), ds.schema["n"]).tolist() == [1, 3]
