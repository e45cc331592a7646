"""Aggregates of tensors in Python and in SQL, beside NumPy."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.functions.aggregates import AGGREGATES
from tensorlake_spark.spark.source.schemas import TENSOR, tensor_column, tensors_of

COUNT = 23
DTYPES = ("bool", "uint8", "int32", "float16", "float32", "float64", "complex64", "bfloat16")


@pytest.fixture(scope="module")
def arrays():
    from tensorlake_spark.tensor.spec import dtype_of

    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 5, (COUNT, 3, 4)).astype(dtype_of(name)) for name in DTYPES}


@pytest.fixture(scope="module")
def frame(spark, arrays):
    """For every dtype a group of tensors, with nulls between, over several partitions and batches."""
    tables = []
    for name, stack in arrays.items():
        column = tensor_column(list(stack)).take(pa.array([*range(COUNT), None, None]))
        places = [*(-n for n in range(COUNT)), None, 5]
        tables.append(pa.table({"g": [name] * len(places), "n": places, "t": column}))
    return spark.createDataFrame(pa.concat_tables(tables)).repartition(3).cache()


@pytest.fixture
def small_batches(spark):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "4")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def by_group(rows):
    table = rows.toArrow()
    found = tensors_of(table.column("t").combine_chunks())
    return dict(zip(table.column("g").to_pylist(), found, strict=True))


def mean(stack):
    return stack.astype("c16" if stack.dtype.kind == "c" else "f8").mean(axis=0)


CASES = [
    (tf.tensor_sum_agg, lambda x: x.sum(axis=0)),
    (tf.tensor_mean_agg, mean),
    (lambda t: tf.tensor_stack(t, "n"), lambda x: x[::-1]),
    (lambda t: tf.tensor_stack(t, -f.col("n")), lambda x: x),
]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(("column", "function"), CASES)
def test_groups_are_what_numpy_makes_of_them(frame, arrays, column, function):
    rows = frame.groupBy("g").agg(column("t").alias("t"))
    assert rows.schema["t"].dataType == TENSOR
    found = by_group(rows)
    assert found.keys() == arrays.keys()
    for name, stack in arrays.items():
        want = function(stack)
        assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(
            found[name].astype("c16"), want.astype("c16"), 1e-2 if want.itemsize < 4 else 1e-6
        )


def test_sql_has_them_too(spark, frame, arrays):
    tf.register(spark)
    frame.createOrReplaceTempView("tensor_groups")
    for expression, want in (
        ("tensor_sum_agg(t)", lambda x: x.sum(axis=0)),
        ("tensor_mean_agg(t)", mean),
        ("tensor_stack(tensor_slice(t, '0'), n)", lambda x: x[::-1, 0]),
    ):
        rows = spark.sql(
            f"SELECT g, {expression} AS t FROM tensor_groups WHERE g = 'uint8' GROUP BY g"
        )
        np.testing.assert_array_equal(by_group(rows)["uint8"], want(arrays["uint8"]), strict=True)


def test_without_an_order_all_tensors_are_there(frame, arrays):
    stack = by_group(frame.where("g = 'int32'").groupBy("g").agg(tf.tensor_stack("t").alias("t")))[
        "int32"
    ]
    assert sorted(map(bytes, stack)) == sorted(map(bytes, arrays["int32"]))


def test_a_group_without_a_tensor_is_null(frame):
    nothing = f.when(f.col("g") != "uint8", f.col("t"))
    for column in (tf.tensor_sum_agg, tf.tensor_mean_agg, tf.tensor_stack):
        rows = frame.groupBy("g").agg(column(nothing).isNull().alias("none")).collect()
        assert {r.g for r in rows if r.none} == {"uint8"}


ORDERS = [
    [3, None, -1], ["b", "a", None], [1.5, float("nan"), None], [[1, 2], [1], None], [b"\2", b"\1", None],
]  # fmt: skip


@pytest.mark.parametrize("values", ORDERS, ids=lambda v: type(v[0]).__name__)
def test_the_order_is_that_of_spark(spark, values):
    column = tensor_column([np.array(i, "i8") for i in range(len(values))])
    frame = spark.createDataFrame(pa.table({"o": values, "t": column}))
    want = [
        r.n for r in frame.orderBy("o").select(tf.tensor_get("t").cast("int").alias("n")).collect()
    ]
    struct = [f.struct(f.lit(1), f.col("o"))] if isinstance(values[0], (float, list)) else []
    for order in (f.col("o"), *struct):
        found = frame.agg(tf.tensor_stack("t", order).alias("t")).first().t
        assert np.frombuffer(found.data, "i8").tolist() == want


@pytest.mark.parametrize("name", AGGREGATES)
def test_tensors_that_differ_are_an_error(frame, name):
    column = {"tensor_stack": tf.tensor_stack}.get(name) or getattr(tf, name)
    shorter = f.when(f.col("n") == -3, tf.tensor_slice("t", "1:")).otherwise(f.col("t"))
    text = rf"{name}: the tensors of a group differ: uint8 of shape .*\((3|2), 4\).*\((3|2), 4\)"
    with pytest.raises(PythonException, match=text):
        frame.where("g = 'uint8'").agg(column(shorter)).collect()
    batches = iter([tensor_column([np.zeros(3, "u1"), np.zeros(3, "?")])])
    with pytest.raises(tl.InvalidTensorError, match=r"uint8 of.*bool of"):
        AGGREGATES[name](batches)


def test_what_cannot_be_added_is_an_error(spark):
    column = tensor_column([np.zeros(2, "M8[s]")])
    frame = spark.createDataFrame(pa.table({"t": column}))
    with pytest.raises(PythonException, match=r"tensor_sum_agg: .*datetime64\[s\] are not added"):
        frame.agg(tf.tensor_sum_agg("t")).collect()
    with pytest.raises(
        PythonException,
        match=r"InvalidTensorError: tensor_stack takes tensors, .* as tensor_decode",
    ):
        spark.range(2).agg(tf.tensor_stack("id")).collect()
    assert frame.agg(tf.tensor_stack("t").alias("t")).first().t.dtype == "datetime64[s]"


@pytest.mark.parametrize("name", ["tensor_sum_agg", "tensor_mean_agg"])
def test_sums_hold_one_tensor_however_many_there_are(name):
    batch = tensor_column([np.ones(1 << 18, "f4")] * 4)
    tracemalloc.start()
    try:
        out = AGGREGATES[name](batch for _ in range(300))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out[0] == (1200 if name == "tensor_sum_agg" else 1)
    assert peak < 16 << 20


@pytest.mark.parametrize("unit", ["MiB", pytest.param("GiB", marks=pytest.mark.soak)])
def test_a_stack_above_two_gibibytes_is_an_error(monkeypatch, unit):
    """The limit of every day, and one that needs less memory."""
    size = 1 << (30 if unit == "GiB" else 20)
    if unit == "MiB":
        monkeypatch.setattr(
            "tensorlake_spark.spark.functions.tensor_stacks._MOST_BYTES", 2 * size - 1
        )
    batch = tensor_column([np.zeros(size // 8, "u1")] * 8)
    with pytest.raises(tl.InvalidOptionError, match=rf"16 rows take 2\.0 {unit}"):
        AGGREGATES["tensor_stack"](batch for _ in range(3))
