"""Versions by the commits after a known one, here and on a real server: those that opening the table anew gives."""

import uuid

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import LOG
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.replaying import replay
from tensorlake_spark.delta.log.replaying.replay import Replayed
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture(params=["here", "s3"])
def storage(request, tmp_path):
    if request.param == "here":
        return Storage(str(tmp_path / "lake"))
    options = request.getfixturevalue("s3").options
    return Storage(f"s3://bucket/{uuid.uuid4()}/lake", options)


@pytest.fixture
def lake(storage):
    lake = tl.open(storage.uri, storage_options=dict(storage.options))
    lake.write("x", np.arange(6))
    return lake


def by_path(snapshot):
    return snapshot.file_actions.select(["path", "size_bytes", "num_records"]).sort_by("path")


def same(found, anew):
    """Whether two snapshots say the same of the table."""
    names = [app_of(name) for name in ("x", "y", "none")]
    return (
        found.version == anew.version
        and sorted(found.files.path) == sorted(anew.files.path)
        and found.files.size.sum() == anew.files.size.sum()
        and found.transactions(names) == anew.transactions(names)
        and by_path(found).equals(by_path(anew))
    )


def test_later_commits_are_replayed(storage, lake):
    """Of one, and of more than are asked for at once."""
    first = Snapshot.open(storage)
    changes = [
        lambda: lake.write("y", np.eye(3)),
        lambda: lake.write("x", np.arange(3), mode="append"),
        lambda: lake["x"].__setitem__(2, 7),
        lambda: lake.write("x", np.arange(2), mode="overwrite"),
        lambda: lake.optimize(),
        lambda: lake.delete("y"),
    ]
    for change in changes:
        change()
        found = first.read_on()
        assert isinstance(found._opened, Replayed)
        assert same(found, Snapshot.open(storage))
    for _ in range(5):
        lake.write("x", np.arange(1), mode="append")
        assert same(first.read_on(), Snapshot.open(storage))
    assert first.read_on().read_on().version == lake.version


def test_the_newest_version_is_itself(storage, lake):
    found = Snapshot.open(storage)
    assert found.read_on() is found
    assert Snapshot.newest(storage).version == 1


def test_what_is_more_than_files_and_numbers_is_opened(storage, lake):
    first = Snapshot.open(storage)
    options = dict(storage.options) or None
    DeltaTable(storage.uri, storage_options=options).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 3 days"}
    )
    assert first.read_on() is None
    now = Snapshot.newest(storage)
    assert (now.version, now.retention.days) == (2, 3)
    assert now.read_on() is now


def test_a_table_that_was_made_anew_is_opened(storage, lake):
    first = Snapshot.newest(storage)
    filesystem, _ = storage.place
    for info in storage.files_in("", recursive=True):
        filesystem.delete_file(info.path)
    if storage.is_local:
        filesystem.delete_dir(f"{storage.uri}/{LOG}")
    again = tl.open(storage.uri, storage_options=dict(storage.options))
    for _ in range(3):
        again.write("z", np.ones(4), mode="append")
    assert first.read_on() is None
    assert same(Snapshot.newest(storage), Snapshot.open(storage))
    assert list(again) == ["z"]


def test_a_version_that_the_log_has_no_more_is_not_read_on_from(storage, lake):
    first = Snapshot.open(storage)
    lake.write("y", np.eye(3))
    options = dict(storage.options) or None
    DeltaTable(storage.uri, storage_options=options).create_checkpoint()
    filesystem, base = storage.place
    for version in range(2):
        filesystem.delete_file(f"{base}/{LOG}/{version:020}.json")
    assert first.read_on() is None
    assert same(Snapshot.newest(storage), Snapshot.open(storage))


@pytest.mark.parametrize("bound", ["_MOST", "_MOST_BYTES"])
def test_many_commits_are_not_replayed(storage, lake, monkeypatch, bound):
    first = Snapshot.open(storage)
    for _ in range(4):
        lake.write("x", np.arange(1), mode="append")
    assert first.read_on().version == 5
    monkeypatch.setattr(replay, bound, 3)
    assert first.read_on() is None


def test_a_table_of_another_kind_is_refused(storage, lake):
    Snapshot.newest(storage)
    with pytest.raises(tl.FormatError):
        Snapshot.newest(storage, SAMPLES)


def test_statistics_of_others_are_those_that_deltalake_reads(storage):
    """Of a table of samples, with columns of which the files say bounds, and one that others added to."""
    options = dict(storage.options) or None
    ds = tl.dataset(storage.uri, {"n": "int32", "s": "string"}, storage_options=options)
    ds.extend({"n": [3, 1], "s": ["b", "a"]})
    rows = pa.table({"sid": pa.array([7, 8]), "n": pa.array([5, 9], pa.int32()), "s": ["c", "d"]})
    first = Snapshot.open(storage, kind=SAMPLES)
    write_deltalake(storage.uri, rows, mode="append", storage_options=options)
    ds.extend({"n": [4], "s": [None]})
    found, anew = first.read_on(), Snapshot.open(storage, kind=SAMPLES)
    assert isinstance(found._opened, Replayed)
    assert sorted(found.file_actions.column_names) == sorted(anew.file_actions.column_names)
    names = anew.file_actions.column_names
    assert (
        found.file_actions.select(names).sort_by("path").equals(anew.file_actions.sort_by("path"))
    )
    assert len(ds) == 5
    assert ds.positions_where("n > 4").tolist() == [int(k) for k in np.flatnonzero(ds["n"][:] > 4)]
