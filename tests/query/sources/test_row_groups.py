"""Row groups that conditions rule out: never one with a row that is wanted."""

import os

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.planning.queries import plan_query
from tensorlake_spark.query.sources import dataset_source
from tensorlake_spark.query.sources.row_groups import needed_files

COUNT = 400


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    """A dataset of many small row groups in which numbers grow."""
    made = tl.dataset(
        str(tmp_path_factory.mktemp("groups") / "ds"),
        {
            "n": "int32",
            "f": "float32",
            "d": "float64",
            "s": "string",
            "x": types.Tensor("uint8", (64,)),
        },
    )
    at = np.arange(COUNT)
    floats = (at / 10).astype(np.float32)
    floats[7] = np.nan
    for part in (slice(0, 350), slice(350, COUNT)):
        here = at[part]
        made.extend(
            {"n": here.astype(np.int32), "f": floats[part], "d": here / 10, "s": [f"t{k:04}" for k in here],
             "x": np.zeros((len(here), 64), np.uint8)}
        )  # fmt: skip
        if not part.start:
            made.delete([3, 260])
            made.rechunk(row_group_bytes=2048)
    return made


def source_of(ds, sql, **parameters):
    """The only source of a query, as it is planned."""
    return next(iter(plan_query(sql, {"dataset": ds}, parameters, 0).sources.values()))


def rows_of(ds, sql, **parameters):
    """The sids that are read of a table in an object store."""
    source = source_of(ds, sql, **parameters)
    needed = source.groups(source.stored)
    return source._table(source.stored, ["sid"], needed).column("sid").to_pylist()


@pytest.mark.parametrize(
    "condition",
    [
        "n = 17", "n > 390.5", "17 >= n", "n BETWEEN 100 AND 110", "n IN (5, 9, 7)", "s = 't0300'", "s < 't0004'",
        "f = 0.1", "f <= 0.3", "f < 0.7 AND n < 6", "d = 0.3", "d BETWEEN 0.1 AND 0.3", "n > 390 AND s > 't0395'",
        "sid > 395", "n = -5", "(n < 2)", "n = (17)",
    ],
)  # fmt: skip
def test_fewer_rows_are_read_and_all_that_are_wanted(ds, condition):
    sql = f"SELECT n FROM dataset WHERE {condition}"
    wanted, read = ds.query(sql).sids.tolist(), rows_of(ds, sql)
    assert set(wanted) <= set(read)
    assert read == sorted(read)
    assert len(read) < COUNT / 2


@pytest.mark.parametrize(
    "condition",
    [
        "n + 0 = 17", "n > 390 OR n < 2", "n <> 5", "NOT n > 3", "n IS NULL", "n::varchar = '17'",
        "n = (SELECT max(n) FROM dataset)", "n > 1e300", "n NOT IN (1, 2)", "n BETWEEN SYMMETRIC 9 AND 2", "n IN (5, '7')",
        "n = '17'", "f = '0.5'", "n > -'5'", "n = '17' AND f > '1'",
    ],
)  # fmt: skip
def test_all_is_read_where_nothing_is_sure(ds, condition):
    assert len(rows_of(ds, f"SELECT n FROM dataset WHERE {condition}")) == COUNT - 2


def test_rows_with_nan_are_read_where_nan_may_count_as_large(ds):
    assert {7, 399} <= set(rows_of(ds, "SELECT n FROM dataset WHERE f > 39.85"))
    assert 7 not in rows_of(ds, "SELECT n FROM dataset WHERE f BETWEEN 39.8 AND 39.9")


def test_several_selects_and_joins(ds):
    both = "SELECT n FROM dataset WHERE n < 3 UNION ALL SELECT n FROM dataset WHERE n > 396"
    assert len(ds.query(both)) == 6
    read = rows_of(ds, both)
    assert {0, 1, 2, 397, 398, 399} <= set(read)
    assert len(read) < COUNT / 2
    first, last = both.split(" UNION ALL ")
    assert rows_of(ds, f"{last} UNION ALL {first}") == read == sorted(read)
    left = "SELECT a.n FROM dataset a LEFT JOIN dataset b ON a.n = b.n + 1 WHERE b.n = 350"
    assert ds.query(left)["n"].tolist() == [351]
    assert len(rows_of(ds, left)) == COUNT - 2  # of the other side all
    beside = "SELECT n FROM dataset WHERE n = 5 EXPAND BY 1, 200"
    assert len(rows_of(ds, beside)) == COUNT - 2
    assert len(ds.query(beside)) == 202


def test_parameters(ds):
    sql = "SELECT n FROM dataset WHERE n = :k"
    assert len(rows_of(ds, sql, k=np.int64(17))) < COUNT / 2
    assert len(rows_of(ds, sql, k=True)) == COUNT - 2
    assert len(rows_of(ds, sql, k=float("inf"))) == COUNT - 2
    assert len(ds.query(sql, parameters={"k": 2**100})) == 0
    with pytest.raises(tl.InvalidQueryError, match="too large"):
        len(ds.query(sql, parameters={"k": 10**400}))


def test_explain_counts_row_groups(ds):
    part = ds.query("SELECT n FROM dataset WHERE n BETWEEN 100 AND 110").explain().scalars[0]
    whole = ds.query("SELECT n FROM dataset WHERE n + 0 > 100").explain().scalars[0]
    assert whole.row_groups == whole.row_groups_needed == part.row_groups > 8
    assert 0 < part.row_groups_needed <= 2
    assert part.bytes < whole.bytes / 4
    text = str(ds.query("SELECT n FROM dataset WHERE n = 1").explain())
    assert f"1 of {part.row_groups} row groups" in text


def test_generated_conditions(ds):
    rng = np.random.default_rng(5)
    frame = ds.query("SELECT sid, n, f, d, s FROM dataset").to_arrow()
    assert isinstance(frame, pa.Table)
    for _ in range(60):
        parts = []
        for _ in range(rng.integers(1, 3)):
            name = str(rng.choice(["n", "f", "d", "s"]))
            value = int(rng.integers(-5, COUNT + 5))
            given = (
                f"'t{max(value, 0):04}'" if name == "s" else value if name == "n" else value / 10
            )
            parts.append(f"{name} {rng.choice(['=', '<', '<=', '>', '>='])} {given}")
        sql = f"SELECT n FROM dataset WHERE {' AND '.join(parts)}"
        assert set(ds.query(sql).sids.tolist()) <= set(rows_of(ds, sql)), sql


@pytest.fixture
def parts(tmp_path):
    """Files in which numbers grow; the bounds of the last but one are not known, and the last has none."""
    made = tl.dataset(
        str(tmp_path / "ds"), {"n": "int32", "m": "int64", "g/k": "int32", "f": "float32"}
    )
    for part in range(5):
        at = np.arange(10 * part, 10 * part + 10)
        made.extend({"n": at, "m": -at, "g/k": [None] * 10 if part == 3 else at, "f": at})
    made.extend({"n": [None] * 3, "m": [None] * 3, "g/k": [None] * 3, "f": [None] * 3})
    made.delete([11])
    return made


def files_of(ds, sql, **parameters):
    source = source_of(ds, sql, **parameters)
    return needed_files(source.stored, source.uses)


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("n = 17", [1, 5]), ("n BETWEEN 18 AND 21", [1, 2, 5]), ("n > 40", [4, 5]), ("n >= 40.5", [4, 5]),
        ("n < 9", [0, 5]), ("n < 10", [0, 5]), ("n > 39", [4, 5]), ("n < 10.5", [0, 1, 5]), ("n > 39.5", [4, 5]), ("39 < n", [4, 5]), ("n >= 39", [3, 4, 5]),
        ("n <= 10", [0, 1, 5]), ("n IN (3, 44)", [0, 1, 2, 3, 4, 5]), ("n IN (3, 4)", [0, 5]),
        ("n > 12 AND m > -15", [1, 5]), ("n = 17 AND m = 3", [5]), ("g.k = 33", [3, 5]), ("n = 999", [5]),
        ("f = 17", [1, 5]), ("f = 17 AND n > 20", [5]), ("f <= 17", [0, 1, 5]), ("n = 17 OR n = 3", [0, 1, 2, 3, 4, 5]), ("n + 0 = 17", [0, 1, 2, 3, 4, 5]),
        ("n = :k", [4, 5]),
    ],
)  # fmt: skip
def test_files_are_ruled_out_by_the_bounds_of_the_log(parts, condition, files, monkeypatch):
    sql = f"SELECT sid, n FROM dataset WHERE {condition}"
    given = {"k": 42} if ":k" in condition else {}
    assert files_of(parts, sql, **given) == files
    small = parts.query(sql, parameters=given).to_arrow()
    monkeypatch.setattr(dataset_source, "_MOST_VALUES", 0)
    assert parts.query(sql, parameters=given).to_arrow().equals(small)


def test_digits_of_a_negative_number_are_not_rounded_away(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    for value in (-6, -5, -4):
        ds.extend({"n": [value]})
    nines = "-4." + 32 * "9"
    assert ds.query(f"SELECT n FROM dataset WHERE n < {nines}")["n"].tolist() == [-6, -5]
    ones = "-5." + 31 * "0" + "1"
    assert ds.query(f"SELECT n FROM dataset WHERE n > {ones}")["n"].tolist() == [-5, -4]


def test_files_of_several_selects(parts):
    both = "SELECT n FROM dataset WHERE n = 3 UNION ALL SELECT n FROM dataset WHERE n = 44"
    assert files_of(parts, both) == [0, 4, 5]
    whole = "SELECT n FROM dataset WHERE n = 3 UNION ALL SELECT n FROM dataset"
    assert files_of(parts, whole) == [*range(6)]


@pytest.mark.parametrize("most", [0, 1 << 19])
def test_files_that_are_ruled_out_are_not_opened(parts, monkeypatch, most):
    monkeypatch.setattr(dataset_source, "_MOST_VALUES", most)
    ds = tl.dataset(parts.uri, create=False)
    assert ds.query("SELECT sid, n, f FROM dataset WHERE n = 17").sids.tolist() == [17]
    opened = [file.is_opened for file in ds.stored.files]
    assert opened == [False, True, False, False, False, True]
    os.remove(f"{parts.uri}/{ds.stored.files.paths[0]}")
    again = tl.dataset(parts.uri, create=False)
    assert again.query("SELECT n FROM dataset WHERE n BETWEEN 15 AND 25")["n"].tolist() == [
        *range(15, 26)
    ]
    assert again.query("SELECT sid FROM dataset WHERE f > 48").sids.tolist() == [49]
    assert again.query("SELECT sid FROM dataset WHERE n = 13 AND f < 12").sids.tolist() == []


def test_no_file_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_source, "_MOST_VALUES", 0)
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32", "s": "string"})
    ds.extend({"n": [1, 2], "s": ["a", "b"]})
    found = ds.query("SELECT n, s FROM dataset WHERE n > 5").to_arrow()
    assert (found.num_rows, [str(kind) for kind in found.schema.types]) == (0, ["int32", "string"])
    assert ds.query("SELECT count(*) AS c, sum(n) AS t FROM dataset WHERE n > 5")[0] == {
        "c": 0,
        "t": None,
    }
