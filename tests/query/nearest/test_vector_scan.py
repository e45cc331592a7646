"""Vectors where they lie."""

import numpy as np
import pytest
from marked_samples import mark

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.nearest.vector_scan import candidates, question_of
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


def test_no_sample_is_nearest_where_none_is_chosen_from(ds, vectors):
    for select in ("n", "n, l2_distance(e, :q) AS d"):
        sql = f"SELECT {select} FROM dataset WHERE n > 10 ORDER BY l2_distance(e, :q) LIMIT 3"
        assert ds.query(sql, parameters={"q": vectors[3]}).to_arrow().num_rows == 0


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
    found = candidates(question, None, Best(5, False))
    best = np.argsort(((vectors - vectors[0]) ** 2).sum(1))[:5]
    assert set(best) <= set(found.tolist())
    assert len(found) < 50
    assert (np.diff(found) > 0).all()
    wanted = np.arange(N) % 7 == 3
    some = candidates(question, wanted, Best(5, False))
    rows = np.flatnonzero(wanted)
    assert wanted[some].all()
    assert set(rows[np.argsort(((vectors[rows] - vectors[0]) ** 2).sum(1))[:5]]) <= set(
        some.tolist()
    )
    assert not len(candidates(question, None, Best(0, False)))


def hard_vectors(rng, kind):
    """Return vectors whose distances are hard to round: far, alike, zero, tiny, of very different lengths."""
    found = rng.normal(size=(3000, 8)).astype("f4")
    if kind == "far away":
        found = (found * np.float32(1e-3) + np.float32(1e3)).astype("f4")
    elif kind == "alike":
        found = np.repeat(found[:30], 100, axis=0)
    elif kind == "zeros":
        found[::3] = 0
    elif kind == "tiny":
        found *= np.float32(1e-25)
    elif kind == "lengths":
        found *= np.float32(10) ** rng.integers(-12, 12, (3000, 1)).astype("f4")
    elif kind == "huge":
        found[::50] *= np.float32(1e20)
    return found


@pytest.mark.parametrize("order", ["", " DESC"])
@pytest.mark.parametrize("function", ["l2_distance", "dot", "cosine_similarity"])
@pytest.mark.parametrize("kind", ["far away", "alike", "zeros", "tiny", "lengths", "huge"])
def test_hard_vectors_are_ordered_as_the_plain_way_orders_them(
    tmp_path, monkeypatch, kind, function, order
):
    found = hard_vectors(np.random.default_rng(5), kind)
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(8), "n": "int32"})
    for part in np.array_split(np.arange(3000), 4):
        ds.extend({"e": found[part], "n": part})
    sql = (
        f"SELECT n, {function}(e, :q) AS d FROM dataset ORDER BY {function}(e, :q){order} LIMIT 20"
    )
    for q in (found[17] * np.float32(0.5), found[17]):  # beside it squares cancel out
        fast = ds.query(sql, parameters={"q": q})
        fast = fast["n"], fast["d"]
        with monkeypatch.context() as patch:
            patch.setattr("tensorlake_spark.query.engine.neighbours.question_of", lambda *a: None)
            plain = ds.query(sql, parameters={"q": q})
            assert np.array_equal(fast[1], plain["d"], equal_nan=True)
            assert np.array_equal(fast[0], plain["n"])


def test_deleted_and_later_samples_and_other_columns(tmp_path, monkeypatch):
    rng = np.random.default_rng(6)
    found = rng.normal(size=(900, 8)).astype("f4")
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(8), "n": "int32", "t": "string"})
    for part in np.array_split(np.arange(900), 3):
        ds.extend({"e": found[part], "n": part, "t": [f"t{i}" for i in part]})
    ds.delete([*range(0, 900, 5)])
    ds.update("n = 7", {"n": 7})
    sql = "SELECT n, t FROM dataset ORDER BY l2_distance(e, :q) LIMIT 12 OFFSET 2"
    view = ds.query(sql, parameters={"q": found[0]})
    rows = np.flatnonzero(np.arange(900) % 5)
    best = rows[np.argsort(((found[rows] - found[0]) ** 2).sum(1), kind="stable")[2:14]]
    assert view["n"].tolist() == best.tolist()
    assert [str(t) for t in view["t"]] == [f"t{i}" for i in best]
    assert view.sids.tolist() == best.tolist()
    (read,) = view.explain().conditions
    assert read.rows == 720
    assert any("IN (" in one for one in view.explain().statements)  # the other columns of few rows


def test_a_sample_that_a_deletion_vector_hides_is_not_near(tmp_path):
    found = np.random.default_rng(8).normal(size=(40, 8)).astype("f4")
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(8)})
    ds.extend({"e": found})
    mark(ds.stored.snapshot.storage, 17)
    ds.refresh()
    assert ds.stored.is_marked(0)
    sql = "SELECT sid FROM dataset ORDER BY l2_distance(e, :q) LIMIT 2"
    near = np.argsort(((found - found[17]) ** 2).sum(1))
    assert ds.query(sql, parameters={"q": found[17]})["sid"].tolist() == near[1:3].tolist()


def test_few_nulls_do_not_slow_the_others(tmp_path):
    rng = np.random.default_rng(7)
    found = rng.normal(size=(4000, 8)).astype("f4")
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(8)})
    values = list(found)
    values[11] = None
    for first in range(0, 4000, 500):
        ds.extend({"e": values[first : first + 500]})
    question = asked(ds, "SELECT sid FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", found[0])
    near = candidates(question, None, Best(5, False))
    assert 11 in near
    sql = "SELECT sid FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5"
    view = ds.query(sql, parameters={"q": found[0]})
    keys = ((found - found[0]) ** 2).sum(1)
    keys[11] = np.inf
    assert view["sid"].tolist() == np.argsort(keys)[:5].tolist()


@pytest.mark.parametrize(
    ("sql", "q"),
    [
        ("SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", np.zeros(3)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", np.full(SIZE, np.nan)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", np.full(SIZE, 1e300)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5", np.full(SIZE, 1j)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e * 2, :q) LIMIT 5", np.zeros(SIZE)),
        ("SELECT n FROM dataset ORDER BY array_sum(e) LIMIT 5", np.zeros(SIZE)),
        ("SELECT n FROM dataset ORDER BY iou(e, :q) LIMIT 5", np.zeros(SIZE)),
        ("SELECT n FROM dataset ORDER BY l2_distance(e, e) LIMIT 5", np.zeros(SIZE)),
    ],
)
def test_other_questions_go_the_plain_way(ds, sql, q):
    assert asked(ds, sql, q) is None


def test_a_vector_that_is_none_is_refused(ds):
    sql = "SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 5"
    for q in ([10**400] * SIZE, np.ma.masked_less(np.arange(SIZE), 1)):
        with pytest.raises(tl.InvalidQueryError, match="the parameter :q is"):
            len(ds.query(sql, parameters={"q": q}))


def test_nulls_and_infinities_go_the_plain_way(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(2), "n": "int32"})
    ds.extend({"e": [[1, 2], [3, 4], None, [np.inf, 0]], "n": range(4)})
    view = ds.query(
        "SELECT n FROM dataset ORDER BY l2_distance(e, :q) LIMIT 3", parameters={"q": [3, 3]}
    )
    assert view["n"].tolist() == [1, 0, 3]
