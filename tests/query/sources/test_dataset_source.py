"""Datasets as sources: whatever lies where, the rows are right."""

import datetime as dt
import decimal

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.sources import dataset_source
from tensorlake_spark.query.sources.dataset_source import DatasetSource, pinned


@pytest.fixture
def grown(tmp_path):
    """A dataset whose files have different columns, and which lost and changed samples."""
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32", "x": types.Tensor("int64", (None,))})
    ds.extend({"n": range(5), "x": [np.arange(i) for i in range(5)]})
    ds.add_column("more", "float64")
    ds.add_column("g/tag", "string")
    ds.add_column("late", types.Tensor("int64", (2,)))
    ds.extend(
        {"n": range(5, 8), "x": [np.arange(i) for i in range(5, 8)], "more": [0.5, None, 1.5],
         "g/tag": ["a", None, "b"], "late": [[1, 2], [3, 4], [5, 6]]}
    )  # fmt: skip
    ds.delete([2, 6])
    ds.update(1, {"n": 100})
    return ds


def test_columns_that_were_added_are_null_in_old_files(grown):
    found = grown.query("SELECT n, more, g.tag AS tag FROM dataset").to_pandas()
    assert found.index.tolist() == [0, 1, 3, 4, 5, 7]
    assert found["n"].tolist() == [0, 100, 3, 4, 5, 7]
    assert found["more"].isna().tolist() == [True] * 4 + [False] * 2
    assert found["tag"].tolist() == [None] * 4 + ["a", "b"]
    assert grown.query("SELECT n FROM dataset WHERE more > 0").sids.tolist() == [5, 7]
    assert grown.query("SELECT count(more) AS a, count(late) AS b, count(x) AS c FROM dataset")[
        0
    ] == {"a": 2, "b": 2, "c": 6}


EVERY = {
    "b": ("bool", [True, None, False]),
    "i": ("int8", [-128, None, 127]),
    "j": ("int64", [-(2**63), None, 2**63 - 1]),
    "u": ("uint64", [0, None, 2**64 - 1]),
    "f": ("float32", [float("nan"), None, -0.5]),
    "d": ("float64", [float("inf"), None, float("nan")]),
    "s": ("string", ["", None, "\u00fc"]),
    "y": ("bytes", [b"", None, b"\0x"]),
    "day": ("date", [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "t": ("timestamp", [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), None, None]),
    "w": ("timestamp_ntz", [dt.datetime(2020, 1, 1, 1, 2, 3, 4), None, None]),
    "m": ("decimal(38, 18)", [decimal.Decimal("1.5"), None, decimal.Decimal("-2")]),
}


@pytest.fixture
def every(tmp_path):
    """Scalars of every kind, some of them added later, with samples that were deleted and changed."""
    first = {name: kind for name, (kind, _) in EVERY.items() if name < "m"}
    ds = tl.dataset(str(tmp_path / "ds"), {**first, "x": types.Tensor("int8", (None,))})
    ds.extend({**{name: EVERY[name][1] * 3 for name in first}, "x": [[1], None, []] * 3})
    for name in EVERY.keys() - first.keys():
        ds.add_column(name, EVERY[name][0])
    ds.extend(
        {**{name: values * 3 for name, (_, values) in EVERY.items()}, "x": [[1], None, []] * 3}
    )
    ds.delete([4, 12, 13])
    ds.update([5], {"i": 7})
    ds.rechunk("i DESC")
    return ds


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * EXCEPT (x) FROM dataset",
        "SELECT x IS NULL AS none, shape(x) AS s FROM dataset",
        *(f"SELECT sid, {name} FROM dataset ORDER BY {name} DESC, sid" for name in EVERY),
        *(f"SELECT min({name}) AS a, max({name}) AS b, count({name}) AS n FROM dataset" for name in EVERY),
        *(f"SELECT DISTINCT {name} FROM dataset ORDER BY {name}" for name in EVERY),
        "SELECT sid FROM dataset WHERE f > 0 OR isnan(d)",
        "SELECT sum(i) AS s, avg(j) AS m, sum(u) AS t, sum(m) AS d FROM dataset",
        "SELECT a.sid AS l, b.sid AS r FROM dataset a LEFT JOIN dataset b ON a.s = b.s AND a.sid < 3 ORDER BY l, r",
        "SELECT sid, lag(i) OVER (PARTITION BY s ORDER BY sid) AS p FROM dataset ORDER BY sid",
        "SELECT sid, i FROM dataset VERSION 1 EXCEPT SELECT sid, i FROM dataset",
    ],
)  # fmt: skip
def test_small_columns_are_read_at_once_and_give_the_same_answer(every, monkeypatch, sql):
    source = DatasetSource("s", every)
    every_file = [*range(len(source.stored.files))]
    assert source._is_small(source.stored, ["sid"], every_file)
    small = every.query(sql).to_arrow()
    monkeypatch.setattr(dataset_source, "_MOST_VALUES", 0)
    assert not source._is_small(source.stored, ["sid"], every_file)
    large = every.query(sql).to_arrow()
    assert small.schema == large.schema
    assert repr(small.to_pydict()) == repr(large.to_pydict())


@pytest.mark.parametrize("bound", ["_MOST_VALUES", "_MOST_BYTES", "_MOST_FILES"])
def test_columns_beyond_any_bound_are_left_to_duckdb(grown, monkeypatch, bound):
    source = DatasetSource("s", grown)
    wanted = ["n", "g/tag", "sid"]
    files = len(source.stored.files)
    assert source._is_small(source.stored, wanted, [*range(files)])
    rows = int(source.stored.snapshot.files.rows.sum())
    nbytes = sum(
        file.size_of([x.path for x in source.leaves(source.stored) if file.has(x)])
        for file in source.stored.files
    )
    least = {"_MOST_VALUES": rows * 3, "_MOST_BYTES": nbytes, "_MOST_FILES": files}[bound]
    monkeypatch.setattr(dataset_source, bound, least - 1)
    assert not source._is_small(source.stored, wanted, [*range(files)])
    assert source._is_small(source.stored, wanted, []), "what is not read does not count"


def test_tensors_that_were_added_are_null_in_old_samples(grown):
    view = grown.query("SELECT late, array_sum(late) AS s FROM dataset ORDER BY sid")
    assert [None if v is None else v.tolist() for v in view["late"]] == [None] * 4 + [
        [1, 2],
        [5, 6],
    ]
    assert list(view["s"]) == [None] * 4 + [3, 11]
    assert grown.query("SELECT n FROM dataset WHERE array_sum(late) > 0").sids.tolist() == [5, 7]
    assert grown.query("SELECT n FROM dataset WHERE late IS NULL").sids.tolist() == [0, 1, 3, 4]
    assert grown.query("SELECT n FROM dataset ORDER BY array_sum(late) DESC LIMIT 3").sids.tolist()[
        :2
    ] == [7, 5]


@pytest.mark.parametrize("most", [0, 1 << 19])
def test_a_column_whose_name_ends_with_a_question_mark(tmp_path, monkeypatch, most):
    monkeypatch.setattr(dataset_source, "_MOST_VALUES", most)
    schema = {"n": "int32", "n?": "int32", "x": types.Tensor("int8", (None,)), "x?": "float32"}
    ds = tl.dataset(str(tmp_path / "ds"), schema)
    ds.extend({"n": [1, 2], "n?": [3, None], "x": [None, [1]], "x?": [5.0, 6.0]})
    view = ds.query('SELECT "n?", "x?" FROM dataset WHERE x IS NULL OR "x?" > 5 ORDER BY sid')
    assert view.to_arrow().to_pydict() == {"n?": [3, None], "x?": [5.0, 6.0]}


def test_ragged_tensors(grown):
    view = grown.query("SELECT x[-2:] AS tail FROM dataset WHERE shape(x)[0] >= 2")
    assert [v.tolist() for v in view["tail"]] == [[1, 2], [2, 3], [3, 4], [5, 6]]


def test_apart_columns(tmp_path):
    images = [np.full((4 + i, 5, 3), i, np.uint8) for i in range(6)]
    ds = tl.dataset(str(tmp_path / "ds"), {"image": types.Image("png", apart=True), "n": "int32"})
    ds.extend({"image": images[:5], "n": range(5)})
    ds.append({"n": 5})
    view = ds.query("SELECT image, n FROM dataset WHERE array_mean(image) >= 2 AND n < 4")
    assert view.sids.tolist() == [2, 3]
    assert all(np.array_equal(a, b) for a, b in zip(view["image"], images[2:4]))
    assert ds.query("SELECT n FROM dataset WHERE image IS NULL").sids.tolist() == [5]
    for name in ("image.height", "d.image.height"):
        with pytest.raises(
            tl.InvalidQueryError, match=r"field of an apart column.*shape\(image, 0\)"
        ):
            ds.query(f"SELECT n FROM dataset d WHERE {name} > 4")
    assert len(ds.query("SELECT n FROM dataset WHERE shape(image, 0) > 4")) == 4
    with pytest.raises(tl.InvalidQueryError, match=r"there is no column 'n\.height'"):
        ds.query("SELECT n.height FROM dataset")


def test_of_tiled_samples_only_the_tiles_are_read(tmp_path):
    rng = np.random.default_rng(0)
    large = [rng.integers(0, 256, (2000, 1500), np.uint8) for _ in range(2)]
    small = rng.integers(0, 256, (20, 30), np.uint8)
    ds = tl.dataset(
        str(tmp_path / "ds"), {"scan": types.Tensor("uint8", (None, None))}, tile_bytes=64 << 10
    )
    ds.extend({"scan": [large[0], small, large[1]]})
    view = ds.query(
        "SELECT scan[5:15, -20:] AS corner, scan[3, 4] AS one FROM dataset WHERE array_mean(scan[:10, :10]) > 0"
    )
    report = view.explain()
    for row, scan in zip(view, [large[0], small, large[1]], strict=True):
        assert np.array_equal(row["corner"], scan[5:15, -20:])
        assert row["one"] == scan[3, 4]
    whole = ds.query("SELECT scan FROM dataset")
    assert np.array_equal(whole[2]["scan"], large[1])
    lake = tl.open(f"{ds.uri}/_tensors")

    def of_tiles(*keys):
        plans = [lake[f"scan/{sid}"].explain(key) for sid in (0, 2) for key in keys]
        return sum(plan.n_bytes for plan in plans)

    rows = small.nbytes + 3 * 16  # the values that are no tiles, and the shapes of all
    assert report.tensor_bytes == rows + of_tiles(np.s_[:10, :10])
    assert report.selected_bytes == rows + of_tiles(np.s_[5:15, -20:], np.s_[3, 4])
    assert whole.explain().selected_bytes == rows + of_tiles(...) > large[0].nbytes
    assert report.tensor_bytes < large[0].nbytes
    shapes = ds.query("SELECT shape(scan) AS s, scan[:0] AS nothing FROM dataset").explain()
    assert shapes.selected_bytes == rows


@pytest.mark.parametrize("side", [10, 400])
def test_a_step_of_zero_is_refused_whether_there_are_tiles_or_not(tmp_path, side):
    ds = tl.dataset(
        str(tmp_path / "ds"), {"scan": types.Tensor("uint8", (None, None))}, tile_bytes=64 << 10
    )
    ds.append({"scan": np.zeros((side, side), np.uint8)})
    with pytest.raises(tl.InvalidQueryError, match=r"step cannot be zero \(sample with sid 0\)"):
        ds.query("SELECT scan[::0] AS x FROM dataset")[0]
    with pytest.raises(tl.InvalidQueryError, match=r"step cannot be zero \(sample with sid 0\)"):
        list(ds.query("SELECT scan[::0] AS x FROM dataset"))


def test_an_empty_dataset_and_one_without_a_table(tmp_path):
    nothing = tl.dataset(str(tmp_path / "none"))
    assert nothing.query("SELECT count(*) AS n FROM dataset")[0]["n"] == 0
    empty = tl.dataset(str(tmp_path / "empty"), {"n": "int32", "x": types.Tensor("int64", (2,))})
    view = empty.query("SELECT n, x FROM dataset WHERE array_sum(x) > 1 ORDER BY n LIMIT 3")
    assert len(view) == 0
    assert view.to_arrow().num_rows == 0
    assert empty.query("SELECT sum(n) AS s FROM dataset")[0]["s"] is None


def test_order_is_that_of_samples_whatever_files_say(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    ds.extend({"n": range(6)})
    ds.update([1, 4], {"n": 50})
    ds.optimize(order=[5, 4, 3, 2, 1, 0])
    assert ds.query("SELECT n FROM dataset")["n"].tolist() == [0, 50, 2, 3, 50, 5]
    assert ds.query("SELECT n FROM dataset WHERE n > 2").sids.tolist() == [1, 3, 4, 5]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_nan_is_found_whatever_bounds_say(tmp_path, kind):
    ds = tl.dataset(str(tmp_path / "ds"), {"f": kind, "n": "int32"})
    ds.extend({"f": [0.0, np.nan, -0.0, None], "n": range(4)})
    ds.extend({"f": [10.0, 20.0], "n": [4, 5]})

    def sids(condition):
        return ds.query(f"SELECT n FROM dataset WHERE {condition}").sids.tolist()

    for gone in ([], [3]):
        if gone:
            ds.delete(gone)  # its file has a mark for it
        assert sids("isnan(f)") == [1]
        assert sids("NOT isnan(f)") == [0, 2, 4, 5]
        assert sids("f > 15") == [1, 5]  # NaN is above all numbers, as Spark has it
        assert sids("f <= 15") == [0, 2, 4]
        assert np.signbit(ds.query("SELECT f FROM dataset WHERE n = 2")["f"]).tolist() == [True]


def test_an_object_store(tmp_path, s3):
    uri = "s3://bucket/queries/ds"
    ds = tl.dataset(
        uri,
        {"n": "int32", "x": types.Tensor("int64", (None,)), "g/k": "int32"},
        storage_options=s3.options,
    )
    ds.extend({"n": range(6), "x": [np.arange(i) for i in range(6)], "g/k": range(6)})
    ds.delete([3])
    view = ds.query("SELECT n, x FROM dataset WHERE array_sum(x) > 1 AND g.k < 5 AND x IS NOT NULL")
    assert view.sids.tolist() == [4]
    assert view["x"][0].tolist() == [0, 1, 2, 3]
    assert ds.query("SELECT sum(n) AS s FROM dataset VERSION 1")[0]["s"] == 15
    ds.extend({"n": range(6, 9), "x": [np.arange(i) for i in range(3)], "g/k": range(6, 9)})
    late = ds.query("SELECT n, x FROM dataset WHERE g.k >= 7")
    assert late.sids.tolist() == [7, 8]
    assert late["x"][1].tolist() == [0, 1]
    (scalars,) = late.explain().scalars
    assert (scalars.row_groups, scalars.row_groups_needed) == (2, 1)


def test_a_source_stays_at_its_version(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    ds.extend({"n": [1]})
    source = DatasetSource("s", ds)
    same = pinned(ds)
    ds.extend({"n": [2]})
    assert (len(source), source.version, len(same), len(ds)) == (1, 1, 1, 2)
    assert len(source.at("s2", 1, None)) == 1
