"""Row groups that conditions rule out: never one with a row that is wanted."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.planning.queries import plan_query

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
    return source._table(source.stored, ["sid"]).column("sid").to_pylist()


@pytest.mark.parametrize(
    "condition",
    [
        "n = 17", "n > 390.5", "17 >= n", "n BETWEEN 100 AND 110", "n IN (5, 9, 7)", "s = 't0300'", "s < 't0004'",
        "f = 0.1", "f <= 0.3", "f < 0.7 AND n < 6", "d = 0.3", "d BETWEEN 0.1 AND 0.3", "n > 390 AND s > 't0395'",
        "sid > 395", "n = -5", "(n < 2)",
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
        "n = (SELECT max(n) FROM dataset)", "n > 1e300", "n NOT IN (1, 2)",
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
