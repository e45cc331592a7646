"""Rows of several queries together."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.planning.unions import alike
from tensorlake_spark.query.sources.source_columns import Lazy, TensorLeaf


def lazy(text, key, column="x"):
    node = parse(f"SELECT {text} FROM t").selects[0]
    return Lazy.of(node, {"x": TensorLeaf(None, column, ("", key), "s")})


def test_tensors_are_alike_if_only_their_keys_differ():
    assert alike(lazy("x[:2]", "a"), lazy("x[:2]", "b"))
    assert not alike(lazy("x[:2]", "a"), lazy("x[:3]", "a"))
    assert not alike(lazy("x", "a"), lazy("x", "a", "y"))


def test_a_union_with_clauses_behind_it(shapes):
    sql = "SELECT labels, emb FROM dataset WHERE sid < 3 UNION ALL SELECT labels, emb FROM dataset WHERE sid > 57"
    view = shapes.ds.query(sql + " ORDER BY array_sum(emb) DESC LIMIT 4")
    sums = shapes.vectors.sum(1)
    assert view.sids.tolist() == sorted([0, 1, 2, 58, 59], key=lambda i: -sums[i])[:4]


def test_a_number_beside_a_tensor(shapes):
    view = shapes.ds.query(
        "SELECT emb AS v FROM dataset WHERE sid = 4 UNION ALL SELECT labels FROM dataset WHERE sid = 5"
    )
    assert view["v"][0].tolist() == shapes.vectors[4].tolist()
    assert view["v"][1] == shapes.labels[5]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """Samples of which some have the same tensors, also in another column."""
    ds = tl.dataset(
        str(tmp_path_factory.mktemp("twins") / "ds"),
        {
            "x": tl.types.Tensor("float32", (None,)),
            "y": tl.types.Tensor("float32", (None,)),
            "image": tl.types.Image("png"),
            "k": "int32",
        },
    )
    black, white = np.zeros((4, 5, 3), np.uint8), np.full((4, 5, 3), 255, np.uint8)
    ds.extend(
        {
            "x": [[1, 2], [1, 2], [3], None, None, [0.0]],
            "y": [[3], [1, 2], [3], [5], None, [-0.0]],
            "image": [black, white, black, white, black, black],
            "k": [0, 0, 1, 1, 2, 2],
        }
    )
    return ds


def rows(view):
    """Rows as tuples of lists, in an order of their own; -0.0 is written as 0.0."""
    plain = [
        tuple(None if v is None else (np.ravel(v) + 0.0).tolist() for v in row.values())
        for row in view
    ]
    return sorted(plain, key=lambda row: [(v is None, v or []) for v in row])


def test_distinct_tensors_are_those_with_distinct_values(twins):
    found = twins.query("SELECT DISTINCT x FROM dataset")
    assert rows(found) == [([0.0],), ([1.0, 2.0],), ([3.0],), (None,)]
    assert len(twins.query("SELECT DISTINCT image FROM dataset")) == 2
    assert len(twins.query("SELECT DISTINCT image, k FROM dataset WHERE k < 2")) == 4
    assert len(twins.query("SELECT DISTINCT x[:1] AS head, 1 AS one FROM dataset")) == 4
    assert len(twins.query("SELECT DISTINCT image[0, 0, 0] AS corner FROM dataset")) == 2
    joined = tl.query("SELECT DISTINCT a.image FROM d AS a JOIN d AS b ON a.k <> b.k", d=twins)
    assert len(joined) == 2


def test_the_first_of_equal_rows_stays(twins):
    found = twins.query("SELECT DISTINCT x FROM dataset WHERE x IS NOT NULL LIMIT 2")
    assert [one.tolist() for one in found["x"]] == [[1, 2], [3]]
    last = twins.query("SELECT DISTINCT image FROM dataset ORDER BY array_mean(image) DESC LIMIT 1")
    assert last["image"][0].min() == 255


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("UNION", [([0.0],), ([1.0, 2.0],), ([3.0],), ([5.0],), (None,)]),
        ("INTERSECT", [([0.0],), ([1.0, 2.0],), ([3.0],), (None,)]),
        ("EXCEPT", []),
    ],
)
def test_columns_of_tensors_are_compared_by_their_values(twins, how, expected):
    found = twins.query(f"SELECT x FROM dataset {how} SELECT y FROM dataset")
    assert rows(found) == expected


def test_rows_of_the_left_side_stay(twins):
    found = twins.query("SELECT y FROM dataset EXCEPT SELECT x FROM dataset WHERE k < 1")
    assert rows(found) == [([0.0],), ([3.0],), ([5.0],), (None,)]
    assert found.sids.tolist() == [0, 3, 4, 5]


@pytest.mark.parametrize(
    ("how", "expected"), [("UNION", [0, 3, 5, None]), ("INTERSECT", [0, 3, None]), ("EXCEPT", [])]
)
def test_numbers_of_tensors_are_compared_by_their_values(twins, how, expected):
    found = twins.query(
        f"SELECT array_sum(x) AS v FROM dataset {how} SELECT array_sum(y) FROM dataset"
    )
    assert sorted(found["v"], key=lambda v: (v is None, v or 0)) == expected


@pytest.mark.parametrize(
    ("sql", "sids"),
    [
        ("SELECT k FROM d UNION ALL SELECT k FROM d WHERE sid = 3", [0, 1, 2, 3, 4, 5, 3]),
        ("SELECT x FROM d UNION ALL SELECT y FROM d WHERE sid = 3", [0, 1, 2, 3, 4, 5, 3]),
        (
            "SELECT x FROM d WHERE sid IN (2, 5) UNION SELECT y FROM d WHERE sid IN (3, 4)",
            [2, 3, 4, 5],
        ),
        ("SELECT k FROM d UNION SELECT k FROM d", None),
        ("SELECT k FROM d UNION ALL SELECT k FROM other", None),
        ("SELECT x FROM d UNION ALL SELECT k FROM rows", None),
        ("SELECT k FROM rows UNION ALL SELECT x FROM d", None),
    ],
)
def test_rows_are_samples_where_both_sides_are_of_one_dataset(twins, sql, sids):
    view = tl.query(sql, d=twins, other=tl.dataset(twins.uri), rows=pa.table({"k": [1]}))
    assert (view.sids if view.sids is None else view.sids.tolist()) == sids


def test_a_type_stays_where_both_sides_have_it(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"c": tl.types.ClassLabel(["cat", "dog"]), "k": "int8"})
    ds.extend({"c": [0, 1], "k": [1, 1]})
    both = "SELECT k FROM (SELECT c, k FROM dataset UNION ALL SELECT {}, k FROM dataset) AS q"
    assert len(ds.query(both.format("c") + " WHERE c = 'dog'")) == 2
    with pytest.raises(tl.InvalidQueryError, match="'dog'"):
        len(ds.query(both.format("k") + " WHERE c = 'dog'"))


def test_tensors_and_columns_together(twins):
    sql = "SELECT k, x FROM dataset WHERE k < 2 {} SELECT k, y FROM dataset WHERE sid IN (1, 2, 4)"
    assert len(twins.query(sql.format("UNION"))) == 4
    assert rows(twins.query(sql.format("INTERSECT"))) == [([0.0], [1.0, 2.0]), ([1.0], [3.0])]
    assert rows(twins.query(sql.format("EXCEPT"))) == [([1.0], None)]
    none = twins.query("SELECT x FROM dataset WHERE k > 9 INTERSECT SELECT y FROM dataset")
    assert len(none) == 0


def test_a_tensor_beside_a_number_is_another_value(twins):
    found = twins.query("SELECT x[0] AS v FROM dataset UNION SELECT k FROM dataset")
    assert sorted(v for v in found["v"] if v is not None) == [0, 1, 2, 3]
    assert list(found["v"]).count(None) == 1


def test_what_cannot_be_compared_says_so(twins):
    with pytest.raises(tl.InvalidQueryError, match="INTERSECT ALL counts equal rows"):
        twins.query("SELECT x FROM dataset INTERSECT ALL SELECT y FROM dataset")
    with pytest.raises(tl.InvalidQueryError, match=r"GROUP BY collects.*in brackets"):
        twins.query("SELECT DISTINCT k, x FROM dataset GROUP BY k")
    groups = (
        "SELECT DISTINCT v FROM (SELECT k, y[:0] AS v FROM dataset WHERE k < 2 GROUP BY k) AS q"
    )
    assert len(twins.query(groups)) == 1


def test_a_union_is_split_like_a_select(twins):
    sql = "SELECT x FROM dataset WHERE sid = 0 UNION ALL SELECT y FROM dataset WHERE sid = 0 UNGROUP BY x"
    assert list(twins.query(sql)["x"]) == [1, 2, 3]
