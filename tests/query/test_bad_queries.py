"""Mistakes are refused at every door of this process: a dataset, the package, the command line."""

import datetime as dt
import json
import re

import numpy as np
import pytest
from bad_queries import BAD_QUERIES

import tensorlake_spark as tl
from tensorlake_spark.jobs.query import main
from tensorlake_spark.query.user_functions import unregister_function


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    made = tl.dataset(
        str(tmp_path_factory.mktemp("bad") / "ds"),
        {"x": tl.types.Tensor("float32", (None,)), "label": "int32", "w": "float64"},
    )
    made.extend(
        {"x": [[1, 2], [3], [0, 0], *[[n] for n in range(13)]], "label": np.arange(16), "w": np.arange(16) / 4}
    )  # fmt: skip
    return made


def of_dataset(ds, sql):
    return len(ds.query(sql))


def of_package(ds, sql):
    return len(tl.query(sql, dataset=ds))


@pytest.mark.parametrize(("sql", "said"), BAD_QUERIES)
def test_mistakes_are_refused(ds, sql, said):
    for door in (of_dataset, of_package):
        with pytest.raises(tl.InvalidQueryError) as caught:
            door(ds, sql)
        assert re.search(said, str(caught.value), re.DOTALL), caught.value


@pytest.mark.parametrize(("sql", "said"), BAD_QUERIES)
def test_mistakes_end_the_job(ds, sql, said, capsys):
    assert main([ds.uri, sql]) == 2
    last = json.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert last["status"] == "failed"
    assert re.search(said, last["error"]["message"], re.DOTALL), last


def test_slices_and_numbers_are_as_numpy_has_them(ds):
    found = ds.query(
        "SELECT x[5:9] AS none, x / 0 AS far, w / 0 AS plain FROM dataset WHERE sid < 3"
    )
    with np.errstate(all="ignore"):
        for row, x in zip(found, ([1, 2], [3], [0, 0]), strict=True):
            assert row["none"].shape == (0,)
            assert np.array_equal(row["far"], np.array(x, "f4") / 0, equal_nan=True)


def test_remainders_by_zero_are_as_numpy_has_them(ds):
    sql = (
        "SELECT label % 0 AS a, mod(label, sid - sid) AS b, label DIV 0 AS c, w % 0 AS d, label % :n AS e, "
        "array_sum(x) % 0 AS f, (label - 3) % 2 AS g FROM dataset"
    )
    found = ds.query(sql, parameters={"n": 0}).to_pandas()
    for name in "abce":
        assert found[name].dtype.kind == "i"
        assert (found[name] == 0).all()
    assert np.isnan(found["d"]).all()
    assert np.isnan(found["f"]).all()
    assert found["g"].tolist() == [int(np.fmod(n - 3, 2)) for n in range(16)]  # SQL's sign
    kept = ds.query("SELECT label FROM dataset WHERE label % (label - 1) = 0 OR label IN (3)")
    assert kept["label"].tolist() == [0, 1, 2, 3]


def test_wrong_ranks_and_functions_name_the_sample(ds):
    with pytest.raises(tl.InvalidQueryError, match=r"sample with sid 0"):
        len(ds.query("SELECT label FROM dataset WHERE x[0, 0] > 1"))
    tl.register_function("one_less", lambda x: x[:-1])
    tl.register_function("no_good", lambda x: 1 / 0)
    try:
        with pytest.raises(tl.InvalidQueryError, match=r"one_less.*15"):
            len(ds.query("SELECT label FROM dataset WHERE one_less(label) > 1"))
        with pytest.raises(tl.InvalidQueryError, match="no_good"):
            len(ds.query("SELECT label FROM dataset WHERE no_good(x) > 1"))
    finally:
        unregister_function("one_less")
        unregister_function("no_good")


@pytest.mark.parametrize(
    ("sql", "parameters", "said"),
    [
        ("label = :most", {"most": "x"}, r":most='x'; .*CAST .*\n {38}\^{5}$"),
        ("label IN (:a, :b)", {"a": 1, "b": "x"}, r"given is :b='x'; .*\n {44}\^\^$"),
        ("w < :most", {"most": True}, r"given is :most=True; .*\n {34}\^{5}$"),
        ("label + :n > 0", {"n": b"x"}, "given is :n=b'x'"),
        ("label BETWEEN :a AND :b", {"a": dt.date(2020, 1, 1), "b": 3}, r":a=datetime.date\(.*, :b=3"),
    ],
)  # fmt: skip
def test_a_parameter_that_does_not_fit_is_named(ds, sql, parameters, said):
    with pytest.raises(tl.InvalidQueryError) as caught:
        len(ds.query(f"SELECT sid FROM dataset WHERE {sql}", parameters=parameters))
    assert re.search(said, str(caught.value), re.DOTALL), caught.value


def test_a_mistake_beside_a_parameter_keeps_its_place(ds):
    sql = "SELECT sid FROM dataset WHERE label = :n AND sum(w) > upper(label)"
    with pytest.raises(tl.InvalidQueryError, match="WHERE"):
        len(ds.query(sql, parameters={"n": 3}))
