"""Files of sparse matrices, some elements at a time: SciPy, which reads them whole, is the oracle."""

import numpy as np
from sparse_files import saved

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest import ingestion as ingest
from tensorlake_spark.spark.ingest.records import matrices
from tensorlake_spark.spark.ingest.records.matrices import header_of


def test_executors_share_a_file(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "x.npz")
    want = saved(path, "csr packed")
    monkeypatch.setattr(matrices, "_PART_BYTES", 700)
    records, shape, dtype = matrices.matrix_records(spark, [path])
    assert records.frame.rdd.getNumPartitions() == len(header_of(path).parts) > 4
    ingest.run(spark, str(tmp_path / "lake"), "x", [path])
    ref = tl.open(tmp_path / "lake")["x"]
    assert (ref.shape, ref.dtype) == (shape, dtype)
    got = ref[...]
    np.testing.assert_array_equal(got.todense() if ref.layout != "ftsf" else got, want)
