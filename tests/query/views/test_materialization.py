"""Views that become datasets."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived import sample_copying
from tensorlake_spark.datasets.derived.column_plan import Recoded
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError
from tensorlake_spark.query.engine import row_batches
from tensorlake_spark.query.engine.evaluation import Evaluation
from tensorlake_spark.query.views.view_values import ViewValues

FIGURES = {
    "image": tl.types.Image("png"),
    "boxes": tl.types.BoundingBox("xywh"),
    "label": "int32",
    "g/name": "string",
}


@pytest.fixture
def ds(tmp_path):
    rng = np.random.default_rng(0)
    made = tl.dataset(tmp_path / "ds", FIGURES)
    for start in (0, 6):
        made.extend(
            {
                "image": [rng.integers(0, 255, (8 + n, 9, 3), np.uint8) for n in range(6)],
                "boxes": [np.array([[0, 0, 4 + n, 4]], "f4") for n in range(6)],
                "label": np.arange(start, start + 6, dtype=np.int32) % 4,
                "g/name": [f"n{n}" for n in range(start, start + 6)],
            }
        )
    return made


TEXT = (
    'SELECT image, image[1:4, ::2, 0] AS crop, label, "g/name" AS name, array_mean(image) AS mean '
    "FROM dataset WHERE label > :least ORDER BY label DESC"
)


def stored_bytes(one, name):
    return one.to_arrow([name]).column(name).combine_chunks().field("data").to_pylist()


def same(new, view):
    assert len(new) == len(view)
    for row, wanted in zip(new, view, strict=True):
        assert row.keys() == wanted.keys()
        for name, value in wanted.items():
            np.testing.assert_array_equal(row[name], value)


@pytest.mark.parametrize("workers", [None, 2])
def test_the_rows_of_a_view(ds, tmp_path, workers):
    view = ds.query(TEXT, parameters={"least": 0})
    new = view.materialize(tmp_path / "new", workers)
    same(new, view)
    places = ds.stored.positions_of(view.sids)
    assert stored_bytes(new, "image") == [stored_bytes(ds, "image")[at] for at in places]
    assert new.lineage.query == TEXT
    assert new.lineage.sources[0].columns == {"image": "image"}
    assert new.lineage.computed == ("crop", "label", "name", "mean")
    assert new.check(deep=True, sources=True).ok
    assert new.history().operation.tolist() == ["materialize", "CREATE TABLE"]


def test_executors(spark, ds, tmp_path):
    view = ds.query(TEXT, parameters={"least": 1})
    new = view.materialize(tmp_path / "new", spark)
    same(new, view)
    assert new.lineage.digests == view.materialize(tmp_path / "here").lineage.digests


def test_executors_that_fail_leave_nothing(spark, ds, tmp_path):
    place = tmp_path / "new"
    view = ds.query("SELECT image, image[:1] AS row FROM dataset")
    with pytest.raises(InvalidSampleError, match="column 'row', sample 0"):
        view.materialize(place, spark, types={"row": "int32"})
    path = tmp_path / "ds" / ds.stored.snapshot.files.path[1]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(tl.TensorLakeError):
        tl.dataset(ds.uri).query("SELECT image FROM dataset").materialize(place, spark)
    assert not [one for one in place.rglob("*") if one.is_file()]
    path.write_bytes(data)
    same(view.materialize(place, spark), view)


def test_a_query_that_fails_while_the_table_is_made_leaves_nothing(ds, tmp_path):
    place = tmp_path / "new"
    view = ds.query(
        'SELECT image FROM dataset WHERE array_mean(image[:, :, 7:]) > CAST("g/name" AS int)'
    )
    with pytest.raises(tl.TensorLakeError, match="n0"):
        view.materialize(place)
    assert not [one for one in place.rglob("*") if one.is_file()]
    assert len(ds.query("SELECT image FROM dataset").materialize(place)) == 12


@pytest.mark.parametrize("executors", [False, True])
def test_what_links_lead_to_is_copied_in(ds, tmp_path, executors, request):
    paths = [tmp_path / f"{n}.png" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_bytes(ds["image"].encoded(n))
    kind = tl.types.Link(tl.types.Image("png"))
    linked = tl.dataset(tmp_path / "linked", {"image": kind, "n": "int32"})
    linked.extend({"image": [str(path) for path in paths], "n": [0, 1, 2]})
    view = linked.query("SELECT image, n + 1 AS more FROM dataset WHERE n <> 1 ORDER BY n DESC")
    workers = request.getfixturevalue("spark") if executors else None
    kept = view.materialize(tmp_path / "kept", workers, links="keep")
    assert kept.schema["image"] == kind
    new = view.materialize(tmp_path / "new", workers)
    for path in paths:
        path.unlink()
    assert new.schema["image"] == tl.types.Image("png")
    assert stored_bytes(new, "image") == [ds["image"].encoded(n) for n in (2, 0)]
    assert new["more"][:].tolist() == [3, 1]
    assert new.lineage.sources[0].fetched == {"image": "image"}
    assert new.check(deep=True).ok


def test_parts_of_views_and_views_of_views(ds, tmp_path):
    view = ds.query(TEXT, parameters={"least": 0})[[4, 1, 1]]
    same(view.materialize(tmp_path / "part"), view)
    inner = view.query("SELECT crop, label * 2 AS twice FROM dataset WHERE label > 1")
    same(inner.materialize(tmp_path / "inner"), inner)


def test_joins_and_rows_without_a_sample(ds, tmp_path):
    view = tl.query(
        "SELECT a.image, b.image AS next FROM ds a LEFT JOIN ds b ON a.sid + 1 = b.sid AND b.label > 2 ORDER BY a.sid",
        ds=ds,
    )
    new = view.materialize(tmp_path / "new")
    same(new, view)
    assert new["next"][0] is None
    assert new.check(sources=True).ok


def test_a_name_is_a_folder_beside_the_dataset(ds, tmp_path):
    new = ds.query("SELECT label FROM dataset").materialize("labels")
    assert new.uri == str(tmp_path / "labels")
    with pytest.raises(InvalidOptionError, match="there is a table at"):
        ds.query("SELECT label FROM dataset").materialize("labels")
    for wrong in (5, None):
        with pytest.raises(InvalidOptionError, match="neither a path, a URL nor a name"):
            ds.query("SELECT label FROM dataset").materialize(wrong)


def test_types_that_are_asked_for(ds, tmp_path):
    view = ds.query("SELECT image, array_max(image) AS top FROM dataset")
    kinds = {"image": tl.types.Image("raw"), "top": "float64"}
    new = view.materialize(tmp_path / "new", types=kinds)
    assert {name: new.schema[name] for name in kinds} == {
        "image": tl.types.Image("raw"),
        "top": tl.types.Scalar("float64"),
    }
    same(new, view)


def test_columns_that_cannot_be_stored(ds, tmp_path):
    view = ds.query('SELECT label, label + 1 AS "a b" FROM dataset')
    with pytest.raises(InvalidOptionError, match="Delta does not allow"):
        view.materialize(tmp_path / "new")
    view = ds.query("SELECT image[:1] AS row FROM dataset")
    with pytest.raises(InvalidSampleError, match="column 'row', sample 0"):
        view.materialize(tmp_path / "new", types={"row": "int32"})
    with pytest.raises(InvalidOptionError, match="no column 'rows'"):
        view.materialize(tmp_path / "new", types={"rows": "int32"})
    with pytest.raises(InvalidOptionError, match="links='x'"):
        view.materialize(tmp_path / "new", links="x")
    assert not [one for one in (tmp_path / "new").rglob("*") if one.is_file()]


def test_no_rows(ds, tmp_path):
    new = ds.query("SELECT image, label FROM dataset WHERE label > 99").materialize(
        tmp_path / "new"
    )
    assert len(new) == 0
    assert [*new.schema] == ["image", "label"]


LINES = 8 << 10  # of a large scan, each of 16 bytes


@pytest.fixture
def tiled(tmp_path):
    """Scans of which most are kept as tiles, in the table and apart."""
    schema = {
        "scan": tl.types.Tensor("uint8", (None, 16)),
        "far": tl.types.Image("raw", apart=True),
    }
    made = tl.dataset(tmp_path / "tiled", schema, tile_bytes=64 << 10)
    scans = [np.full((LINES if n % 3 else 10, 16), n, np.uint8) for n in range(24)]
    made.extend({"scan": scans, "far": scans})
    return made


@pytest.fixture
def asked(monkeypatch):
    """How many rows were computed at a time, with batches of two large scans and some small ones."""
    found = []
    monkeypatch.setattr(sample_copying, "BATCH_BYTES", LINES * 16 + 500)
    for kind in (ViewValues, Recoded):
        compute = kind.__call__

        def counted(self, start, stop, compute=compute):
            found.append(stop - start)
            return compute(self, start, stop)

        monkeypatch.setattr(kind, "__call__", counted)
    return found


@pytest.mark.parametrize("name", ["scan", "far"])
def test_computed_columns_of_large_samples_are_made_a_few_at_a_time(tiled, tmp_path, asked, name):
    view = tiled.query(f"SELECT {name} + 1 AS more FROM dataset ORDER BY sid DESC")
    new = view.materialize(tmp_path / "new", types={"more": tl.types.Tensor("uint8")})
    assert sum(asked) == 24
    assert max(asked) <= 4  # two large, and a small one on either side
    assert [one.flat[0] for one in new["more"][:]] == [*range(1, 25)][::-1]
    assert new.check(sources=True).ok


@pytest.mark.parametrize("name", ["scan", "far"])
def test_large_samples_get_another_type_a_few_at_a_time(tiled, tmp_path, asked, name):
    new = tiled.copy(tmp_path / "new", types={name: tl.types.Tensor("int16")})
    assert sum(asked) == 24
    assert max(asked) <= 4
    assert [(one.dtype, one.flat[0]) for one in new[name][:]] == [("int16", n) for n in range(24)]
    assert new.check(sources=True).ok


def test_what_a_view_computes_of_slices_is_not_cut(tiled, tmp_path, asked):
    tiled.query("SELECT scan[:2] AS top FROM dataset").materialize(tmp_path / "new")
    assert asked == [24]


def test_types_of_large_samples_are_guessed_a_few_at_a_time(tiled, monkeypatch):
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 2 * LINES * 16 + 1000)
    counts = []
    compute = Evaluation.values

    def counted(self, lazy, table, *more):
        counts.append(table.num_rows)
        return compute(self, lazy, table, *more)

    monkeypatch.setattr(Evaluation, "values", counted)
    view = tiled.query("SELECT scan + 1 AS a FROM dataset")
    assert view.types == {"a": tl.types.Tensor("uint8", (None, 16))}
    assert sum(counts) == 24
    assert max(counts) <= 4
    groups = tiled.query("SELECT sid % 3 AS k, array_agg(scan) AS scans FROM dataset GROUP BY k")
    assert groups.types["scans"].kind in ("sequence", "tensor")


def test_types_are_given_where_values_do_not_tell_them(tmp_path):
    wanted = tl.types.Tensor("float64", (None,))
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("float32", (None,)), "n": "int32"})
    ds.extend({"x": [None, [1, 2]], "n": [0, 1]})
    for text, message in [
        (
            "SELECT x * 2 AS y FROM dataset WHERE n = 0",
            "has no value to tell its type by; give types=",
        ),
        ("SELECT CASE WHEN n = 0 THEN [1] ELSE x END AS y FROM dataset", "materialize with types="),
    ]:
        view = ds.query(text)
        with pytest.raises(InvalidOptionError, match=message):
            view.materialize(tmp_path / "new")
        assert not (tmp_path / "new").exists()
        found = view.materialize(tmp_path / f"new {len(text)}", types={"y": wanted})
        assert dict(found.schema) == {"y": wanted}
        for value, one in zip(found["y"][:], view["y"][:], strict=True):
            assert one is value is None or np.array_equal(value, one)
