"""Plain Delta tables of tensors: rows to blocks, blocks to arrays, and functions of tensors beside NumPy."""

import inspect
import itertools
import math
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import PythonException
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.row_functions import block_column
from tensorlake_spark.spark.tensor_udfs import FUNCTIONS, udf
from tensorlake_spark.spark.views import BLOCKS, TENSOR, tensor_column, tensors_of

SHAPE = (9, 7, 5)
SPARSE = ("bsgs", "coo", "csr", "csc", "csf")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "plain_delta.md").read_text()


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).integers(-50, 50, SHAPE).astype("f4")


@pytest.fixture(scope="module")
def thin(x):
    return np.where(np.random.default_rng(1).random(SHAPE) < 0.15, x, 0)


@pytest.fixture(scope="module")
def path(tmp_path_factory, x, thin):
    path = tmp_path_factory.mktemp("plain") / "lake"
    lake = tl.open(path)
    lake.write("dense", x, block_shape=(2, 3, 5), axes=("t", "y", "x"))
    lake.write("filled", np.where(np.arange(9) < 4, 0, np.arange(9)), block_shape=(2,))
    lake.write("number", np.float64(2.5))
    for layout in SPARSE:
        block = (4, 4, 4) if layout == "bsgs" else None
        lake.write(layout, tl.SparseTensor.from_dense(thin), layout=layout, block_shape=block)
    twice = tl.SparseTensor([[1]], [2.0], (5,))
    for _ in range(2):
        kept = {"axis": None, "duplicates": "sum"}
        lake.write("sum", twice, mode="append", layout="coo", **kept)
    return str(path)


@pytest.fixture(scope="module")
def table(spark, path):
    return spark.read.format("delta").load(path)


def tensors(table):
    """The tensors of a column of Spark's, None where it is null."""
    column = table.combine_chunks().column(0)
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    known = iter(tensors_of(column.drop_null()))
    return [next(known) if valid else None for valid in column.is_valid().to_pylist()]


KEYS = [
    ("", np.s_[:]),
    ("3:5", np.s_[3:5]),
    ("2, ..., 4", np.s_[2, ..., 4]),
    ("1:8:3, :, ::2", np.s_[1:8:3, :, ::2]),
    ("-2:, ::-2, None", np.s_[-2:, ::-2, None]),
    ("0, 0, 0", np.s_[0, 0, 0]),
    ("5:5", np.s_[5:5]),
]


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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tensor_sum(3)", r"InvalidTensorError: tensor_sum cannot be had of int32: .*struct<dtype"),
        ("tensor_add('a', 'b')", "InvalidTensorError: tensor_add cannot be had of string, string"),
        (
            "tensor_sum()",
            "InvalidTensorError: tensor_sum cannot take 0 arguments: missing a required",
        ),
        (
            "tensor_dot(1)",
            "InvalidTensorError: tensor_dot cannot take 1 arguments: missing a required",
        ),
        ("tensor_shape(3)", "InvalidTensorError: tensor_shape cannot be had of int32"),
        (
            "tensor_decode('x', '1')",
            "InvalidTensorError: tensor_decode cannot be had of string, string",
        ),
    ],
)
def test_sql_of_other_arguments_is_an_error_that_names_the_function(spark, text, says):
    tf.register(spark)
    with pytest.raises(PythonException, match=says):
        spark.sql(f"SELECT {text}").collect()


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
    with pytest.raises(tl.FormatError, match="no table of tensors"):
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


def test_a_batch_above_two_gibibytes_is_an_error(place):
    """Ones compress well, so that the rows are small and the arrays are not."""
    lake = tl.open(place)
    lake.write("ones", np.broadcast_to(np.uint8(1), (64, 1 << 20)), block_shape=(32, 1 << 20))
    from deltalake import DeltaTable

    rows = DeltaTable(lake.uri).to_pyarrow_table().to_struct_array().combine_chunks()
    rows = pa.concat_arrays([rows] * 40)
    with pytest.raises(tl.InvalidOptionError, match=r"maxRecordsPerBatch"):
        block_column(rows)


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


# ---------------------------------------------------------------- functions of tensors

RNG = np.random.default_rng(5)
DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "bfloat16")
SHAPES = ((), (4,), (3, 4), (2, 3, 4))


def make(dtype, shape):
    from tensorlake_spark.spec import dtype_of

    return RNG.integers(0, 5, shape).astype(dtype_of(dtype))


ARRAYS = [make(d, s) for d in DTYPES for s in SHAPES for _ in range(2)]


@pytest.fixture(scope="module")
def values(spark):
    """Tensors of many dtypes and shapes, in any order, with nulls between."""
    order = RNG.permutation(len(ARRAYS)).tolist()
    places = [*order, None, None]
    column = tensor_column(ARRAYS).take(pa.array(places))
    frame = pa.table({"n": pa.array(places), "t": column})
    return spark.createDataFrame(frame)


def compare(frame, cases):
    """Hold columns against NumPy, row by row; nulls give null."""
    columns = [column.alias(f"c{i}") for i, (column, _) in enumerate(cases)]
    rows = frame.select("n", *columns).toArrow()
    numbers = rows.column("n").to_pylist()
    assert {*numbers} > {None}
    for i, (_, function) in enumerate(cases):
        is_tensor = pa.types.is_struct(rows.schema.field(f"c{i}").type)
        column = rows.select([f"c{i}"])
        found = tensors(column) if is_tensor else column.column(0).to_pylist()
        for n, got in zip(numbers, found, strict=True):
            if n is None:
                assert got is None
                continue
            with np.errstate(all="ignore"):
                want = np.asarray(function(ARRAYS[n]))
            case = f"case {i}: {ARRAYS[n].dtype}"
            if is_tensor:
                assert (got.dtype, got.shape) == (want.dtype, want.shape), case
            got, want, size = np.asarray(got, "f8"), want.astype("f8"), want.itemsize
            np.testing.assert_allclose(got, want, 2e-3 if size < 4 else 1e-6, err_msg=case)


def norm(x, axis=None):
    x = x.astype(np.float64)
    return np.sqrt((x * x).sum(axis=axis))


ANY = [
    (tf.tensor_sum, lambda x: x.astype("f8").sum()),
    (tf.tensor_mean, lambda x: x.astype("f8").mean()),
    (tf.tensor_min, np.min),
    (tf.tensor_max, np.max),
    (tf.tensor_norm, norm),
    (tf.tensor_argmax, np.argmax),
    (tf.tensor_to_array, np.ravel),
    (tf.tensor_shape, lambda x: np.array(x.shape)),
    (lambda t: tf.tensor_cast(t, "float32"), lambda x: x.astype("f4")),
    (lambda t: tf.tensor_cast(t, "int16"), lambda x: x.astype("i2")),
    (lambda t: tf.tensor_reshape(t, (1, -1)), lambda x: x.reshape(1, -1)),
    (lambda t: tf.tensor_slice(t, "..., None"), lambda x: x[..., None]),
    (lambda t: tf.tensor_add(t, t), lambda x: x + x),
    (lambda t: tf.tensor_mul(t, 3), lambda x: x * 3),
    (lambda t: tf.tensor_mul(2.5, t), lambda x: 2.5 * x),
    (lambda t: tf.tensor_div(t, t), lambda x: x / x),
    (lambda t: tf.tensor_dot(t, t), lambda x: np.vdot(x.astype("f8"), x.astype("f8"))),
    (lambda t: tf.tensor_distance(t, t), lambda x: 0.0),
]


def test_functions_of_all_dtypes_and_shapes(values):
    compare(values, [(column(f.col("t")), function) for column, function in ANY])


ALONG = [
    (lambda t: tf.tensor_sum(t, -1), lambda x: x.sum(axis=-1)),
    (lambda t: tf.tensor_mean(t, [0]), lambda x: x.mean(axis=0)),
    (lambda t: tf.tensor_max(t, (0, 1)), lambda x: x.max(axis=(0, 1))),
    (lambda t: tf.tensor_min(t, (-1, 0)), lambda x: x.min(axis=(-1, 0))),
    (lambda t: tf.tensor_norm(t, 1), lambda x: norm(x, 1)),
    (lambda t: tf.tensor_argmax(t, 1), lambda x: x.argmax(axis=1)),
    (lambda t: tf.tensor_slice(t, "::-1, 1:3"), lambda x: x[::-1, 1:3]),
    (lambda t: tf.tensor_slice(t, np.s_[-1, 0]), lambda x: x[-1, 0]),
    (lambda t: tf.tensor_sub(t, tf.tensor_slice(t, "0")), lambda x: x - x[0]),
    (lambda t: tf.tensor_cosine(t, tf.tensor_add(t, 1)), lambda x: _cosine(x, x + 1)),
]


def test_functions_along_axes(values):
    wanted = [n for n, x in enumerate(ARRAYS) if x.ndim >= 2 and x.dtype != bool]
    frame = values.where(f.col("n").isin(wanted) | f.col("n").isNull())
    compare(frame, [(column(f.col("t")), function) for column, function in ALONG])


def _cosine(x, y):
    x, y = x.astype("f8").ravel(), y.astype("f8").ravel()
    return x @ y / (norm(x) * norm(y))


SIDES = [
    ((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
]  # fmt: skip


def test_matmul(spark):
    pairs = [(make("float32", a), make("float64", b)) for a, b in SIDES for _ in range(3)]
    columns = [tensor_column([p[k] for p in pairs]) for k in (0, 1)]
    frame = spark.createDataFrame(pa.table({"a": columns[0], "b": columns[1]})).coalesce(1)
    found = tensors(frame.select(tf.tensor_matmul("a", "b")).toArrow())
    for got, (a, b) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(got, a @ b, strict=True)


def test_elements_and_arrays(values):
    cubes = values.where(f.size("t.shape") == 3)
    rows = cubes.select("n", tf.tensor_get("t", 1, -1, 0), tf.tensor_dtype("t")).collect()
    assert len(rows) == 2 * len(DTYPES)
    for n, v, dtype in rows:
        assert v == float(ARRAYS[n][1, -1, 0])
        assert dtype == ARRAYS[n].dtype.name
    made = tf.tensor_from_array(tf.tensor_to_array("t"), tf.tensor_shape("t"), "float64")
    compare(values, [(made, lambda x: x.astype("f8"))])


def test_numbers_of_columns_and_of_sql(spark, values):
    tf.register(spark)
    values.createOrReplaceTempView("tensor_values")
    rows = spark.sql(
        "SELECT n, tensor_add(t, n) AS a, tensor_mul(t, 2.5) AS b, tensor_sum_axes(t, array(0)) AS s, "
        "tensor_argmax_axis(t, array(0)) AS m, tensor_get(t, array(1)) AS g, tensor_shape(t) AS shape, "
        "tensor_dtype(t) AS dtype, tensor_mul(t, CAST(NULL AS DOUBLE)) AS none, "
        "tensor_from_array(array(1, 2), array(2, 1), 'int8') AS made FROM tensor_values "
        "WHERE tensor_dtype(t) = 'float32' AND size(tensor_shape(t)) = 1"
    ).collect()
    assert len(rows) == 2
    for r in rows:
        x = ARRAYS[r.n]
        assert (r.shape, r.dtype, r.none) == ([4], "float32", None)
        for got, want in ((r.a, x + r.n), (r.b, x * 2.5), (r.s, x.sum(0)), (r.m, x.argmax(0))):
            assert got.dtype == want.dtype.name
            np.testing.assert_array_equal(
                np.frombuffer(got.data, got.dtype).reshape(got.shape), want
            )
        assert r.g == x[1]
        assert (r.made.dtype, r.made.shape, bytes(r.made.data)) == ("int8", [2, 1], b"\1\2")
    query = f"SELECT tensor_from_array(array({2**53 + 1}), array(1), 'uint8')"
    with pytest.raises(PythonException, match=r"tensor_from_array: .*pass through doubles"):
        spark.sql(query).collect()


def test_null_without_a_type_gives_null(spark):
    tf.register(spark)
    calls = [
        "tensor_decode(NULL)", "tensor_decode(NULL, '3:5')", "tensor_block(NULL)", "tensor_shape(NULL)",
        "tensor_dtype(NULL)", "tensor_encode(NULL, array(0), 'a', 0)", "tensor_sum(NULL)", "tensor_add(NULL, 1)",
        "tensor_from_array(NULL, array(1), 'int8')", "tensor_shape(tensor_decode(NULL))",
    ]  # fmt: skip
    assert [*spark.sql(f"SELECT {', '.join(calls)}").collect()[0]] == [None] * len(calls)
    assert spark.sql("SELECT tensor_stack(NULL) AS t").collect()[0].t is None


def test_every_name_is_in_sql(spark):
    tf.register(spark)
    known = {row.function for row in spark.sql("SHOW USER FUNCTIONS").collect()}
    names = [n for n in tf.__all__ if n.startswith("tensor_")]
    assert {*names, *FUNCTIONS} <= known | {f"spark_catalog.default.{n}" for n in known}


CUBE = make("uint8", (2, 3, 4))


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (lambda t: tf.tensor_add(t, 300), r"tensor_add: 300 does not fit dtype uint8.*\(2, 3, 4\)"),
        (lambda t: tf.tensor_sum(t, 3), r"tensor_sum_axes: axis 3 is out of bounds for shape"),
        (lambda t: tf.tensor_max(t.withField("data", f.lit(None).cast("binary"))), "null dtype, shape or data"),
    ],
)  # fmt: skip
def test_errors_name_the_function_and_the_shapes(spark, column, text):
    frame = spark.createDataFrame(pa.table({"t": tensor_column([CUBE])})).coalesce(1)
    with pytest.raises(PythonException, match=text):
        frame.select(column(f.col("t"))).collect()


def with_shape(shape):
    """The cube's column, but for the shape."""
    fields = dict(zip(TENSOR.names, tensor_column([CUBE]).flatten(), strict=True))
    return pa.StructArray.from_arrays(
        [*(fields | {"shape": pa.array([shape])}).values()], [*fields]
    )


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("reshape", [[7]], r"tensor_reshape: cannot reshape.*\(7,\)"),
        ("slice", ["5"], "tensor_slice: index 5 is out of bounds"),
        ("slice", ["[0, 1]"], "tensor_slice: .*index list"),
        ("get", [[1]], "tensor_get: one index for each of 3 axes"),
        ("dot", [tensor_column([CUBE[0]])], "tensor_dot: shapes .* differ"),
        ("cast", ["float33"], "tensor_cast: 'float33' is not a dtype"),
        ("add", [pa.array([1]), pa.array([2])], "tensor_add: neither of the two is a tensor"),
        ("sum", [pa.array([{"col1": 1}])], "tensor_sum: a struct of col1 is no tensor"),
        ("max", [with_shape([7])],
         "tensor_max: row 0 of the batch has 24 bytes of data; shape .7,. and dtype uint8 need 7"),
    ],
)  # fmt: skip
def test_errors_of_what_spark_calls(name, arguments, text):
    """The function that a worker calls, on columns of one row."""
    columns = [a if isinstance(a, pa.Array) else pa.array([a]) for a in arguments]
    if name in ("reshape", "slice", "get", "dot", "cast"):
        columns = [tensor_column([CUBE]), *columns]
    with pytest.raises(tl.TensorLakeError, match=text):
        udf(f"tensor_{name}").func(*columns)


def test_no_real_number_is_an_error(spark):
    frame = spark.createDataFrame(pa.table({"t": tensor_column([np.ones(3, "c8")])}))
    with pytest.raises(PythonException, match="tensor_sum: elements of dtype complex64"):
        frame.select(tf.tensor_sum("t")).collect()
    ((norm, total),) = frame.select(tf.tensor_norm("t"), tf.tensor_sum("t", 0)).collect()
    assert norm == pytest.approx(math.sqrt(3))
    assert total.dtype == "complex64"


def test_no_elements(spark):
    frame = spark.createDataFrame(pa.table({"t": tensor_column([np.ones((0, 3))] * 2)}))
    columns = tf.tensor_sum("t"), tf.tensor_mean("t"), tf.tensor_to_array("t")
    row = frame.select(*columns).collect()[0]
    assert row[0] == 0
    assert math.isnan(row[1])
    assert row[2] == []
    with pytest.raises(PythonException, match=r"tensor_max: .*\(0, 3\)"):
        frame.select(tf.tensor_max("t")).collect()


# ---------------------------------------------------------------- documentation


@pytest.fixture(scope="module")
def example(spark, tmp_path_factory):
    """What docstrings and the page speak of."""
    lake = tl.open(tmp_path_factory.mktemp("page") / "lake")
    photos = np.random.default_rng(0).integers(0, 256, (24, 3, 64, 96), np.uint8)
    lake.write("photos", photos, block_shape=(2, 3, 32, 96))
    rides = np.where(np.random.default_rng(0).random((20, 30)) < 0.05, 1.5, 0)
    lake.write("rides", tl.SparseTensor.from_dense(rides))
    return {"spark": spark, "path": lake.uri}, photos, rides


def test_the_page_runs(example, capsys):
    names, photos, rides = dict(example[0]), *example[1:]
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(code) == 7
    for block in code:
        exec(compile(block, "plain_delta.md", "exec"), names)
    assert "lo.d0 < 5 AND hi.d0 > 3" in capsys.readouterr().out
    assert names["brightest"] == photos[3:5, :, :16].max()
    assert len(names["means"].collect()) == 4
    np.testing.assert_array_equal(names["array"], photos[-2:, :, ::-1])
    np.testing.assert_array_equal(names["rides"], rides)
    assert names["near"].collect()[0].cosine == pytest.approx(1)
    mean = names["mean"].first().mean
    halves = photos[3:5, :, :16].mean(axis=0, keepdims=True)
    np.testing.assert_array_equal(np.frombuffer(mean.data).reshape(mean.shape), halves)
    assert names["stack"].first().stack.shape == [4, 1, 3, 32, 96]
    np.testing.assert_array_equal(tl.open(names["path"])["copy"][:], photos[:8])


def test_the_page_names_every_function():
    for name in tf.__all__:
        assert name in PAGE


DOCUMENTED = [getattr(tf, name) for name in tf.__all__]


def test_examples_of_docstrings_run(example):
    """Those that select one column for every row run as one query."""
    names = {**vars(tf), **example[0], "f": f}
    table = names["spark"].read.format("delta").load(names["path"])
    parts = [example[1][3:4, :, :32], example[1][4:5, :, 32:]]
    tensors = names["spark"].createDataFrame(pa.table({"tensor": tensor_column(parts)})).coalesce(1)
    columns = []
    for function in DOCUMENTED:
        doc = inspect.getdoc(function)
        assert "Examples\n--------" in doc
        if ">>> " in doc:
            continue  # a doctest
        names["df"] = table if function in (tf.tensor_decode, tf.tensor_block) else tensors
        for line in textwrap.dedent(doc.split("::\n", 1)[1]).strip().splitlines():
            if line.startswith("df.select(") and names["df"] is tensors and "explode" not in line:
                columns += eval(f"[{line[10:-1]}]", names)
            elif line.startswith(("df.", "spark.")):
                assert eval(line, names).collect(), line
            else:
                exec(line, names)
    assert len(columns) > 15
    rows = tensors.select(*columns).collect()
    assert all(value is not None for row in rows for value in row)


def test_the_schema_of_a_tensor(table):
    assert table.select(tf.tensor_decode(f.struct("*")).alias("t")).schema["t"].dataType == TENSOR
