"""Vectors where they lie."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.engine import vector_scan
from tensorlake_spark.query.engine.vector_scan import candidates, question_of
from tensorlake_spark.query.planning.plan import Best
from tensorlake_spark.query.planning.queries import plan_query

N, SIZE = 5000, 16


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(1)
    found = rng.normal(size=(N, SIZE)).astype("f4")
    found[77] = found[78]
    return found


@pytest.fixture(scope="module")
def ds(tmp_path_factory, vectors):
    out = tl.dataset(
        str(tmp_path_factory.mktemp("v") / "ds"), {"e": types.Embedding(SIZE), "n": "int32"}
    )
    for part in np.array_split(np.arange(N), 3):
        out.extend({"e": vectors[part], "n": part % 10})
    return out


def asked(ds, sql, q):
    plan = plan_query(sql, {"dataset": ds}, {"q": q})
    return question_of(plan.steps[0].computed[0], {"q": q})


@pytest.mark.parametrize("where", ["", "WHERE n < 6 "])
@pytest.mark.parametrize(
    "function", ["l2_distance(e, :q)", "dot(:q, e) DESC", "cosine_similarity(e, :q)"]
)
def test_answers_are_those_of_all_distances(ds, vectors, function, where, monkeypatch):
    q = vectors[77]
    sql = f"SELECT n FROM dataset {where}ORDER BY {function} LIMIT 10"
    assert asked(ds, sql, q) is not None
    fast = ds.query(sql, parameters={"q": q}).sids
    monkeypatch.setattr("tensorlake_spark.query.engine.neighbours.question_of", lambda *a: None)
    assert fast.tolist() == ds.query(sql, parameters={"q": q}).sids.tolist()
    keys = {
        "l2": ((vectors.astype("f8") - q) ** 2).sum(1),
        "do": -(vectors.astype("f8") @ q),
        "co": vectors.astype("f8") @ q / np.linalg.norm(vectors.astype("f8"), axis=1),
    }[function[:2]]
    rows = np.flatnonzero(np.arange(N) % 10 < 6) if where else np.arange(N)
    best = rows[np.argsort(keys[rows], kind="stable")[:10]]
    assert np.allclose(keys[fast], keys[best], rtol=1e-6, atol=1e-6)


def test_few_rows_are_read_alone(ds, vectors):
    sql = "SELECT n FROM dataset WHERE n = 3 ORDER BY l2_distance(e, :q) LIMIT 5"
    view = ds.query(sql, parameters={"q": vectors[3]})
    (read,) = view.explain().conditions
    assert read.rows == 500
    rows = np.arange(3, N, 10)
    order = rows[np.argsort(((vectors[rows] - vectors[3]) ** 2).sum(1), kind="stable")[:5]]
    assert view.sids.tolist() == order.tolist()


def test_candidates_have_the_best_and_few_others(ds, vectors):
    question = asked(ds, "SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", vectors[0])
    sids = vector_scan.pa.array(np.arange(N))
    found = candidates(question, sids, Best(5, False))
    best = np.argsort(((vectors - vectors[0]) ** 2).sum(1))[:5]
    assert set(best) <= set(found.tolist())
    assert len(found) < 50


@pytest.mark.parametrize(
    ("sql", "q"),
    [
        ("SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", np.zeros(3)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", np.full(SIZE, np.nan)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e * 2, :q) LIMIT 5", np.zeros(SIZE)),
        ("SELECT n FROM dataset ORDER BY array_sum(e) LIMIT 5", np.zeros(SIZE)),
    ],
)
def test_other_questions_go_the_plain_way(ds, sql, q):
    assert asked(ds, sql, q) is None


def test_nulls_and_infinities_go_the_plain_way(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(2), "n": "int32"})
    ds.extend({"e": [[1, 2], [3, 4], None, [np.inf, 0]], "n": range(4)})
    view = ds.query(
        "SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 3", parameters={"q": [3, 3]}
    )
    assert view["n"].tolist() == [1, 0, 3]
