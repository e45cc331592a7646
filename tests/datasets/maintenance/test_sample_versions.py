"""A dataset becomes what it was at a version."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from marked_samples import mark
from races import before_call
from whole_datasets import contents, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance import sample_versions
from tensorlake_spark.delta.log.actions import commit_name


def test_restore_brings_back_deleted_samples_and_gives_no_number_again(made):
    ds, version = made.ds, made.ds.version
    ds.extend(samples_of(made.jpegs, range(20, 24)))
    DeltaTable(made.path).delete("label % 4 = 1")
    ds.refresh()
    assert len(ds) == 18
    ds.restore(version)
    assert contents(ds) == made.at_first
    ds.extend(samples_of(made.jpegs, [50]))
    assert ds.sids[-1] >= 24
    assert contents(ds)[:20] == made.at_first
    assert contents(tl.dataset(made.path)) == contents(ds)


def test_restore_of_the_version_that_is_shown_commits_nothing(made):
    version = made.ds.version
    made.ds.restore(version)
    assert made.ds.version == version


def test_restore_of_a_column_apart_that_was_always_empty_commits_nothing(tmp_path):
    kind = tl.types.Tensor("int8", (None,), apart=True)
    ds = tl.dataset(tmp_path, {"n": "int8", "x": kind})
    ds.extend({"n": [1]})
    version = ds.version
    ds.restore(version)
    assert ds.version == version


def test_a_number_that_a_plain_writer_gave_is_not_given_again(tmp_path):
    """Its file alone tells that it was given, and the restore takes that out."""
    ds = tl.dataset(tmp_path, {"n": "int8"})
    ds.extend({"n": [1]})
    version = ds.version
    rows = DeltaTable(tmp_path).to_pyarrow_table()
    place = rows.schema.get_field_index("sid")
    rows = rows.set_column(place, rows.schema.field(place), pa.array([7], rows.schema.types[place]))
    write_deltalake(tmp_path, rows, mode="append")
    ds.refresh()
    assert ds.sids.tolist() == [0, 7]
    ds.restore(version)
    ds.extend({"n": [2]})
    assert ds.sids.tolist() == [0, 8]


def test_restore_over_a_change_of_columns(made):
    ds, version = made.ds, made.ds.version
    table = DeltaTable(made.path)
    table.alter.add_columns([Field("more", "integer")])
    ds.refresh()
    assert "more" in ds.schema
    ds.extend({**samples_of(made.jpegs, [20]), "more": [5]})
    ds.restore(version)
    assert list(ds.schema) == list(tl.dataset(made.path, version=version).schema)
    assert contents(ds) == made.at_first
    ds.restore(version + 2 if ds.version > version + 2 else version + 1)
    assert "more" in ds.schema


def test_a_restore_takes_a_column_out_of_a_group_again(tmp_path):
    """Also where deltalake would make the commit, as of a table with the feature of times without a zone."""
    ds = tl.dataset(tmp_path, {"g/x": "int32", "when": "timestamp_ntz"})
    ds.extend({"g/x": [1]})
    before, version = dict(ds.schema), ds.version
    ds.add_column("g/y", "int32")
    ds.restore(version)
    assert dict(ds.schema) == before == dict(tl.dataset(tmp_path).schema)
    assert [*ds] == [{"g/x": 1, "when": None}]


@pytest.mark.parametrize(
    ("one", "other"),
    [("int32", "string"), ("int32", tl.types.ClassLabel(["a"]))],
)
def test_a_restore_gives_a_column_of_no_samples_its_former_type(tmp_path, one, other):
    ds = tl.dataset(tmp_path, {"x": one, "k": other, "when": "timestamp_ntz"})
    before, version = dict(ds.schema), ds.version
    for old, new in [("x", "y"), ("k", "x"), ("y", "k")]:
        ds.rename_column(old, new)
    ds.restore(version)
    assert dict(ds.schema) == before == dict(tl.dataset(tmp_path).schema)


def test_what_a_vacuum_deleted_is_not_restored(made):
    ds, version = made.ds, made.ds.version
    DeltaTable(made.path).delete("label = 2")
    ds.refresh()
    ds.vacuum(0)
    after = ds.version
    with pytest.raises(tl.MissingDataError, match="cannot be restored"):
        ds.restore(version)
    assert tl.dataset(made.path).version == after
    with pytest.raises(tl.InvalidOptionError, match="does not exist"):
        ds.restore(999)


@pytest.mark.parametrize("how", ["created", "added"])
def test_a_column_without_values_has_none_after_a_restore(tmp_path, how):
    empty = tl.types.Tensor("int8", (None,), apart=True)
    ds = tl.dataset(tmp_path, {"n": "int8", **({"g/x": empty} if how == "created" else {})})
    ds.extend({"n": [1, 2]})
    if how == "added":
        ds.add_column("g/x", empty)
    version = ds.version
    ds["g/x"][1] = [5]
    later = ds.version
    ds.restore(version)
    assert [*ds["g/x"]] == [None, None] == [*tl.dataset(tmp_path, version=version)["g/x"]]
    now = ds.version
    ds.restore(version)
    assert ds.version == now
    ds["g/x"][0] = [6, 7]
    assert [None if x is None else x.tolist() for x in ds["g/x"]] == [[6, 7], None]
    ds.restore(later)
    assert [None if x is None else x.tolist() for x in ds["g/x"]] == [None, [5]]
    assert ds.check().ok


def test_a_version_before_a_column_whose_table_a_vacuum_deleted(tmp_path):
    ds = tl.dataset(tmp_path, {"n": "int8", "x": tl.types.Tensor("int8", (None,), apart=True)})
    ds.tag("empty")
    ds.extend({"n": [1], "x": [[1]]})
    ds.drop_column("x")
    ds.vacuum(0)
    ds.restore("empty")
    ds.extend({"n": [2], "x": [[3]]})
    assert ds["x"][0].tolist() == [3]
    assert ds.check().ok


@pytest.fixture
def marked(tmp_path):
    """Six samples of one file, of which a deletion vector takes one away in version 2."""
    ds = tl.dataset(tmp_path / "marked", {"n": "int8"})
    ds.extend({"n": [*range(6)]})
    mark(ds._storage, 4)
    ds.refresh()
    return ds


def say(ds, **protocol):
    """Commit another protocol of the table."""
    said = json.dumps({"protocol": protocol})
    ds._storage.put_whole(commit_name(ds.version + 1), said.encode())
    ds.refresh()


@pytest.mark.local_disk
@pytest.mark.parametrize("between", [lambda ds: None, lambda ds: ds.update(1, {"n": 9})])
def test_a_restore_marks_the_samples_that_were_marked(marked, between):
    """Also where their file is in the table, and only its vector is another one."""
    version, few = marked.version, [0, 1, 2, 3, 5]
    for back, sids in ((version - 1, [*range(6)]), (version, few), (version - 1, [*range(6)])):
        between(marked)
        marked.restore(back)
        assert marked.sids.tolist() == sids == tl.dataset(marked.uri).sids.tolist()
        assert marked["n"][:].tolist() == sids
        assert marked.check().ok


@pytest.mark.local_disk
def test_vectors_do_not_come_back_to_a_table_that_has_none_any_more(marked):
    version = marked.version
    marked.restore(version - 1)
    say(marked, minReaderVersion=1, minWriterVersion=2)
    before = marked.version
    with pytest.raises(
        tl.UnsupportedFeatureError, match=r"1 files with deletion vectors.*has the feature"
    ):
        marked.restore(version)
    assert tl.dataset(marked.uri).version == before


@pytest.mark.local_disk
def test_a_table_that_cannot_be_written_is_not_restored(marked):
    say(marked, minReaderVersion=1, minWriterVersion=7, writerFeatures=["rowTracking"])
    with pytest.raises(tl.UnsupportedFeatureError, match="rowTracking"):
        marked.restore(marked.version - 2)


def test_what_others_update_meanwhile_is_taken_back_too(tmp_path, monkeypatch):
    ds = tl.dataset(tmp_path, {"n": "int8"})
    ds.extend({"n": [0, 1]})
    version = ds.version
    ds.update(0, {"n": 5})
    other = tl.dataset(tmp_path)
    before_call(monkeypatch, sample_versions, "commit", lambda: other.update(1, {"n": 9}))
    ds.restore(version)
    assert other.version == version + 2
    assert ds["n"][:].tolist() == [0, 1] == tl.dataset(tmp_path)["n"][:].tolist()
    assert ds.check().ok


@pytest.fixture
def apart(tmp_path):
    """Two samples of a column apart; version 2 has another value of the first."""
    ds = tl.dataset(tmp_path / "apart", {"x": tl.types.Tensor("int8", (None,), apart=True)})
    ds.extend({"x": [[1], [2, 3]]})
    ds["x"][0] = [5]
    return ds


def test_a_column_apart_alone_is_restored(apart):
    """No file of samples comes or goes for it."""
    apart.restore(apart.version - 1)
    assert [x.tolist() for x in apart["x"]] == [[1], [2, 3]]
    assert [x.tolist() for x in tl.dataset(apart.uri)["x"]] == [[1], [2, 3]]
    assert apart.check().ok


def test_what_a_vacuum_deleted_of_a_column_apart_is_not_restored(apart):
    before = apart.version
    apart.vacuum(0)
    with pytest.raises(tl.MissingDataError, match="cannot be restored: 1 of its data files"):
        apart.restore(before - 1)
    assert tl.dataset(apart.uri).version == before


def test_what_others_change_apart_meanwhile_is_not_lost(apart, monkeypatch):
    before, other = apart.version, tl.dataset(apart.uri)
    before_call(monkeypatch, sample_versions, "commit", lambda: other["x"].__setitem__(1, [9]))
    with pytest.raises(tl.ConcurrentWriteError, match="nothing of this update is visible"):
        apart.restore(before - 1)
    assert [x.tolist() for x in tl.dataset(apart.uri)["x"]] == [[5], [9]]
