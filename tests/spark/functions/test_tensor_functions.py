"""Functions of tensors beside NumPy, their errors, and what the documentation says of them."""

import inspect
import math
import re
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from places import ROOT
from plain_tables import tensors
from pyspark.errors import PythonException
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.functions.udfs import FUNCTIONS, udf
from tensorlake_spark.spark.source.schemas import TENSOR, tensor_column

PAGE = (ROOT / "docs" / "plain_delta.md").read_text()


RNG = np.random.default_rng(5)
DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "bfloat16")
SHAPES = ((), (4,), (3, 4), (2, 3, 4))


def make(dtype, shape):
    from tensorlake_spark.tensor.spec import dtype_of

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


DOCUMENTED = [getattr(tf, name) for name in tf.__all__]


def test_examples_of_docstrings_run(example):
    """Those that select one column for every row run as one query."""
    names = {**vars(tf), **example[0], "f": f}
    table = names["spark"].read.format("delta").load(names["path"])
    parts = [example[1][3:4, :, :32], example[1][4:5, :, 32:]]
    images = tl.types.Image("png").encode([np.moveaxis(part[0], 0, -1) for part in parts], "image")
    given = pa.table({"tensor": tensor_column(parts), "image": images})
    tensors = names["spark"].createDataFrame(given).coalesce(1)
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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tensor_sum(3)", r"tensor_sum takes \(x\), not \(int32\); a tensor is a struct<dtype, sh"),
        ("tensor_mean('a')", r"tensor_mean takes \(x\), not \(string\); a tensor is"),
        ("tensor_add('a', 'b')", r"tensor_add takes \(x, y\), not \(string, string\)"),
        ("tensor_sum()", r"tensor_sum takes \(x\), not \(\); a tensor is"),
        (
            "tensor_sum_axes(tensor_from_array(array(1D), array(1), 'float64'), 'q')",
            r"tensor_sum_axes: it does not take arguments of these kinds; its arguments are float64 .*'q'",
        ),
        ("tensor_dot(1)", r"tensor_dot takes \(x, y\), not \(int32\)"),
        ("tensor_shape(3)", r"tensor_shape takes \(tensors\), not \(int32\)"),
        ("tensor_shape(struct(1, 2, 3))", r"tensor_shape takes \(tensors\), not \(struct<col1"),
        (
            "tensor_decode('x', '1')",
            r"tensor_decode takes \(rows, keys=None, shapes=None\), not \(",
        ),
    ],
)
def test_sql_of_other_arguments_is_an_error_that_names_the_function(spark, text, says):
    tf.register(spark)
    with pytest.raises(PythonException, match=f"InvalidTensorError: {says}"):
        spark.sql(f"SELECT {text}").collect()
