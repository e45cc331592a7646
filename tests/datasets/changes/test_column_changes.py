"""Columns added, dropped and renamed: one commit each, on a disk and in an object store, and what others see."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.delta.log import direct_commit
from tensorlake_spark.delta.log.actions import commit_name

COLUMNS = {"size": "int32", "training/name": "string"}


def filled(place):
    ds = tl.dataset(place, COLUMNS)
    for start in (0, 5):
        names = [f"n{n}" for n in range(start, start + 5)]
        ds.extend({"size": np.arange(start, start + 5), "training/name": names})
    return ds


@pytest.fixture
def ds(tmp_path):
    return filled(tmp_path / "ds")


def lines(ds):
    text = Path(ds.uri, commit_name(ds.version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.both_stores
@pytest.mark.parametrize("filled_in", [False, True])
@pytest.mark.parametrize("name", ["wall", "training/wall"])
def test_a_time_without_a_zone_may_come_later(place, name, filled_in):
    """Delta has a feature for it: a table whose protocol does not name it can no longer be read."""
    ds = filled(place)
    times = [dt.datetime(2020, 1, day) for day in range(1, 11)]
    ds.add_column(name, "timestamp_ntz", times if filled_in else None)
    again = tl.dataset(place, create=False)
    assert again[name][:].tolist() == times if filled_in else again[name][:] == [None] * 10
    again.extend({"size": [10], name: times[:1]})
    again.delete([0])
    assert tl.dataset(place, create=False)[name][[9]].tolist() == times[:1]
    assert again.check().ok
    assert "invariants" in again.stored.snapshot.writer_features, "or Spark does not open it"


@pytest.mark.parametrize("filled_in", [False, True])
def test_deltalake_commits_a_time_without_a_zone_with_what_the_version_stood_for(
    ds, monkeypatch, filled_in
):
    monkeypatch.setattr(direct_commit, "can_commit", lambda *_: False)
    times = [dt.datetime(2020, 1, day) for day in range(1, 11)]
    ds.add_column("wall", "timestamp_ntz", times if filled_in else None)
    assert ds["wall"][:].tolist() == times if filled_in else ds["wall"][:] == [None] * 10
    protocol = DeltaTable(ds.uri).protocol()
    assert {*protocol.writer_features} == {"appendOnly", "invariants", "timestampNtz"}
    assert protocol.reader_features == ["timestampNtz"]


@pytest.mark.both_stores
def test_columns_come_and_go(place):
    ds = filled(place)
    ds.add_column("plain", "int64")
    ds.add_column("training/score", "float32", [n / 2 for n in range(10)])
    ds.add_column(
        "picture", tl.types.Image("png"), [np.full((2, 2, 3), n, np.uint8) for n in range(10)]
    )
    ds.rename_column("size", "length")
    ds.rename_column("training/name", "name")
    ds.drop_column("training/score")
    assert ds.version == 8, "one commit each"
    ds.append({"length": 10, "name": "n10"})
    for one in (ds, tl.dataset(place)):
        assert [*one.schema] == ["length", "name", "plain", "picture"]
        assert one["length"][:].tolist() == [*range(11)]
        assert one["name"][:] == [f"n{n}" for n in range(11)]
        assert one["plain"][:] == [None] * 11
        assert [None if x is None else x[0, 0, 0] for x in one["picture"][:]] == [*range(10), None]
        assert one.sids.tolist() == [*range(11)]
    old = tl.dataset(place, version=4)
    assert [*old.schema] == ["size", "training/name", "training/score", "plain"]
    assert old["training/score"][:].tolist() == [n / 2 for n in range(10)]


def test_without_values_only_the_log_is_written(ds):
    before = {file.path for file in ds.stored.files}
    ds.add_column("training/note", tl.types.Text())
    assert {file.path for file in ds.stored.files} == before
    assert {key for line in lines(ds) for key in line} == {"commitInfo", "metaData"}
    ds["training/note"][3] = "three"
    assert ds["training/note"][:] == [None, None, None, "three", *[None] * 6]
    assert ds.positions_where("training.note IS NOT NULL").tolist() == [3]


def test_one_value_for_all(ds):
    ds.add_column("split", tl.types.ClassLabel(["train", "test"]), "test")
    assert ds["split"][:].tolist() == [1] * 10
    assert ds.update("size < 5", {"split": "train"}) == 5


@pytest.mark.parametrize(
    "form", [list, np.array, pa.array, lambda x: pd.Series(x, index=[*x][::-1])]
)
def test_values_in_many_forms_are_those_of_their_samples(ds, form):
    other = tl.dataset(ds.uri)
    ds.delete([2, 6])  # positions are not sids, and files are others
    ds.add_column("a", "int64", form(range(8)))
    assert ds["a"][:].tolist() == [*range(8)]
    with pytest.raises(tl.ConcurrentWriteError, match="column 'a'"):
        other.add_column("a", "int64", form(range(10)))
    other.add_column("b", "int64", form(range(10)))
    assert other["b"][:].tolist() == [0, 1, 3, 4, 5, 7, 8, 9]


def test_what_was_dropped_does_not_come_back(ds):
    ds.drop_column("size")
    ds.add_column("size", "int32")
    assert ds["size"][:] == [None] * 10
    ds.rename_column("size", "other")
    ds.add_column("size", "int32")
    assert ds["other"][:] == [None] * 10


def test_properties_of_payloads_grow_with_the_columns(ds):
    name = "parquet.enable.dictionary#picture.data"
    assert name not in DeltaTable(ds.uri).metadata().configuration
    ds.add_column("picture", tl.types.Image("png"))
    assert DeltaTable(ds.uri).metadata().configuration[name] == "false"
    ds.rename_column("picture", "photo")
    found = DeltaTable(ds.uri).metadata().configuration
    assert name not in found
    assert found["parquet.enable.dictionary#photo.data"] == "false"
    assert found["tensorlake.dataset"] == "1"


def test_the_last_column_stays(ds):
    ds.drop_column("training/name")
    with pytest.raises(tl.InvalidOptionError, match="'size' is the only column"):
        ds.drop_column("size")


def test_an_append_beside_a_rename_is_not_lost(ds):
    other = tl.dataset(ds.uri)
    ds.rename_column("size", "length")
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed column 'size'"):
        other.append({"size": 5})
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed column 'size'"):
        other.update(1, {"size": 5})
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed column 'size'"):
        other.drop_column("size")
    other.refresh()
    other.append({"length": 5})
    assert len(other) == 11
    files = {path.name for path in Path(ds.uri).glob("*.parquet")}
    named = {p for v in range(ds.version + 2) for p in DeltaTable(ds.uri, v).to_pyarrow_dataset().files
             for p in [Path(p).name]}  # fmt: skip
    assert files == named, "nothing is left of what failed"


def test_an_append_beside_a_new_column_lands(ds):
    other = tl.dataset(ds.uri)
    ds.add_column("a", "int32", 5)
    other.append({"size": 10})
    assert other["a"][:] == [5] * 10 + [None]
    third = tl.dataset(ds.uri)
    other.append({"size": 11})
    third.add_column("b", "int32", [*range(11)])
    assert third["b"][:] == [*range(11), None], "a sample that came since has no value"


def test_a_column_of_others_stays_as_it_is(ds):
    table = pa.table({"sid": [10], "size": pa.array([10], pa.int32()), "note": ["theirs"]})
    write_deltalake(ds.uri, table, mode="append", schema_mode="merge")
    ds.refresh()
    before = {f.name: f for f in DeltaTable(ds.uri).schema().fields}
    ds.rename_column("size", "length")
    after = {f.name: f for f in DeltaTable(ds.uri).schema().fields}
    assert after["note"] == before["note"]
    assert ds["note"][:] == [None] * 10 + ["theirs"]
    assert ds["length"][:].tolist() == [*range(11)]


def test_a_dataset_without_a_table_gets_its_first_column(tmp_path):
    ds = tl.dataset(tmp_path / "new")
    with pytest.raises(tl.InvalidOptionError, match="has no samples"):
        ds.add_column("a", "int32", [1])
    ds.add_column("a", "int32")
    ds.append({"a": 5})
    assert ds["a"][:].tolist() == [5]


def test_samples_of_files_with_and_without_the_column_are_read_together(ds, jpegs):
    """Whether bytes are views does not depend on the file."""
    ds.add_column("picture", tl.types.Image("jpeg"))
    ds.append({"size": 10, "picture": jpegs[0]})
    assert [x is None for x in ds["picture"][:]] == [True] * 10 + [False]
    assert ds["picture"].encoded(10) == jpegs[0]
    assert ds["picture"].encoded(0) is None
