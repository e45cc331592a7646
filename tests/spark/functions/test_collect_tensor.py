"""Blocks of a DataFrame as one tensor on the driver: what is sparse stays so."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf

SHAPE = (9, 7, 5)


@pytest.fixture(scope="module")
def thin():
    rng = np.random.default_rng(1)
    return np.where(rng.random(SHAPE) < 0.15, rng.integers(-50, 50, SHAPE), 0).astype("f4")


@pytest.fixture(scope="module")
def path(tmp_path_factory, thin):
    lake = tl.open(tmp_path_factory.mktemp("collecting") / "lake")
    lake.write("thin", tl.SparseTensor.from_dense(thin), layout="coo")
    lake.write("filled", np.where(np.arange(9) < 4, 0, np.arange(9)), block_shape=(2,))
    lake.write("ones", np.ones(4), fill_value=1)
    # An array of its shape has no room anywhere.
    huge = tl.SparseTensor([[0, 10**6 - 1], [3, 10**6 - 1]], [1.0, 2.0], (10**6, 10**6))
    lake.write("huge", huge, layout="bsgs", block_shape=(1000, 1000))
    return lake.uri


def test_a_sparse_tensor_stays_one(spark, path, thin):
    ref = tl.open(path)["huge"]
    frame = tf.read_tensor(spark, path, "huge")
    assert tf.collect_tensor(frame).equals(ref[...])
    assert tf.collect_tensor(tf.read_tensor(spark, path, "huge", "::-1, 3")).equals(ref[::-1, 3])
    none = tf.collect_tensor(tf.read_tensor(spark, path, "huge", "5:9"))
    assert (none.nnz, none.shape, none.dtype) == (0, (4, 10**6), np.float64)
    with pytest.raises(tl.InvalidTensorError, match=r"takes 7\.3 TiB.*sparse=True"):
        tf.collect_tensor(frame, sparse=False)
    array = tf.collect_tensor(tf.read_tensor(spark, path, "thin"), sparse=False)
    np.testing.assert_array_equal(array, thin, strict=True)


def test_blocks_of_the_data_source_become_either(spark, path, thin):
    blocks = spark.read.format("tensor").option("id", "thin").load(path)
    np.testing.assert_array_equal(tf.collect_tensor(blocks, shape=SHAPE), thin, strict=True)
    assert tf.collect_tensor(blocks, SHAPE, sparse=True).equals(tl.SparseTensor.from_dense(thin))


def test_no_row_is_pickled(spark, path, thin, monkeypatch):
    """Blocks come to the driver as Arrow's, and not through collect(), which makes an object of every row."""
    frame = tf.read_tensor(spark, path, "thin")

    def pickled(*_, **__):
        raise AssertionError("rows come one by one")

    for name in ("collect", "toLocalIterator", "take", "head", "first", "toPandas", "foreach"):
        monkeypatch.setattr(type(frame), name, pickled)
    assert tf.collect_tensor(frame).equals(tl.SparseTensor.from_dense(thin))
    np.testing.assert_array_equal(tf.collect_tensor(frame, sparse=False), thin, strict=True)


def test_a_dense_tensor_becomes_sparse_where_zeros_are_left_out(spark, path):
    want = tl.SparseTensor.from_dense(np.where(np.arange(9) < 4, 0, np.arange(9)))
    assert tf.collect_tensor(tf.read_tensor(spark, path, "filled"), sparse=True).equals(want)
    with pytest.raises(tl.InvalidTensorError, match="is not zero, so no SparseTensor holds it"):
        tf.collect_tensor(tf.read_tensor(spark, path, "ones"), sparse=True)


def test_shape_and_dtype_are_those_of_the_tensor(spark, path):
    """Also where no block is stored that could say otherwise."""
    frame = tf.read_tensor(spark, path, "filled", "0:4")
    assert frame.count() == 0
    with pytest.raises(tl.InvalidTensorError, match=r"of shape \(4,\), not \(5,\); leave out"):
        tf.collect_tensor(frame, shape=(5,))
    with pytest.raises(tl.InvalidTensorError, match="of dtype int64, not float64; leave out"):
        tf.collect_tensor(frame, dtype="float64")
    assert tf.collect_tensor(frame, (4,), "int64").tolist() == [0] * 4
    with pytest.raises(tl.InvalidTensorError, match="axis 0 has length -1"):
        tf.collect_tensor(frame, shape=(-1,))
    with pytest.raises(tl.InvalidTensorError, match="no column 'offset'; read_tensor"):
        tf.collect_tensor(spark.read.format("delta").load(path))
