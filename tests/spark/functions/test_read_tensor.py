"""`read_tensor`, lazy, of paths and of tables of the catalogue, and its blocks as one tensor."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from plain_tables import KEYS, SHAPE
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf


def collected(tensor_id, keys, **options):
    return pytest.param(tensor_id, keys, id=f"{tensor_id}{len(keys)}", **options)


@pytest.mark.parametrize(
    ("tensor_id", "keys"),
    [
        collected("dense", KEYS[3::2]),
        collected("coo", KEYS[:1]),
        collected("bsgs", KEYS[2:5:2]),
        *(collected(name, KEYS, marks=pytest.mark.soak) for name in ("dense", "coo", "bsgs")),
    ],
)
def test_a_tensor_is_collected(spark, path, x, thin, tensor_id, keys):
    want = x if tensor_id == "dense" else thin
    for place, (text, key) in enumerate(keys):
        got = tf.collect_tensor(tf.read_tensor(spark, path, tensor_id, key if place % 2 else text))
        assert isinstance(got, tl.SparseTensor) == (tensor_id != "dense")
        np.testing.assert_array_equal(got, want[key], text, strict=True)


def test_what_is_not_stored_is_filled_in(spark, path):
    want = np.where(np.arange(9) < 4, 0, np.arange(9))
    frame = tf.read_tensor(spark, path, "filled")
    assert frame.count() == 3
    np.testing.assert_array_equal(tf.collect_tensor(frame), want)
    assert tf.collect_tensor(tf.read_tensor(spark, path, "number"))[()] == 2.5


def test_names_of_axes(spark, path, x):
    got = tf.collect_tensor(tf.read_tensor(spark, path, "dense", "y=-1, t=2:4"))
    np.testing.assert_array_equal(got, x[2:4, -1])
    with pytest.raises(tl.InvalidSliceError, match="the axes are t, y, x"):
        tf.read_tensor(spark, path, "dense", "z=1")


def test_one_load_of_several_filters_and_slices(spark, path, x):
    """Filters of one use do not reach another: those of the Python data sources of Spark do."""
    frame = tl.spark.read_tensor(spark, path, "dense", slice="2:8")
    low, high = (frame.where(f.col("lo")[0] == start) for start in (2, 6))
    assert (low.count(), high.count(), low.count()) == (3, 3, 3)
    np.testing.assert_array_equal(tf.collect_tensor(frame), x[2:8])
    both = low.union(high).select("offset", "tensor")
    got = tf.collect_tensor(both, shape=(6, 7, 5), partial=True)
    np.testing.assert_array_equal(got[[0, 1, 4, 5]], x[[2, 3, 6, 7]])
    assert not got[2:4].any()


def test_the_room_of_spark_is_found_late():
    code = """
import sys, tensorlake_spark as tl
assert callable(tl.spark.local_session) and not hasattr(tl, "sparks")
assert "pyspark" not in sys.modules
tl.spark.read_tensor
assert "pyspark" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_is_lazy(spark, tmp_path, x):
    lake = tl.open(tmp_path / "lake")
    ref = lake.write("x", x, block_shape=(2, 7, 5))
    frame = tf.read_tensor(spark, lake.uri, "x").where("lo[0] > 2").select("tensor")
    for file in (tmp_path / "lake").glob("*.parquet"):
        file.write_bytes(b"")  # nothing was read yet, so nothing was wrong yet
    assert ref.shape == SHAPE
    with pytest.raises(Exception, match="parquet"):
        frame.collect()


def test_one_frame_with_several_filters(spark, path, x):
    frame = tf.read_tensor(spark, path, "dense")
    low = frame.where("lo[0] < 4")
    high = frame.where("lo[0] >= 4").where(tf.tensor_max("tensor") > -1000)
    assert (low.count(), high.count()) == (6, 9)
    np.testing.assert_array_equal(tf.collect_tensor(frame), x)
    part = tf.collect_tensor(low, partial=True)
    np.testing.assert_array_equal(part[:4], x[:4])
    assert not part[4:].any()
    with pytest.raises(tl.CorruptDataError, match=r"140 elements, 315 are stored.*partial=True"):
        tf.collect_tensor(low)
    joined = low.join(
        high.select(f.col("lo").alias("other")), f.col("lo") == f.col("other"), "left"
    )
    assert joined.count() == 6


def test_a_frame_stays_at_its_version(spark, place, x):
    lake = tl.open(place)
    lake.write("x", x)
    frame = tf.read_tensor(spark, lake.uri, "x")
    lake.write("x", x * 2, mode="overwrite")
    np.testing.assert_array_equal(tf.collect_tensor(frame), x)
    np.testing.assert_array_equal(tf.collect_tensor(tf.read_tensor(spark, lake.uri, "x")), x * 2)


def test_a_table_of_the_catalogue(spark, path, x, tmp_path):
    spark.sql(f"CREATE DATABASE plain_db LOCATION '{tmp_path}'")
    spark.sql(f"CREATE TABLE plain_db.lake USING delta LOCATION '{path}'")
    try:
        got = tf.collect_tensor(tf.read_tensor(spark, "plain_db.lake", "dense", "3"))
        np.testing.assert_array_equal(got, x[3])
    finally:
        spark.sql("DROP TABLE plain_db.lake")
        spark.sql("DROP DATABASE plain_db")


def test_errors_of_read_tensor(spark, path, tmp_path):
    with pytest.raises(tl.TensorNotFoundError, match="did you mean 'dense'"):
        tf.read_tensor(spark, path, "dens")
    with pytest.raises(tl.InvalidKeyError, match="out of bounds"):
        tf.read_tensor(spark, path, "dense", "9")
    with pytest.raises(tl.InvalidSliceError, match="index list"):
        tf.read_tensor(spark, path, "dense", "[1, 2]")
    other = str(tmp_path / "other")
    write_deltalake(other, pa.table({"id": [1, 2, 3]}))
    with pytest.raises(tl.FormatError, match="not a table of tensors"):
        tf.read_tensor(spark, other, "x")
    with pytest.raises(tl.InvalidOptionError, match=r"combines duplicates by 'sum'.*format"):
        tf.read_tensor(spark, path, "sum")
    for table in (f"{tmp_path}/nothing", "no_such_table", "no.such.table", ""):
        with pytest.raises(tl.TableNotFoundError, match=f"Spark finds no Delta table '{table}'"):
            tf.read_tensor(spark, table, "x")
    with pytest.raises(tl.InvalidOptionError, match="version 999"):
        tf.read_tensor(spark, path, "dense", version=999)


def test_errors_of_collect_tensor(spark, path):
    frame = spark.read.format("tensor").option("id", "dense").load(path).cache()
    with pytest.raises(tl.InvalidTensorError, match="give shape="):
        tf.collect_tensor(frame)
    with pytest.raises(tl.InvalidTensorError, match="does not lie in"):
        tf.collect_tensor(frame, shape=(2, 7, 5))
    with pytest.raises(tl.InvalidTensorError, match="dtype float32, not int8"):
        tf.collect_tensor(frame, shape=SHAPE, dtype="int8")
    with pytest.raises(tl.InvalidTensorError, match="give dtype="):
        tf.collect_tensor(frame.where("false"), shape=SHAPE)
    assert tf.collect_tensor(frame.where("false"), SHAPE, "int8").dtype == "i1"
    once = tf.read_tensor(spark, path, "coo")
    twice = once.union(once).cache()
    for sparse in (True, False):
        with pytest.raises(tl.InvalidTensorError, match="stored twice"):
            tf.collect_tensor(twice, sparse=sparse)
    frame.unpersist()
    twice.unpersist()


def test_large_arrow_types(spark, path, x):
    """Of texts and bytes, for columns above 2 GiB."""
    name = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(name, "true")
    try:
        frame = tf.read_tensor(spark, path, "dense", "3").select(
            "offset", tf.tensor_slice("tensor", "::-1").alias("tensor")
        )
        got = tf.collect_tensor(frame, shape=(7, 5))
        rows = spark.read.format("delta").load(path).where(tf.slice_filter("3", "dense"))
        total = rows.agg(f.sum(tf.tensor_sum(tf.tensor_decode(f.struct("*"), "3")))).first()[0]
    finally:
        spark.conf.unset(name)
    want = np.concatenate([x[3, a:b][::-1] for a, b in ((0, 3), (3, 6), (6, 7))])
    np.testing.assert_array_equal(got, want)
    assert total == x[3].sum()
