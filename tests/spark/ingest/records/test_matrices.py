"""Files of sparse matrices, some elements at a time: SciPy, which reads them whole, is the oracle."""

import numpy as np
import scipy.io
import scipy.sparse

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest import ingestion as ingest
from tensorlake_spark.spark.ingest.records import matrices
from tensorlake_spark.spark.ingest.records.matrices import header_of

SHAPE = (60, 84)


def random(form, dtype=np.float32, shape=SHAPE):
    rng = np.random.default_rng(3)
    made = scipy.sparse.random_array(
        shape,
        density=0.1,
        format="coo",
        rng=rng,
        data_sampler=lambda size: rng.integers(1, 99, size),
    )
    if form == "dia":
        made = scipy.sparse.triu(scipy.sparse.tril(made, 20), -20)
    return made.astype(dtype).asformat(form)


def saved(path, form):
    """Write a matrix; return what it is, dense."""
    matrix = random(form.removesuffix(" packed").removesuffix(" fortran"))
    if "fortran" in form:
        matrix.data = np.asfortranarray(matrix.data)
    scipy.sparse.save_npz(path, matrix, compressed="packed" in form)
    return matrix.toarray()


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
