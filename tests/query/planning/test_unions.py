"""Rows of several queries together."""

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
