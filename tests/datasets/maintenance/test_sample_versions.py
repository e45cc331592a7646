"""A dataset becomes what it was at a version."""

import pytest
from deltalake import DeltaTable, Field
from whole_datasets import contents, samples_of

import tensorlake_spark as tl


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
