"""Tensors to rows of a plain Delta table, and the metadata rows that complete them."""

import functools

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.functions.encoding import ROWS, encoded_column
from tensorlake_spark.spark.source.schemas import tensor_column

SHAPE = (12, 7, 5)
LAYOUTS = ("ftsf", "bsgs", "coo", "csr", "csc", "csf")


@pytest.fixture(scope="module")
def x():
    rng = np.random.default_rng(0)
    return np.where(rng.random(SHAPE) < 0.3, rng.integers(1, 99, SHAPE), 0).astype("f4")


@pytest.fixture(scope="module")
def slabs(spark, x):
    """The tensor in slabs of five planes, the last one shorter, and a null."""
    starts = range(0, SHAPE[0], 5)
    column = tensor_column([x[a : a + 5] for a in starts])
    column = pa.concat_arrays([column, pa.nulls(1, column.type)])
    lo = [[a, 0, 0] for a in starts]
    table = pa.table(
        {"lo": [*lo, [0, 0, 0]], "seq": [a * 1000 for a in [*starts, 0]], "tensor": column}
    )
    return spark.createDataFrame(table)


@pytest.fixture
def table(spark, tmp_path):
    """A table with a tensor of ours."""
    lake = tl.open(tmp_path / "lake")
    lake.write("old", np.arange(40).reshape(8, 5), block_shape=(2, 5), axes=("t", "x"))
    return lake


def rows_of(slabs, layout, **options):
    block = (2, 4, 5) if layout in ("ftsf", "bsgs") else None
    options = {"block_shape": block, "shape": SHAPE, **options}
    return slabs.select(
        f.inline(tf.tensor_encode("tensor", "lo", layout, "seq", layout, **options))
    )


def append(rows, lake):
    rows.write.format("delta").mode("append").save(lake.uri)


def dense(tensor):
    return tensor.todense() if isinstance(tensor, tl.SparseTensor) else tensor


def test_what_is_encoded_is_decoded(slabs, x):
    rows = functools.reduce(DataFrame.union, (rows_of(slabs, layout) for layout in LAYOUTS))
    assert rows.columns == SCHEMA.names
    found = rows.select(tf.tensor_block(f.struct("*")).alias("b")).select("b.*").collect()
    out = {layout: np.zeros(SHAPE, "f4") for layout in LAYOUTS}
    for block in found:
        part = np.frombuffer(block.tensor.data, "<f4").reshape(block.tensor.shape)
        out[block.id][tuple(slice(a, a + n) for a, n in zip(block.lo, part.shape))] += part
    for layout in LAYOUTS:
        np.testing.assert_array_equal(out[layout], x, layout)


@pytest.mark.parametrize("quantize", ["float16", "int8", "split", {"error": 0.25}, {"relative": 0.1}])  # fmt: skip
def test_floats_in_fewer_bits_are_encoded(slabs, x, table, quantize):
    options = {"layout": "ftsf", "block_shape": (2, 4, 5), "quantize": quantize}
    want = tl.open(f"{table.uri}-want").write("ftsf", x, **options)
    rows = rows_of(slabs, "ftsf", quantize=quantize)
    append(rows, table)
    append(tf.metadata_rows(rows), table)
    ref = tl.open(table.uri)["ftsf"]
    np.testing.assert_array_equal(ref[...], want[...])
    if quantize == {"relative": 0.1}:
        assert ref.quantization is None, "no codec says so"
    else:
        assert ref.quantization == want.quantization
        np.testing.assert_array_equal(ref.read(2, native=True), want.read(2, native=True))
    table.check()


def test_sparse_values_in_fewer_bits_by_sql(spark, slabs, x):
    tf.register(spark)
    slabs.createOrReplaceTempView("slabs")
    made = spark.sql("""
        select inline(tensor_encode(tensor, lo, 'x', seq, 'coo', null, null, array(12L, 7L, 5L), '{"error": 4}'))
        from slabs""")
    found = made.select(tf.tensor_block(f.struct("*")).alias("b")).select("b.*").collect()
    out = np.zeros(SHAPE, "f4")
    for block in found:
        part = np.frombuffer(block.tensor.data, "<f4").reshape(block.tensor.shape)
        out[tuple(slice(a, a + n) for a, n in zip(block.lo, part.shape))] += part
    np.testing.assert_array_equal(out, np.rint(x / 8) * 8)


def test_a_quantisation_that_is_none_is_refused(slabs):
    with pytest.raises(tl.InvalidOptionError, match="did you mean 'float16'"):
        tf.tensor_encode("tensor", "lo", "x", "seq", quantize="float61")
    with pytest.raises(PythonException, match="'int8' is not for layout csr"):
        rows_of(slabs, "csr", quantize="int8").collect()


def test_samples_that_slide_are_encoded_and_decoded(spark):
    x = np.arange(500, 600)[np.arange(60)[::-1, None] + np.arange(9)]
    table = pa.table({"lo": [[0, 0], [30, 0]], "seq": [0, 30], "tensor": tensor_column([x[:30], x[30:]])})  # fmt: skip
    made = tf.tensor_encode("tensor", "lo", "x", "seq", "window", shape=(60, 9))
    rows = spark.createDataFrame(table).select(f.inline(made))
    found = rows.select("index", tf.tensor_block(f.struct("*")).alias("b")).collect()
    assert all(row.index is not None for row in found)
    for block in (row.b for row in found):
        part = np.frombuffer(block.tensor.data, "<i8").reshape(block.tensor.shape)
        np.testing.assert_array_equal(part, x[block.lo[0] : block.lo[0] + len(part)])


def test_rows_of_all_layouts_become_tensors(spark, table, slabs, x):
    """They are appended, then their metadata: a full read holds them against it."""
    append(functools.reduce(DataFrame.union, (rows_of(slabs, layout) for layout in LAYOUTS)), table)
    assert list(tl.open(table.uri)) == ["old"]
    here = spark.read.format("delta").load(table.uri)
    append(tf.metadata_rows(here.where("id != 'old'")), table)
    lake = tl.open(table.uri)
    assert list(lake) == sorted(["old", *LAYOUTS])
    for layout in LAYOUTS:
        ref = lake[layout]
        assert (ref.shape, ref.layout, ref.dtype) == (SHAPE, layout, x.dtype)
        np.testing.assert_array_equal(dense(ref[:]), x)
        np.testing.assert_array_equal(dense(ref[3:11:2, ::-1]), x[3:11:2, ::-1])
    read = spark.read.format("tensor").option("id", "csf").option("slice", "4:6").load(table.uri)
    assert read.agg(f.sum(tf.tensor_sum("tensor"))).first()[0] == x[4:6].sum()
    got = tf.collect_tensor(tf.read_tensor(spark, table.uri, "ftsf", "2:9, 1"))
    np.testing.assert_array_equal(got, x[2:9, 1])
    np.testing.assert_array_equal(lake["old"][:], np.arange(40).reshape(8, 5))
    # We go on with them.
    want = np.concatenate([x, x[:3]])
    want[1] = 0
    for layout in ("ftsf", "bsgs"):
        more = x[:3] if layout == "ftsf" else tl.SparseTensor.from_dense(x[:3])
        lake.write(layout, more, mode="append")
        lake[layout][1] = 0
        np.testing.assert_array_equal(dense(tl.open(table.uri)[layout][:]), want)
    lake.optimize()
    for layout in ("ftsf", "bsgs"):
        np.testing.assert_array_equal(dense(tl.open(table.uri)[layout][:]), want)


def test_rows_that_are_added_to_a_tensor(spark, table):
    """Until its metadata is counted anew, a full read says that rows are too many; verify=False reads them."""
    more = spark.createDataFrame(pa.table({"t": tensor_column([np.full((2, 5), 7)])}))
    rows = more.select(f.inline(tf.tensor_encode("t", [6, 0], "old", 1000, block_shape=(2, 5))))
    spark.sql(f"DELETE FROM delta.`{table.uri}` WHERE id = 'old' AND lo.d0 = 6")
    with pytest.raises(tl.CorruptDataError, match="verify=False"):
        tl.open(table.uri)["old"][:]
    append(rows, table)
    want = np.arange(40).reshape(8, 5)
    want[6:] = 7
    np.testing.assert_array_equal(tl.open(table.uri, verify=False)["old"][:], want)
    longer = more.select(f.inline(tf.tensor_encode("t", [8, 0], "old", 2000, block_shape=(2, 5))))
    append(longer, table)
    append(tf.metadata_rows(spark.read.format("delta").load(table.uri).where("id = 'old'")), table)
    ref = tl.open(table.uri)["old"]
    assert (ref.shape, ref.axes) == ((10, 5), ("t", "x"))
    np.testing.assert_array_equal(ref[:], np.concatenate([want, np.full((2, 5), 7)]))


def test_null_gives_null_and_zeros_give_no_row(slabs):
    column = tf.tensor_encode("tensor", "lo", "x", "seq")
    frame = slabs.select(column.alias("rows"))
    assert frame.schema["rows"].dataType == ROWS
    assert sorted(r.n for r in frame.select(f.coalesce(f.size("rows"), f.lit(-1)).alias("n")).collect()) == [
        -1, 1, 1, 1,
    ]  # fmt: skip
    lost = f.lit(None).cast("array<bigint>")
    assert slabs.where(tf.tensor_encode("tensor", lost, "x", "seq").isNotNull()).count() == 0
    zeros = tf.tensor_encode(tf.tensor_mul("tensor", 0), "lo", "x", "seq").alias("rows")
    found = slabs.where("tensor IS NOT NULL").select(zeros).select(f.size("rows"))
    assert {r[0] for r in found.collect()} == {0}


def test_sql_has_it_too(spark, slabs, x):
    tf.register(spark)
    slabs.createOrReplaceTempView("slabs")
    for more in ("", ", 'ftsf', array(5, 7, 5)", ", NULL, NULL, 'raw', array(12, 7, 5)"):
        rows = spark.sql(
            f"SELECT inline(tensor_encode(tensor, lo, 'x', seq{more})) FROM slabs WHERE tensor IS NOT NULL"
        )
        sums = rows.agg(f.sum(tf.tensor_sum(tf.tensor_decode(f.struct("*"))))).first()[0]
        assert sums == x.sum(dtype="f8")
        assert ("raw" in more) == (rows.collect()[0].codec == "raw")


def test_names_of_a_column_and_tensors_of_any_rank(spark):
    arrays = [np.array(3.0), np.arange(4.0), np.ones((2,) * 10), np.zeros((0, 3))]
    table = pa.table({"t": tensor_column(arrays), "name": [f"n{a.ndim}" for a in arrays],
                      "lo": [[0] * a.ndim for a in arrays]})  # fmt: skip
    frame = spark.createDataFrame(table)
    rows = frame.select(f.inline(tf.tensor_encode("t", "lo", f.col("name"), 0)))
    found = {
        r.id: r.t for r in rows.select("id", tf.tensor_decode(f.struct("*")).alias("t")).collect()
    }
    assert found.keys() == {"n0", "n1", "n10"}
    for a in arrays[:3]:
        t = found[f"n{a.ndim}"]
        np.testing.assert_array_equal(np.frombuffer(t.data).reshape(t.shape), a)
    metas = {r.id: r for r in tf.metadata_rows(rows).collect()}
    assert {name: r.shape for name, r in metas.items()} == {"n0": [], "n1": [4], "n10": [2] * 10}


def test_a_batch_without_rows():
    none = encoded_column(
        tensor_column([np.zeros(3)]), pa.array([[0]]), pa.array(["x"]), pa.array([0])
    )
    assert none.to_pylist() == [[]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shape": (9, 7, 5)}, r"ends at \(10, 7, 5\), outside of the shape \(9, 7, 5\)|ends at \(12"),
        ({"lo": [0, 0]}, "a part of shape .* has lo = .0, 0.; it needs 3"),
        ({"lo": [0, 0, -1]}, "needs 3 non-negative"),
        ({"block_shape": (2, 2)}, r"block shape \(2, 2\) does not fit"),
        ({"layout": "coo", "block_shape": (2, 2, 2)}, "layout coo has no block_shape"),
    ],
)  # fmt: skip
def test_errors(slabs, options, text):
    options = {"lo": "lo", **options}
    column = tf.tensor_encode("tensor", options.pop("lo"), "x", "seq", **options)
    with pytest.raises(PythonException, match=text):
        slabs.select(column).collect()


def test_errors_before_anything_runs(slabs):
    with pytest.raises(tl.InvalidOptionError, match="unknown layout 'auto'"):
        tf.tensor_encode("tensor", "lo", "x", 0, "auto")
    with pytest.raises(tl.InvalidOptionError, match="unknown codec"):
        tf.tensor_encode("tensor", "lo", "x", 0, codec="gzip")
    with pytest.raises(tl.InvalidTensorError, match="segment"):
        tf.tensor_encode("tensor", "lo", "a//b", 0)
    with pytest.raises(tl.InvalidTensorError, match="has no column id"):
        tf.metadata_rows(slabs)
