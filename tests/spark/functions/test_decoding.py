"""Rows of a plain Delta table to blocks, trimmed to a slice."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from plain_tables import KEYS, SHAPE, SPARSE, tensors
from pyspark.errors import PythonException
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.functions.row_functions import block_column
from tensorlake_spark.spark.source.schemas import BLOCKS, TENSOR


def test_blocks_lie_where_numpy_has_them(table, x, thin):
    row = f.struct("*")
    blocks = [tf.tensor_block(row, text, shape=SHAPE).alias(text or "all") for text, _ in KEYS]
    found = table.where(f.col("id").isin("dense", *SPARSE)).select(*blocks, "id")
    assert all(field.dataType == BLOCKS for field in found.schema[:-1])
    rows = found.collect()
    assert {r.id for r in rows} == {"dense", *SPARSE}
    for tensor_id, (place, (text, key)) in itertools.product(("dense", *SPARSE), enumerate(KEYS)):
        want = x if tensor_id == "dense" else thin
        out = np.zeros(want[key].shape, "f4")
        for block in (r[place] for r in rows if r.id == tensor_id and r[place] is not None):
            part = np.frombuffer(block.tensor.data, "<f4").reshape(block.tensor.shape)
            out[tuple(slice(a, a + n) for a, n in zip(block.offset, part.shape))] += part
            if text in ("", "3:5"):
                where = tuple(slice(a, a + n) for a, n in zip(block.lo, part.shape))
                stored = part != 0
                np.testing.assert_array_equal(want[where][stored], part[stored])
        np.testing.assert_array_equal(out, want[key], err_msg=f"{tensor_id}[{text}]")


def test_rows_without_a_part_of_the_slice_are_null(table):
    """Nor is there anything in a row that is null."""
    null = f.when(f.col("id") == "dense", f.struct("*"))
    decoded = table.select("id", "nnz", "lo", "hi", tf.tensor_decode(null, "3:5, 0:2").alias("t"))
    found = decoded.where("id IN ('dense', 'number')").collect()
    assert {r.id for r in found if r.nnz} == {"dense", "number"}
    rows = [r for r in found if r.id == "dense"]
    for r in rows:
        inside = r.nnz > 0 and r.lo.d0 < 5 and r.hi.d0 > 3 and r.lo.d1 < 2
        assert (r.t is not None) == inside
        if inside:
            assert r.t.shape == [min(5, r.hi.d0) - max(3, r.lo.d0), 2 - r.lo.d1, 5]
    assert sum(r.t is not None for r in found) == 2


def test_sql_has_it_too(spark, table, x):
    tf.register(spark)
    table.withColumn("owner", f.lit("me")).createOrReplaceTempView("plain")
    rows = spark.sql(
        "SELECT tensor_decode(struct(*), '3, ::2') AS t, tensor_block(struct(*), '-1', array(9L, 7L, 5L)) AS b, "
        "tensor_decode(struct(*), CAST(NULL AS STRING)) AS n, tensor_decode(struct(*)) AS w "
        "FROM plain WHERE id = 'dense' AND nnz > 0"
    ).collect()
    assert sum(math.prod(r.t.shape) for r in rows if r.t) == x[3, ::2].size
    assert sum(math.prod(r.b.tensor.shape) for r in rows if r.b) == x[-1].size
    assert all(r.n is None and r.w is not None for r in rows)
    assert all(r.b.lo[0] == 8 and len(r.b.offset) == 2 for r in rows if r.b)


def test_dtypes_come_through(spark, place):
    arrays = {
        name: np.arange(12).astype(name).reshape(3, 4)
        for name in ("bool", "int8", "uint64", "float16", "float64", "complex64", "datetime64[s]")
    }
    lake = tl.open(place)
    for name, array in arrays.items():
        lake.write(name, array)
    frame = spark.read.format("delta").load(lake.uri).where("nnz > 0")
    for row in frame.select("id", tf.tensor_decode(f.struct("*")).alias("t")).collect():
        want = arrays[row.id]
        np.testing.assert_array_equal(np.frombuffer(row.t.data, want.dtype).reshape(3, 4), want)
        assert row.t.dtype == row.id


def test_axes_past_the_eighth(spark, place):
    x = np.arange(2**10).reshape((2,) * 10)
    lake = tl.open(place)
    lake.write("x", x, block_shape=(2,) * 8 + (1, 1))
    for key in (np.s_[:], np.s_[1, ..., 0, ::-1]):
        got = tf.collect_tensor(tf.read_tensor(spark, lake.uri, "x", key))
        np.testing.assert_array_equal(got, x[key])


def test_rows_of_several_versions_are_told_apart(spark, place, x):
    lake = tl.open(place)
    first = lake.write("x", x, block_shape=(4, 7, 5)).version
    second = lake.write("x", -x, block_shape=(4, 7, 5), mode="overwrite").version
    frames = [
        spark.read.format("delta").option("versionAsOf", v).load(lake.uri) for v in (first, second)
    ]
    rows = frames[0].union(frames[1]).where("nnz > 0").coalesce(1)
    parts = tensors(rows.select(tf.tensor_decode(f.struct("*"), "1")).toArrow())
    found = [p for p in parts if p is not None]
    assert sorted(float(p[0, 0]) for p in found) == sorted([float(x[1, 0, 0]), -float(x[1, 0, 0])])


@pytest.mark.parametrize("tensor_id", ["dense", "bsgs"])
def test_a_damaged_row_is_an_error(table, tensor_id):
    rows = table.where(f"id = '{tensor_id}'").withColumn("crc", f.col("crc") + 1)
    with pytest.raises(PythonException, match=f"tensor '{tensor_id}'.*fails its checksum"):
        rows.select(tf.tensor_decode(f.struct("*"))).collect()


def test_a_struct_that_is_no_row_is_an_error(table):
    with pytest.raises(PythonException, match="a row has no column seq"):
        table.select(tf.tensor_decode(f.struct("id", "nnz"))).collect()


def test_a_key_that_no_block_answers_is_an_error(table):
    row = f.struct("*")
    with pytest.raises(tl.InvalidSliceError, match="index list"):
        tf.tensor_decode(row, "[1, 3]")
    with pytest.raises(tl.InvalidKeyError, match="give shape="):
        tf.tensor_decode(row, "-1")
    with pytest.raises(PythonException, match="too many indices: 4 for a tensor of 3 axes"):
        table.where("id = 'dense'").select(tf.tensor_decode(row, "1, 2, 3, 4")).collect()
    with pytest.raises(PythonException, match="has 2 axes, and the tensor has 3"):
        table.where("id = 'dense'").select(tf.tensor_decode(row, "1", shape=(9, 7))).collect()


def test_a_sparse_block_that_is_too_large_names_the_cells(spark, place):
    wide = tl.SparseTensor([[0, 9999], [0, 9999]], [1.0, 2.0], (10_000, 10_000))
    lake = tl.open(place)
    lake.write("wide", wide, layout="coo")
    huge = tl.SparseTensor([[0, 2**31 - 1], [0, 2**31 - 1]], [1.0, 2.0], (2**31, 2**31))
    lake.write("huge", huge, layout="coo")
    with pytest.raises(PythonException, match=r"limit is 64.*'cells'"):
        tf.read_tensor(spark, lake.uri, "wide").collect()
    table = spark.read.format("delta").load(lake.uri)
    with pytest.raises(PythonException, match=r"limit is 64.*'cells'"):
        table.where("id = 'huge'").select(tf.tensor_decode(f.struct("*"))).collect()
    found = table.select(tf.tensor_decode(f.struct("*"), f"{2**31 - 3}:, {2**31 - 2}:").alias("t"))
    (row,) = found.where("t IS NOT NULL").collect()
    assert np.frombuffer(row.t.data).reshape(row.t.shape).tolist() == [[0, 0], [0, 0], [0, 2]]
    got = tf.collect_tensor(tf.read_tensor(spark, lake.uri, "wide", "9990:, 9990:"))
    assert (got.nnz, got[9, 9]) == (1, 2)


def test_small_rows_are_decoded_many_at_once(spark, place):
    """Also where a batch brings rows of several tensors, in any order."""
    x = np.random.default_rng(0).integers(0, 9, (60, 8, 8)).astype("u1")
    lake = tl.open(place)
    lake.write("a", x, block_shape=(1, 8, 8))
    lake.write("b", x[:50].astype("i4"), block_shape=(3, 5, 8))
    rows = spark.read.format("delta").load(lake.uri).where("nnz > 0").coalesce(1)
    block = tf.tensor_block(f.struct("*"), "7:41, 2")
    found = rows.orderBy(f.rand(3)).select(block.alias("b")).where("b IS NOT NULL").select("b.*")
    for name, want in (("a", x), ("b", x[:50].astype("i4"))):
        part = found.where(f"id = '{name}'")
        got = tf.collect_tensor(part, shape=(34, 8))
        np.testing.assert_array_equal(got, want[7:41, 2], strict=True)


def test_a_batch_above_two_gibibytes_is_an_error(place):
    """Ones compress well, so that the rows are small and the arrays are not."""
    lake = tl.open(place)
    lake.write("ones", np.broadcast_to(np.uint8(1), (64, 1 << 20)), block_shape=(32, 1 << 20))
    from deltalake import DeltaTable

    rows = DeltaTable(lake.uri).to_pyarrow_table().to_struct_array().combine_chunks()
    rows = pa.concat_arrays([rows] * 40)
    with pytest.raises(tl.InvalidOptionError, match=r"maxRecordsPerBatch"):
        block_column(rows)


def test_the_schema_of_a_tensor(table):
    assert table.select(tf.tensor_decode(f.struct("*")).alias("t")).schema["t"].dataType == TENSOR
