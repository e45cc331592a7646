"""Lists that a parameter brings after IN."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.language.listed_values import with_listed
from tensorlake_spark.query.language.parsing import parse

DAYS = [dt.date(2024, 1, day) for day in (1, 2, 3, 4)]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    schema = {
        "n": "int64", "day": "date", "at": "timestamp", "price": "decimal(10, 2)", "word": "string",
        "x": types.Tensor("int32", (2,)),
    }  # fmt: skip
    found = tl.dataset(tmp_path_factory.mktemp("lists") / "ds", schema)
    found.extend(
        {
            "n": [1, 2, 3, None],
            "day": DAYS,
            "at": [dt.datetime(2024, 1, day, 5) for day in (1, 2, 3, 4)],
            "price": [Decimal("0.10"), Decimal("0.20"), Decimal(3), None],
            "word": ["it's", "b", None, '"'],
            "x": np.arange(8, dtype="int32").reshape(4, 2),
        }
    )
    return found


@pytest.mark.parametrize(
    ("column", "values", "sids"),
    [
        ("n", [2, 3, 9], [1, 2]),
        ("n", [2, None], [1]),
        ("n", np.array([2.0, 1.5]), [1]),
        ("day", DAYS[1:3], [1, 2]),
        ("day", ["2024-01-04"], [3]),
        ("day", pd.Series(pd.to_datetime(["2024-01-02"])), [1]),
        ("at", [dt.datetime(2024, 1, 2, 5), None], [1]),
        ("at", pd.date_range("2024-01-02 05:00", periods=2, tz="UTC"), [1, 2]),
        ("at", [pd.Timestamp("2024-01-02 06:00", tz="Europe/Berlin")], [1]),
        ("price", [Decimal("0.20"), Decimal(3)], [1, 2]),
        ("word", ["it's", '"', pd.NA], [0, 3]),
        ("n", [], []),
        ("array_sum(x)", [1, 9], [0, 2]),
    ],
)
def test_rows_are_found_by_any_list(ds, column, values, sids):
    view = ds.query(f"SELECT sid FROM dataset WHERE {column} IN :q", parameters={"q": values})
    assert view["sid"].tolist() == sids


def test_nulls_in_a_list_are_those_of_sql(ds):
    for values, sids in (([1, 2], [2]), ([1, None], []), ([], [0, 1, 2, 3])):
        view = ds.query("SELECT sid FROM dataset WHERE n NOT IN :q", parameters={"q": values})
        assert view["sid"].tolist() == sids


def test_a_list_stands_anywhere(ds):
    given = {"q": [1, 3]}
    sql = "SELECT n IN (:q, 2) AS here, CASE WHEN n IN :q THEN array_sum(x) END AS s FROM dataset"
    view = ds.query(sql, parameters=given)
    assert view["here"] == [True, True, True, None]
    assert [None if one is None else int(one) for one in view["s"]] == [1, None, 9, None]
    sql = "SELECT a.n FROM d a JOIN d b ON a.sid = b.sid AND b.n IN :q ORDER BY a.n"
    assert tl.query(sql, d=ds, parameters=given)["n"].tolist() == [1, 3]


def test_duckdb_looks_values_up_and_row_groups_are_skipped(ds):
    view = ds.query("SELECT word FROM dataset WHERE n IN :q", parameters={"q": [8, 9]})
    assert len(view) == 0
    report = str(view.explain())
    assert "IN (8, 9)" in report
    assert "0 of 1 row groups" in report


@pytest.mark.parametrize("texts", [False, True])
def test_long_lists_are_looked_up_in_a_set(ds, texts):
    values = [f"b{k}" for k in range(50_000)] + ["b"] if texts else range(2, 200_000)
    column = "word" if texts else "n"
    view = ds.query(f"SELECT sid FROM dataset WHERE {column} IN :q", parameters={"q": values})
    assert view["sid"].tolist() == ([1] if texts else [1, 2])


@pytest.mark.parametrize("text", ["a\0b", "\\'", "'; DROP TABLE t --", "x\ny", ":q", "$q"])
def test_a_text_in_a_list_is_never_read_as_sql(tmp_path, text):
    ds = tl.dataset(tmp_path / "ds", {"word": "string"})
    ds.extend({"word": ["x", text]})
    view = ds.query("SELECT sid FROM dataset WHERE word IN :q", parameters={"q": [text, "y"]})
    assert view["sid"].tolist() == [1]


@pytest.mark.parametrize("texts", [["a", "\ud800"], np.array(["\ud800"]), {"\ud800"}])
def test_half_of_a_character_in_a_list_is_refused(ds, texts):
    with pytest.raises(tl.InvalidQueryError, match=r"parameter 'q', .* has half of a character"):
        ds.query("SELECT sid FROM dataset WHERE word IN :q", parameters={"q": texts})


def test_what_stays_a_parameter():
    for value in (5, "cat", [1, "cat"], [[1, 2]], [b"x"], np.eye(2), range(3), None):
        tree = parse("SELECT k IN (:q) FROM t")
        assert with_listed(tree.selects[0], {"q": value}).sql() == "k IN (:q)"
    tree = parse("SELECT (SELECT max(v) FROM u WHERE v IN (:q)) FROM t")
    assert ":q" in with_listed(tree.selects[0], {"q": [1]}).sql(), "a query inside is on its own"
