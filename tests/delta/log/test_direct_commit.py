"""Commits on a local disk: as deltalake makes them, and read on from rather than read anew."""

import errno
import itertools
import json
import os
import shutil
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, TableFeatures
from deltalake.exceptions import CommitFailedError

import tensorlake_spark as tl
from tensorlake_spark.delta.log import direct_commit, properties
from tensorlake_spark.delta.log.actions import LOG, added_removed, commit_name
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.replaying import live_files
from tensorlake_spark.delta.log.replaying.replay import Replayed
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store import s3_objects
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


def lines(lake, version=None):
    version = lake.version if version is None else version
    text = Path(lake.uri, commit_name(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def without(action, *names):
    return {k: v for k, v in action.items() if k not in names and v is not None}


def same(a, b):
    """Whether two snapshots say the same of their files."""
    first, second = (np.argsort(np.array(s.files.path)) for s in (a, b))
    assert (a.version, a.schema) == (b.version, b.schema)
    assert [a.files.path[i] for i in first] == [b.files.path[i] for i in second]
    for name in live_files.ARRAYS:
        got, want = getattr(a.files, name)[first], getattr(b.files, name)[second]
        np.testing.assert_array_equal(got, want, err_msg=name)
    np.testing.assert_array_equal(a.first_seq[first], b.first_seq[second])
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        assert a.statistics(i) == b.statistics(j)
    return True


@pytest.fixture
def lake(lake):
    lake.write("x", np.arange(3))
    lake.write("y", np.arange(4), mode="overwrite")
    return lake


def test_it_says_what_deltalake_says(lake, monkeypatch):
    lake.write("x", np.arange(4), mode="overwrite")
    ours = lines(lake)
    monkeypatch.setattr(direct_commit, "can_commit", lambda *_, **__: False)
    lake.write("x", np.arange(4), mode="overwrite")
    theirs = lines(lake)
    assert [list(a) for a in ours] == [list(a) for a in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        ((kind, said),) = mine.items()
        of_each = {
            "commitInfo": ("timestamp", "engineInfo", "clientVersion", "tensorlake.commit"),
            "add": ("path", "modificationTime"),
            "remove": ("path", "deletionTimestamp", "size"),
            "txn": ("version", "lastUpdated"),
        }[kind]
        assert without(said, *of_each) == without(other[kind], *of_each)


@pytest.mark.parametrize("is_direct", [True, False])
def test_a_file_that_leaves_has_its_size_and_partitions(lake, monkeypatch, is_direct):
    """Without these, Spark refuses to read a change data feed of the version."""
    if not is_direct:
        monkeypatch.setattr(direct_commit, "can_commit", lambda *_, **__: False)
    sizes = {file.name: file.stat().st_size for file in Path(lake.uri).glob("*.parquet")}
    lake.write("x", np.arange(4), mode="overwrite")
    (gone,) = (line["remove"] for line in lines(lake) if "remove" in line)
    assert gone["extendedFileMetadata"] is True
    assert (gone["size"], gone["partitionValues"]) == (sizes[gone["path"]], {})


def test_a_version_that_is_there_is_never_replaced(lake):
    before = Path(lake.uri, commit_name(1)).read_bytes()
    with pytest.raises(CommitFailedError, match=r"version 1 of .* is there already"):
        direct_commit.put_commit(Storage(lake.uri), 1, [{"commitInfo": {}}])
    assert Path(lake.uri, commit_name(1)).read_bytes() == before
    assert not list(Path(lake.uri, LOG).glob("*.tmp"))


def test_without_hard_links_deltalake_commits(lake, monkeypatch):
    def none(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    lake.write("z", np.arange(5))
    assert lines(lake)[0]["commitInfo"]["engineInfo"].startswith("delta-rs")
    assert not list(Path(lake.uri, LOG).glob("*.tmp"))
    assert lake["z"][:].tolist() == [0, 1, 2, 3, 4]


def test_a_disk_that_refuses_is_said(lake, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(tl.StorageError, match="No space left"):
        lake.write("z", np.arange(5))
    monkeypatch.undo()
    assert list(lake) == ["x", "y"]


@pytest.mark.parametrize("who", ["boto3", "no boto3", "another way", "no such request"])
def test_on_s3_boto3_commits_where_it_can(s3, road, monkeypatch, who):
    """Also the first commit; else deltalake does."""
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
    if who == "no boto3":
        monkeypatch.setattr(s3_objects, "has_client", lambda: False)
    if who == "another way":
        options["AWS_CONDITIONAL_PUT"] = "etag"
    lake = tl.open(f"s3://bucket/{uuid.uuid4()}/lake", storage_options=options)
    if who == "no such request":
        # Of the first of two requests for the same object: the other is deltalake's.
        road.fault("unknown", f"^PUT .*{commit_name(0)}", times=1)
    lake.write("x", np.arange(3))
    if who == "no such request":
        road.fault("unknown", f"^PUT .*{commit_name(2)}", times=1)
    lake.write("y", np.arange(2))
    ours = lake.history()["engine"].str.startswith("tensorlake-spark").tolist()
    assert ours == {"boto3": [True] * 3, "no such request": [False, True, False]}.get(
        who, [False] * 3
    )
    assert [lake[name][:].tolist() for name in ("x", "y")] == [[0, 1, 2], [0, 1]]


def test_a_table_with_features_is_left_to_deltalake(lake):
    found = Snapshot.open(Storage(lake.uri))
    assert direct_commit.can_commit(found, ["part-1.parquet"])
    assert not direct_commit.can_commit(found, ["a%20b.parquet"])
    DeltaTable(lake.uri).alter.add_feature(
        [TableFeatures.AppendOnly], allow_protocol_versions_increase=True
    )
    assert not direct_commit.can_commit(Snapshot.open(Storage(lake.uri)), ["part-1.parquet"])
    lake.write("z", np.arange(5))
    assert lines(lake)[0]["commitInfo"]["engineInfo"].startswith("delta-rs")


def test_the_log_is_read_on(lake):
    storage = Storage(lake.uri)
    other = tl.open(lake.uri)
    for i in range(23):
        writer = (lake, other)[i % 2]
        writer.write(f"t/{i % 7}", np.full((2, 2), i), mode="overwrite" if i % 3 else "append")
        if i == 11:
            lake.delete("x")
        read_on = Snapshot.newest(storage)
        assert isinstance(read_on._opened, Replayed)
        fresh = Snapshot(storage, DeltaTable(lake.uri))
        assert same(read_on, fresh)
        for name in (*(f"t/{k}" for k in range(7)), "x", "nobody"):
            assert read_on.transaction(app_of(name)) == fresh.transaction(app_of(name))
    assert Snapshot.newest(storage) is Snapshot.newest(storage)


def test_what_others_commit_is_seen(lake):
    storage = Storage(lake.uri)
    assert isinstance(Snapshot.newest(storage)._opened, Replayed)
    DeltaTable(lake.uri).delete("id = 'y' and nnz > 0")
    assert same(Snapshot.newest(storage), Snapshot(storage, DeltaTable(lake.uri)))
    DeltaTable(lake.uri).alter.set_table_properties({"delta.checkpointInterval": "3"})
    newest = Snapshot.newest(storage)
    assert not isinstance(newest._opened, Replayed), "properties changed: it was opened"
    assert newest.configuration["delta.checkpointInterval"] == "3"
    lake.write("z", np.arange(5))
    assert same(Snapshot.newest(storage), Snapshot.open(storage))


def test_a_table_that_was_made_anew_is_not_read_on(lake):
    storage = Storage(lake.uri)
    assert Snapshot.newest(storage).version == lake.version == 2
    shutil.rmtree(lake.uri)
    other = tl.open(lake.uri)
    for i in range(4):
        other.write(f"n/{i}", np.zeros(2))
    assert list(tl.open(lake.uri)) == [f"n/{i}" for i in range(4)]
    assert list(lake) == [f"n/{i}" for i in range(4)]


@pytest.mark.parametrize(
    "line",
    [
        '{"metaData":{}}',
        '{"protocol":{}}',
        '{"add":{"path":"a.parquet","size":1,"deletionVector":{"storageType":"u"}}}',
        '{"add":{"path":"a%20b.parquet","size":1}}',
        '{"add":{"path":"a.parquet"}}',
        '{"remove":{}}',
        '{"domainMetadata":{}}',
        "nonsense",
        "[1]",
    ],
)
def test_a_commit_that_does_more_is_opened(line):
    assert added_removed(line.encode()) is None


def test_what_a_commit_says():
    found = added_removed(
        b'{"commitInfo":{}}\n\n{"add":{"path":"a.parquet","size":3}}\n'
        b'{"remove":{"path":"b.parquet"}}\n{"txn":{"appId":"x","version":2}}'
    )
    assert [a["path"] for a in found.added] == ["a.parquet"]
    assert (found.removed, found.transactions) == ({"b.parquet"}, {"x": 2})


def checkpoints(lake):
    return sorted(int(p.name[:20]) for p in Path(lake.uri, LOG).glob("*.checkpoint.parquet"))


def test_a_checkpoint_is_made_although_another_writer_came_right_after(lake, monkeypatch):
    put = direct_commit.put_commit

    def followed(storage, version, actions):
        done = put(storage, version, actions)
        if version == 9:
            tl.open(lake.uri).write("z", np.arange(2))
        return done

    monkeypatch.setattr(direct_commit, "put_commit", followed)
    while lake.version < 10:
        lake.write("x", np.arange(3), mode="overwrite")
    assert checkpoints(lake) == [9]
    assert list(tl.open(lake.uri)) == ["x", "y", "z"]


def test_checkpoints_are_as_far_apart_as_the_table_is_large(lake, monkeypatch):
    for i in range(22):
        lake.write(f"t/{i}", np.zeros(2))
    assert checkpoints(lake) == [9, 19], "as delta-spark has it"
    monkeypatch.setattr(direct_commit, "commits_between", lambda files, share: 40)
    for i in range(22, 40):
        lake.write(f"t/{i}", np.zeros(2))
    assert checkpoints(lake) == [9, 19, 39]
    assert list(tl.open(lake.uri)) == sorted(["x", "y", *(f"t/{i}" for i in range(40))])


def test_the_log_of_a_large_table_is_cleaned_less_often(lake, monkeypatch):
    cleaned = []
    monkeypatch.setattr(
        DeltaTable, "cleanup_metadata", lambda table: cleaned.append(table.version())
    )
    monkeypatch.setattr(direct_commit, "commits_between", lambda files, share: 20)
    monkeypatch.setattr(direct_commit, "_CLEANUPS", 2)
    for i in range(45):
        lake.write(f"t/{i}", np.zeros(2))
    assert checkpoints(lake)[-2:] == [19, 39]
    assert cleaned == [39]


def test_an_interval_that_a_user_set_is_kept(lake, monkeypatch):
    monkeypatch.setattr(direct_commit, "commits_between", lambda files, share: 1000)
    DeltaTable(lake.uri).alter.set_table_properties({"delta.checkpointInterval": "4"})
    for i in range(10):
        lake.write(f"t/{i}", np.zeros(2))
    assert checkpoints(lake) == [3, 7, 11]


def test_the_time_between_them_grows_in_steps():
    pace = [properties.commits_between(n) for n in range(0, 100_000, 500)]
    assert pace[0] == properties.CHECKPOINT_INTERVAL
    assert pace == sorted(pace)
    assert all(10 <= p <= max(10, n // 100) for p, n in zip(pace, range(0, 100_000, 500)))
    assert all(later % p == 0 for p, later in itertools.pairwise(pace))


def test_old_commits_are_dropped_as_the_table_says(lake):
    table = DeltaTable(lake.uri)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    for i in range(20):
        lake.write(f"t/{i}", np.zeros(2))
    left = sorted(int(p.stem) for p in Path(lake.uri, LOG).glob("0*.json"))
    assert left[0] > 0
    assert len(list(tl.open(lake.uri))) == 22


SID = pa.field("sid", pa.int64(), nullable=False)
WALL = pa.timestamp("us")
INSIDE = {
    "a column": WALL,
    "a struct": pa.struct([("n", pa.int32()), ("when", WALL)]),
    "a list": pa.list_(WALL),
    "a list of structs": pa.list_(pa.struct([("when", WALL)])),
    "a map": pa.map_(pa.string(), WALL),
}


def with_column(kind):
    return Schema.from_arrow(pa.schema([SID, pa.field("x", kind)]))


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path / "t"))


@pytest.mark.parametrize("where", INSIDE)
def test_times_without_a_zone_ask_for_a_feature(storage, where):
    create_samples_table(storage, pa.schema([SID]))
    asked = direct_commit.asked_protocol(
        Snapshot.newest(storage, "samples"), with_column(INSIDE[where])
    )
    assert asked == {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["appendOnly", "invariants", "timestampNtz"],
    }  # fmt: skip


def test_other_columns_ask_for_nothing(storage):
    create_samples_table(storage, pa.schema([SID]))
    named = Schema.from_arrow(
        pa.schema([SID, pa.field("timestamp_ntz", pa.timestamp("us", "UTC"))])
    )
    assert direct_commit.asked_protocol(Snapshot.newest(storage, "samples"), named) is None


def test_a_table_that_has_the_feature_is_not_asked_again(storage):
    create_samples_table(storage, pa.schema([SID, pa.field("x", WALL)]))
    assert (
        direct_commit.asked_protocol(Snapshot.newest(storage, "samples"), with_column(WALL)) is None
    )


def test_features_that_a_version_stands_for_stay(storage):
    create_samples_table(storage, pa.schema([SID]), {"delta.enableChangeDataFeed": "true"})
    table = DeltaTable(storage.uri)
    assert table.protocol().min_writer_version == 4
    asked = direct_commit.asked_protocol(Snapshot(storage, table, "samples"), with_column(WALL))
    assert asked is not None
    assert asked["writerFeatures"] == [
        "appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants", "timestampNtz",
    ]  # fmt: skip
