"""The functions in a connection of DuckDB, against the same functions in NumPy."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.datasets.types.tensor_struct import Structs, struct_of
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.query.duckdb_functions import PREFIXED, register
from tensorlake_spark.query.functions.registry import FUNCTIONS
from tensorlake_spark.query.user_functions import register_function, unregister_function


@pytest.fixture
def con():
    with duckdb.connect() as made:
        tl.duckdb.register(made)
        yield made


def one(con, text):
    return con.execute(f"SELECT {text}").fetchall()[0][0]


def array(value):
    return Structs(
        pa.array([value], pa.struct([*struct_of([], "uint8", Place("x")).type]))
    ).arrays()[0]


def test_every_function_is_registered_and_none_of_duckdbs_is_hidden():
    with duckdb.connect() as plain:
        own = {
            name for (name,) in plain.sql("SELECT function_name FROM duckdb_functions()").fetchall()
        }
        names = register(plain)
    assert not own & set(names)
    assert set(names) == {
        f"tensor_{f.name}" if f.name in PREFIXED else f.name for f in FUNCTIONS
    } | {"tensor_slice", "tensor_list"}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("array_mean([1, 2, 6])", 3.0),
        ("array_sum([[1, 2], [3, 4]])", 10.0),
        ("array_max([1.5, 2.5])", 2.5),
        ("array_max([9007199254740993, 1])", 2.0**53),
        ("tensor_list([9007199254740993])", [2.0**53]),
        ("array_min(NULL)", None),
        ("array_std([1, 3])", 1.0),
        ("array_norm([3, 4]::FLOAT[2])", 5.0),
        ("array_argmax([1, 9, 3])", 1),
        ("shape([[1, 2, 3], [4, 5, 6]])", [2, 3]),
        ("dtype([1.5::DOUBLE])", "float64"),
        ("iou([[0, 0, 1, 1]], [[0, 0, 1, 1]])", 1.0),
        ("iou([[0, 0, 2, 2]], [[0, 0, 2, 2]], 'xywh')", 1.0),
        ("l2_distance([0, 0], [3, 4])", 5.0),
        ("cosine_similarity([1, 0], [1, 0])", 1.0),
        ("dot([1, 2]::FLOAT[2], [3, 4]::FLOAT[2])", 11.0),
        ("tensor_contains([1, 2], 2)", True),
        ("tensor_any([0, 0])", False),
        ("tensor_all([[1, 1], [1, 0]])", False),
        ("tensor_list(normalize([[200, 100, 300, 500]], [100, 100, 400, 400]))", [0.25, 0, 0.5, 1]),
        ("tensor_list(tensor_slice([[1, 2, 3], [4, 5, 6]], '::-1, 1:'))", [5, 6, 2, 3]),
        ("tensor_list(clip([1, 5, 9], 2, 6))", [2, 5, 6]),
        ("tensor_list(tensor_histogram([0, 1, 9], 2, 0, 10))", [2, 1]),
        ("tensor_list(nonzero([0, 7]))", [1]),
        ("shape(resize([[1, 2], [3, 4]], 3, 4))", [3, 4]),
        ("array_mean(to_gray(resize([[1, 1], [1, 1]], 3, 4)))", 1.0),
        ("tensor_list(iou_matrix([[0, 0, 1, 1]], [[0, 0, 1, 1], [5, 5, 6, 6]]))", [1, 0]),
        ("array_mean([1, NULL, 3])", np.nan),
        ("mean(i) FROM range(5) t(i)", 2.0),
        ("contains('lake', 'ak')", True),
    ],
)
def test_functions_of_lists(con, text, wanted):
    found = one(con, text)
    if isinstance(wanted, float) and np.isnan(wanted):
        assert np.isnan(found)
    else:
        assert found == wanted


def test_stored_tensors_and_many_batches(con):
    rng = np.random.default_rng(2)
    rows = [
        None if i % 7 == 3 else rng.random((1 + i % 3, 4)).astype(np.float32) for i in range(5000)
    ]
    table = pa.table({"i": range(5000), "x": struct_of(rows, "float32", Place("x"))})
    con.register("t", table)
    found = con.sql("SELECT array_sum(x), tensor_slice(x, '0, 1:3') FROM t ORDER BY i").fetchall()
    for (total, part), row in zip(found, rows, strict=True):
        if row is None:
            assert (total, part) == (None, None)
        else:
            assert total == pytest.approx(row.sum(), rel=1e-5)
            assert np.array_equal(array(part), row[0, 1:3])


def test_lists_of_several_lengths(con):
    lists = [[float(j) for j in range(i % 5)] for i in range(300)] + [None]
    con.register("t", pa.table({"i": range(301), "x": lists}))
    found = con.sql("SELECT array_sum(x) FROM t ORDER BY i").fetchall()
    assert [value for (value,) in found] == [None if x is None else sum(x) for x in lists]


def test_nearest_neighbours(con):
    rng = np.random.default_rng(3)
    x, q = rng.random((3000, 8)).astype(np.float32), rng.random(8).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 8)
    con.register("t", pa.table({"i": range(3000), "emb": column}))
    found = con.execute(
        "SELECT i FROM t ORDER BY l2_distance(emb, ?::FLOAT[8]) LIMIT 10", [q.tolist()]
    ).fetchall()
    assert [i for (i,) in found] == np.argsort(np.linalg.norm(x - q, axis=1))[:10].tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("array_mean([1, 2], 0)", "no axis"),
        ("array_mean(['a'])", "not numbers"),
        ("array_mean([[1], [1, 2]])", "different lengths"),
        ("iou([[1, 2]], [[1, 2]])", "boxes have the shape"),
        ("array_mean()", "takes|No function matches|argument"),
        ("array_mean({'a': 1})", "a tensor is a list"),
        ("tensor_slice([1, 2], '5')", "out of bounds"),
        ("tensor_slice([1, 2], 'a')", "no column 'a'"),
        ("tensor_slice([1, 2], '0] FROM t; DROP TABLE t --')", "one statement|not a query"),
        ("tensor_slice([1, 2], '0], x[1')", "no key"),
        ("tensor_slice([1, 2], 5)", "its key is one text"),
        ("tensor_list([1], 2)", "one tensor"),
    ],
)
def test_mistakes_are_named(con, text, said):
    with pytest.raises(duckdb.Error, match=said):
        one(con, text)


def test_functions_of_users_are_registered_too():
    register_function("spread_of", lambda x: x.max(axis=1) - x.min(axis=1), returns="float64")
    try:
        with duckdb.connect() as con:
            assert "spread_of" in register(con)
            assert "spread_of" in register(con)  # again
            assert one(con, "spread_of([1, 5, 3])") == 4.0
    finally:
        unregister_function("spread_of")


def test_a_name_that_duckdb_has_is_an_error():
    register_function("approx_top_k", lambda x: x)
    try:
        with duckdb.connect() as con, pytest.raises(InvalidOptionError, match="approx_top_k"):
            register(con)
    finally:
        unregister_function("approx_top_k")


@pytest.mark.parametrize("con", [None, "duckdb", 5])
def test_what_is_no_connection(con):
    with pytest.raises(InvalidOptionError, match="not a connection of DuckDB"):
        register(con)
