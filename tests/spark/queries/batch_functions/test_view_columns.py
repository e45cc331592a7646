"""Views of this process as sources of queries by Spark."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.query.user_functions import unregister_function
from tensorlake_spark.spark import query
from tensorlake_spark.spark.queries.batch_functions.view_columns import computed_columns
from tensorlake_spark.spark.source.schemas import TENSOR, tensors_of

IMAGES = [np.full((4 + n % 2, 5, 3), 10 * n, np.uint8) for n in range(12)]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    made = tl.dataset(
        str(tmp_path_factory.mktemp("views") / "ds"),
        {
            "image": types.Image("png"),
            "x": types.Tensor("float32", (None,)),
            "label": types.ClassLabel(["cat", "dog", "cow"]),
            "note": "string",
            "big": "uint64",
            "g/boxes": types.BoundingBox("xywh"),
            "parts": types.Sequence("int32"),
        },
    )
    made.extend(
        {
            "image": IMAGES,
            "x": [None if n == 3 else np.arange(1 + n % 3, dtype="f4") + n for n in range(12)],
            "label": np.arange(12) % 3,
            "note": [None if n % 4 == 1 else f"n{n}" for n in range(12)],
            "big": np.arange(12, dtype="u8") + np.uint64(2**63),
            "g/boxes": [[[0, 0, 1 + n, 2]] for n in range(12)],
            "parts": [[n] * (n % 3) for n in range(12)],
        }
    )
    return made


def tensors(frame, name):
    column = frame.select(name).toArrow().column(name).combine_chunks()
    valid = column.is_valid().to_pylist()
    arrays = tensors_of(column.filter(column.is_valid()))
    return [next(arrays).tolist() if one else None for one in valid]


def test_rows_and_values_of_a_view(spark, ds):
    view = ds.query(
        "SELECT image[:2, 0] AS part, x, label, note, big, array_max(image) AS top, g.boxes AS b FROM dataset "
        "WHERE array_mean(image) > 15 AND label <> 2 ORDER BY sid DESC"
    )
    frame = query(spark, "SELECT * FROM v", v=view)
    assert frame.columns == view.names
    assert frame.schema["part"].dataType == TENSOR
    assert tensors(frame, "part") == [one.tolist() for one in view["part"]]
    assert tensors(frame, "x") == [None if one is None else one.tolist() for one in view["x"]]
    rows = frame.select("label", "note", "big", "top").collect()
    assert [int(row.big) for row in rows] == [int(one) for one in view["big"]]
    assert [(row.label, row.note, row.top) for row in rows] == [*zip(view["label"], view["note"], view["top"])]  # fmt: skip


def test_queries_on_views_are_the_same_by_both_engines(spark, ds):
    view = ds.query(
        "SELECT sid AS n, x, label, g.boxes AS b FROM dataset WHERE x IS NOT NULL ORDER BY sid DESC"
    )
    for given in (view, view[2:9], view.query("SELECT * FROM dataset WHERE label > 0")):
        for sql in (
            "SELECT label, sum(array_sum(x)) AS s, count(*) AS n FROM v GROUP BY label ORDER BY label",
            "SELECT n, array_max(x * 2) AS top, iou(b, b) AS i FROM v WHERE array_min(x) > 4 ORDER BY n",
            "SELECT a.n, dot(a.x[:1], b.x[:1]) AS d FROM v AS a JOIN ds AS b ON a.n = b.sid + 1 ORDER BY a.n",
        ):
            expected = tl.query(sql, v=given, ds=ds).to_arrow().to_pylist()
            found = query(spark, sql, v=given, ds=ds).toArrow().to_pylist()
            assert found == [pytest.approx(row) for row in expected], sql


def test_groups_computed_parts_and_constants(spark, ds):
    view = ds.query(
        "SELECT label, x, [1, 2] AS two FROM dataset WHERE sid <> 3 GROUP BY label ORDER BY label"
    )
    frame = query(spark, "SELECT * FROM v ORDER BY label", v=view)
    rows = frame.select("x").toArrow().column("x")
    for found, expected in zip(rows, view["x"], strict=True):
        assert [one.tolist() for one in tensors_of(found.values)] == [np.asarray(one).tolist() for one in expected]  # fmt: skip
    split = query(
        spark, "SELECT label, x FROM v UNGROUP BY x", v=view.query("SELECT label, x FROM dataset")
    )
    assert split.count() == 11


def test_functions_of_the_user_and_parameters_travel(spark, ds):
    tl.register_function(
        "plus_k",
        lambda x, k: [None if one is None else one + k for one in x],
        returns="array",
    )
    try:
        view = ds.query("SELECT plus_k(x, :k) AS y, x * :k AS z FROM dataset", parameters={"k": 3})
        frame = query(spark, "SELECT y, z FROM v WHERE y IS NOT NULL", v=view)
        packed = cloudpickle.dumps(computed_columns(view)["z"])
        assert tensors(frame, "y") == [one.tolist() for one in view["y"] if one is not None]
    finally:
        unregister_function("plus_k")
    (found,) = cloudpickle.loads(packed)(iter([pa.array([0])]))
    assert [one.tolist() for one in tensors_of(found)] == [[0.0]]


def test_empty_views_and_versions(spark, ds):
    empty = ds.query("SELECT x, array_max(x) AS m, label FROM dataset WHERE label > 7")
    assert query(spark, "SELECT * FROM v", v=empty).count() == 0
    with pytest.raises(InvalidOptionError, match="v is a view"):
        query(spark, "SELECT * FROM v VERSION 1", v=empty)


def test_what_is_no_tensor_is_as_spark_has_it_of_the_dataset(spark, ds):
    view = ds.query(
        "SELECT a.sid AS n, b.parts FROM dataset AS a LEFT JOIN dataset AS b ON a.sid = b.sid + 1 ORDER BY n"
    )
    rows = query(spark, "SELECT n, parts FROM v ORDER BY n", v=view).collect()
    assert [row.parts for row in rows] == [None, *([n] * (n % 3) for n in range(11))]
