"""A query that is asked again is planned once; a plan is not kept for what may have changed."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.planning import known_plans
from tensorlake_spark.query.user_functions import unregister_function

SQL = "SELECT label, count(*) AS n FROM dataset WHERE label < 2 GROUP BY label ORDER BY label"


@pytest.fixture
def ds(tmp_path):
    ds = tl.dataset(str(tmp_path / "set"), {"label": "int32", "x": tl.types.Tensor("f4", (2,))})
    ds.extend({"label": [0, 1, 1, 2], "x": np.arange(8, dtype="f4").reshape(4, 2)})
    return ds


@pytest.fixture
def planned(monkeypatch):
    """The texts that were planned."""
    texts, plan_query = [], known_plans.plan_query

    def noted(sql, *rest):
        texts.append(sql)
        return plan_query(sql, *rest)

    monkeypatch.setattr(known_plans, "plan_query", noted)
    return texts


def test_the_same_query_of_the_same_version_is_planned_once(ds, planned):
    for _ in range(3):
        assert ds.query(SQL).to_arrow().to_pydict() == {"label": [0, 1], "n": [1, 2]}
    assert ds.query(SQL).explain().statements == ds.query(SQL).explain().statements
    assert planned == [SQL]
    ds.extend({"label": [0], "x": np.zeros((1, 2), "f4")})
    assert ds.query(SQL).to_arrow().to_pydict() == {"label": [0, 1], "n": [2, 2]}
    assert len(planned) == 2
    old = tl.dataset(ds.uri, version=1)
    assert old.query(SQL)["n"].tolist() == [1, 2]
    assert ds.query(SQL)["n"].tolist() == [2, 2]
    assert len(planned) == 3, "the other version does not displace it"


def test_plans_of_what_may_change_are_not_kept(ds, planned, tmp_path):
    ask = "SELECT count(*) AS n FROM dataset WHERE label < :most"
    assert [int(ds.query(ask, parameters={"most": n})["n"][0]) for n in (1, 3)] == [1, 4]
    path, ask = str(tmp_path / "names.parquet"), "SELECT name FROM dataset JOIN names USING (label)"
    for name in ("cat", "dog"):
        pq.write_table(pa.table({"label": pa.array([0], pa.int32()), "name": [name]}), path)
        assert list(ds.query(ask, names=path)["name"]) == [name]
    ask = "SELECT count(*) AS n FROM dataset VERSION 'good'"
    ds.tag("good")
    assert int(ds.query(ask)["n"][0]) == 4
    ds.extend({"label": [0], "x": np.zeros((1, 2), "f4")})
    ds.untag("good")
    ds.tag("good")
    assert int(ds.query(ask)["n"][0]) == 5
    assert len(planned) == 6


def test_the_same_text_with_another_seed_name_or_function_is_another_query(ds, planned):
    drawn = "SELECT label FROM dataset SAMPLE BY label LIMIT 2"
    first, other, again = [ds.query(drawn, seed=n)["label"].tolist() for n in (0, 3, 0)]
    assert first == again != other
    ask = "SELECT twice(label) AS n FROM dataset"
    try:
        for factor in (2, 20):
            tl.register_function("twice", lambda x, factor=factor: x * factor, returns="int64")
            assert ds.query(ask)["n"].tolist() == [0, factor, factor, 2 * factor]
    finally:
        unregister_function("twice")
    with pytest.raises(tl.InvalidQueryError, match="twice"):
        ds.query(ask)
    other = tl.dataset(ds.uri, version=1)
    with pytest.raises(tl.InvalidQueryError, match="no source 'a'"):
        tl.query("SELECT label FROM a", b=other)
    assert len(tl.query("SELECT label FROM a", a=other)) == 4
    with pytest.raises(tl.InvalidQueryError, match="no source 'a'"):
        tl.query("SELECT label FROM a", b=other)


def test_views_of_one_plan_are_read_in_several_threads(ds, planned):
    ask = (
        "SELECT x[0] AS first, label FROM dataset WHERE array_sum(x) > 1 ORDER BY label DESC, first"
    )
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ds.query(ask).to_arrow().to_pydict(), range(20)))
    assert found == [{"first": [6.0, 2.0, 4.0], "label": [2, 1, 1]}] * 20


def test_plans_do_not_keep_a_dataset_alive(ds):
    here = tl.dataset(ds.uri, create=False)
    assert len(here.query(SQL)) == 2
    gone = weakref.ref(here)
    del here
    gc.collect()
    assert gone() is None
    assert ds not in known_plans._plans
    for n in range(known_plans._KEPT + 5):
        ds.query(f"SELECT label + {n} AS n FROM dataset")
    assert len(known_plans._plans[ds][1]) == known_plans._KEPT
