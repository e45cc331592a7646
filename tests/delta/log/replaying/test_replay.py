"""Later commits replayed on a known version: what that gives is what a version gives that is opened."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples.appending import next_sid
from tensorlake_spark.delta.log.actions import LAST_CHECKPOINT, LOG, commit_name
from tensorlake_spark.delta.log.replaying import replay
from tensorlake_spark.delta.log.replaying.live_files import ARRAYS
from tensorlake_spark.delta.log.replaying.replay import (
    Head,
    Replayed,
    Transactions,
    commit_mark,
    replay_all,
)
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture
def lake(lake):
    lake.write("x", np.arange(3))
    lake.write("y", np.arange(4))
    return lake


def commit_of(lake, version=None):
    return Path(lake.uri, commit_name(lake.version if version is None else version))


def add_of(lake):
    lines = map(json.loads, commit_of(lake).read_text().splitlines())
    return next(line["add"] for line in lines if "add" in line)


def committed_by_others(lake, *actions):
    said = [{"commitInfo": {"timestamp": 1, "operation": "OTHER"}}, *actions]
    commit_of(lake, lake.version + 1).write_text("\n".join(map(json.dumps, said)))


def newest(lake):
    """The newest version as this process has it, held against one that is opened."""
    storage = Storage(lake.uri)
    found, opened = Snapshot.newest(storage), Snapshot(storage, DeltaTable(lake.uri))
    assert found.version == opened.version
    assert sorted(found.files.path) == sorted(opened.files.path)
    return found


def test_a_file_that_is_added_again_is_there_once(lake):
    """As where Spark computes statistics anew: ``add`` of a live file, and no ``remove``."""
    committed_by_others(lake, {"add": {**add_of(lake), "dataChange": False}})
    assert isinstance(newest(lake)._opened, Replayed)
    assert lake["y"][:].tolist() == [0, 1, 2, 3]
    lake.write("z", np.arange(2))
    assert len(newest(lake).files.path) == 3


def test_a_file_that_leaves_and_comes_back_in_one_commit_is_what_deltalake_makes_of_it(lake):
    add = add_of(lake)
    committed_by_others(lake, {"remove": {"path": add["path"], "dataChange": False}}, {"add": add})
    assert not isinstance(newest(lake)._opened, Replayed)


@pytest.mark.parametrize(
    "stats",
    [
        {"minValues": {"id": 5}, "maxValues": {"id": 5}},
        {"minValues": {"seq": "a"}, "maxValues": {}},
        {"minValues": {"lo": {"d0": 0.5}}},
        {"maxValues": {"nnz": 1 << 70}},
        "nonsense",
        None,
    ],
)
def test_statistics_of_another_kind_are_left_to_deltalake(lake, stats):
    add = {**add_of(lake), "path": "part-other.parquet"}
    shutil.copy(Path(lake.uri, add_of(lake)["path"]), Path(lake.uri, add["path"]))
    add["stats"] = stats if isinstance(stats, str) else json.dumps(stats)
    committed_by_others(lake, {"add": add})
    kept = Snapshot.open(Storage(lake.uri), lake.version - 1)
    later = kept.read_on()
    assert (later is None) == (stats is not None)


def test_a_commit_that_is_not_all_there_is_no_version(lake):
    """As a copy of a table that is under way leaves it, or a writer without an atomic rename that was killed."""
    before = Snapshot.newest(Storage(lake.uri))
    whole = commit_of(lake).read_bytes()
    path = commit_of(lake, lake.version + 1)
    for part in (b"", b"\n", whole[: len(whole) // 2]):
        path.write_bytes(part)
        assert before.read_on() is None
    path.unlink()
    lake.write("z", np.arange(2))
    assert lake["z"].shape == (2,)


def test_a_commit_that_grew_after_it_was_read_is_read_again(lake):
    add = {**add_of(lake), "path": "part-other.parquet"}
    shutil.copy(Path(lake.uri, add_of(lake)["path"]), Path(lake.uri, add["path"]))
    committed_by_others(lake)
    early = Snapshot.newest(Storage(lake.uri))
    info = commit_of(lake).stat()
    with open(commit_of(lake), "a") as file:
        file.write("\n" + json.dumps({"add": add}))
    os.utime(commit_of(lake), ns=(info.st_atime_ns, info.st_mtime_ns))
    assert early.read_on() is None
    assert "part-other.parquet" in newest(lake).files.path


def test_a_table_that_is_replaced_while_it_is_read_is_opened_anew(lake, monkeypatch):
    """Else files of two tables would be one version."""
    kept = Snapshot.newest(Storage(lake.uri))
    committed_by_others(lake)
    read, known = replay._read, commit_of(lake, kept.version)

    def replaced(storage, version, *more):
        found = read(storage, version, *more)
        if version == kept.version + 1:
            known.write_bytes(known.read_bytes() + b"\n")
        return found

    monkeypatch.setattr(replay, "_read", replaced)
    assert kept.read_on() is None


def replace_in_place(lake, other):
    """Put another table over a lake, with the times and the inodes of what was there."""
    times = {path.name: path.stat() for path in Path(lake.uri, LOG).glob("*.json")}
    for path in Path(other.uri).rglob("*"):
        if path.is_file():
            target = Path(lake.uri, path.relative_to(other.uri))
            target.parent.mkdir(exist_ok=True, parents=True)
            target.write_bytes(path.read_bytes())
            if path.name in times:
                had = times[path.name]
                os.utime(target, ns=(had.st_atime_ns, had.st_mtime_ns))


def test_another_table_with_the_times_of_this_one_is_not_taken_for_it(lake, tmp_path):
    other = tl.open(tmp_path / "other")
    other.write("a", np.arange(3) + 5)
    other.write("b", np.arange(4))
    assert lake["x"][:].tolist() == [0, 1, 2]
    before = commit_of(lake).stat()
    replace_in_place(lake, other)
    after = commit_of(lake).stat()
    assert before.st_mtime_ns == after.st_mtime_ns
    assert list(lake) == ["a", "b"]
    lake.write("c", np.arange(2))
    assert list(tl.open(lake.uri)) == list(lake) == ["a", "b", "c"]
    assert lake["a"][:].tolist() == [5, 6, 7]


def test_a_backup_that_is_put_back_is_what_there_is(lake, tmp_path):
    shutil.copytree(lake.uri, tmp_path / "backup")
    for i in range(3):
        lake.write(f"later/{i}", np.zeros(2))
    shutil.rmtree(lake.uri)
    shutil.copytree(tmp_path / "backup", lake.uri)
    lake.write("z", np.arange(2))
    assert list(lake) == list(tl.open(lake.uri)) == ["x", "y", "z"]
    assert newest(lake).version == 3
    assert lake.check().ok


def test_a_gap_before_a_checkpoint_is_no_place_for_a_commit(lake):
    """A process that still has the version before the gap must not commit into it."""
    kept = Snapshot.newest(Storage(lake.uri))
    other = tl.open(lake.uri)
    for i in range(10):
        other.write(f"t/{i}", np.zeros(2))
    assert Path(lake.uri, LAST_CHECKPOINT).exists()
    for version in range(kept.version + 1, 9):
        commit_of(lake, version).unlink()
    assert kept.read_on() is None


def test_a_property_a_column_and_a_vacuum_by_others_between_our_commits(lake):
    table = DeltaTable(lake.uri)
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(tl.UnsupportedFeatureError, match="takes appends only"):
        lake.delete("x")
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    lake.delete("x")
    lake.optimize()
    table = DeltaTable(lake.uri)
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.create_checkpoint()
    lake.write("z", np.arange(2))
    assert list(lake) == ["y", "z"]
    table = DeltaTable(lake.uri)
    table.restore(lake.version - 1)
    assert newest(lake).version == lake.version
    assert commit_mark(Storage(lake.uri), lake.version) is not None


def said(snapshot):
    """What a version says of its table and its files, these in the order of their names."""
    files = snapshot.files
    order = np.argsort(files.path)
    of_tensors = {
        "first_seq": snapshot.first_seq[order].tolist(),
        "statistics": [snapshot.statistics(place) for place in order.tolist()],
    } if snapshot.kind == TENSORS else {}  # fmt: skip
    return of_tensors | {
        "version": snapshot.version,
        "id": snapshot.table_id,
        "protocol": (snapshot.reader_features, snapshot.writer_version, snapshot.writer_features),
        "properties": dict(snapshot.configuration),
        "schema": snapshot.schema,
        "path": sorted(files.path),
        "actions": snapshot.file_actions.take(order).to_pylist(),
        "transactions": snapshot.transactions(["tensor/x", "dataset/sid"]),
        **{name: getattr(files, name)[order].tolist() for name in ARRAYS},
    }


def test_a_short_log_says_what_deltalake_reads_in_it(lake):
    storage = Storage(lake.uri)
    for change in (
        lambda: lake.write("z", np.arange(24).reshape(2, 3, 4)),
        lambda: lake.write("x", np.arange(3), mode="append"),
        lambda: lake.delete("y"),
        lambda: lake.optimize(),
        lambda: committed_by_others(lake, {"add": {**add_of(lake), "dataChange": False}}),
    ):
        change()
        found = Snapshot.open(storage)
        assert isinstance(found._opened, Replayed)
        assert isinstance(found._opened.table, Head)
        assert said(found) == said(Snapshot(storage, DeltaTable(lake.uri)))
        for version in range(lake.version + 1):
            found = Snapshot.open(storage, version)
            assert isinstance(found._opened, Replayed)
            assert said(found) == said(Snapshot(storage, DeltaTable(lake.uri, version)))
    assert lake["x"].shape == (6,)
    for version in (lake.version + 1, -1):
        assert replay_all(storage, version) is None
        with pytest.raises(tl.InvalidOptionError):
            Snapshot.open(storage, version)


def first_said(lake, kind, **more):
    """Change an action of the first commit."""
    path = commit_of(lake, 0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if kind in line:
            line[kind] |= more
    path.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    "change",
    [
        lambda lake: DeltaTable(lake.uri).create_checkpoint(),
        lambda lake: DeltaTable(lake.uri).alter.set_table_properties({"delta.appendOnly": "true"}),
        lambda lake: DeltaTable(lake.uri).alter.add_feature(
            [TableFeatures.DeletionVectors], allow_protocol_versions_increase=True
        ),
        lambda lake: first_said(lake, "protocol", minReaderVersion=3, readerFeatures=["v2Checkpoint"], minWriterVersion=7, writerFeatures=["v2Checkpoint"]),
        lambda lake: first_said(lake, "metaData", partitionColumns=["id"]),
        lambda lake: commit_of(lake, 1).unlink(),
        lambda lake: commit_of(lake).write_bytes(commit_of(lake).read_bytes()[:-9]),
        lambda lake: commit_of(lake).write_bytes(b"\n"),
        lambda lake: [lake.write(f"t/{k}", np.zeros(2)) for k in range(10)],
        lambda lake: committed_by_others(lake, *({"add": {**add_of(lake), "path": f"part-{k}.parquet"}} for k in range(250))),
    ],
    ids=["checkpoint", "property", "feature", "v2", "partitions", "gap", "half", "empty", "long", "large"],
)  # fmt: skip
def test_any_other_log_is_left_to_deltalake(lake, change):
    change(lake)
    assert replay_all(Storage(lake.uri)) is None


@pytest.fixture
def ds(tmp_path):
    """A dataset whose columns have the names of a lake's, and other types."""
    found = tl.dataset(tmp_path / "ds", {"size": "int32", "id": "float64", "seq": "string"})
    found.extend({"size": [1, 2, 3], "id": [0.5, None, 2.5], "seq": ["a", "b", None]})
    return found


def test_a_short_log_of_a_dataset_says_what_deltalake_reads_in_it(ds):
    storage = Storage(ds.uri)
    rows = DeltaTable(ds.uri).to_pyarrow_table().slice(0, 1)
    added = [rows.set_column(0, rows.schema.field(0), pa.array([sid])) for sid in (70, 71)]
    for change in (
        lambda: ds.append({"size": 4}),
        lambda: ds.update([1], {"size": 20}),
        lambda: ds.delete([0]),
        lambda: write_deltalake(ds.uri, added[0], mode="append"),
        lambda: ds.optimize(),
        lambda: write_deltalake(ds.uri, added[1], mode="append"),
        lambda: committed_by_others(ds, {"add": {**add_of(ds), "dataChange": False}}),
    ):
        change()
        found, opened = Snapshot.open(storage, kind=SAMPLES), DeltaTable(ds.uri)
        assert isinstance(found._opened.table, Head)
        assert said(found) == said(Snapshot(storage, opened, SAMPLES))
        sids = sorted(opened.to_pyarrow_table()["sid"].to_pylist())
        assert StoredSamples(found).sids.tolist() == sids
        assert next_sid(found) == max(sids) + 1
        ds.refresh()
    assert [float(x) for x in ds["id"][-2:]] == [0.5, 0.5]


def test_commits_of_a_dataset_are_replayed_until_one_does_more(ds):
    other, storage = tl.dataset(ds.uri), Storage(ds.uri)
    for size in range(3):
        ds.append({"size": size})
        other.append({"size": -size})
    assert isinstance(Snapshot.newest(storage, SAMPLES)._opened, Replayed)
    ds.refresh()
    assert ds["size"][3:].tolist() == [0, 0, 1, -1, 2, -2]
    other.add_column("more", "int64")
    found = Snapshot.newest(storage, SAMPLES)
    assert not isinstance(found._opened, Replayed)
    ds.refresh()
    ds.append({"size": 9, "more": 8})
    assert ds["more"][-2:] == [None, 8]
    assert ds.sids.tolist() == [*range(10)]


@pytest.mark.parametrize("stats", [{"minValues": {"sid": "a"}}, {"maxValues": {"sid": 0.5}}])
def test_numbers_of_another_type_are_left_to_deltalake(ds, stats):
    kept = Snapshot.newest(Storage(ds.uri), SAMPLES)
    add = {**add_of(ds), "path": "part-other.parquet", "stats": json.dumps(stats)}
    committed_by_others(ds, {"add": add})
    assert kept.read_on() is None
    assert replay_all(Storage(ds.uri)) is None


def test_a_dataset_with_deletion_vectors_is_left_to_deltalake(ds):
    kept = Snapshot.newest(Storage(ds.uri), SAMPLES)
    DeltaTable(ds.uri).alter.add_feature(
        [TableFeatures.DeletionVectors], allow_protocol_versions_increase=True
    )
    assert kept.read_on() is None
    assert Snapshot.newest(Storage(ds.uri), SAMPLES).read_on() is None


def test_a_table_keeps_its_name_and_description_with_other_columns(tmp_path):
    """A commit with former columns says anew what the log says of the table; a replayed log had not all of it."""
    ds = tl.dataset(tmp_path, {"size": "int32", "seq": "string"})
    first_said(ds, "metaData", name="sizes", description="of shoes", createdTime=5)
    found = Snapshot.open(Storage(ds.uri), kind=SAMPLES)
    opened = Snapshot(found.storage, DeltaTable(ds.uri), SAMPLES)
    schema = DeltaTable(ds.uri).schema()
    assert isinstance(found._opened, Replayed)
    assert found.described(schema) == opened.described(schema)
    assert found.described(schema)["metaData"]["name"] == "sizes"


def test_what_is_no_table_is_left_to_deltalake(tmp_path):
    assert replay_all(Storage(str(tmp_path))) is None
    Path(tmp_path, LOG).mkdir()
    assert replay_all(Storage(str(tmp_path))) is None
    Path(tmp_path, commit_name(0)).write_text('{"protocol": [], "metaData": null}')
    assert replay_all(Storage(str(tmp_path))) is None


APPS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 99), max_size=3)


@given(APPS, st.lists(st.tuples(st.integers(0, 9), APPS), max_size=12))
def test_transactions_of_a_version_are_those_of_the_one_before_and_its_own(first, steps):
    versions = [(Transactions(first), first)]
    for place, more in steps:
        known, said = versions[place % len(versions)]
        versions.append((known.followed(more), said | more))
    for known, said in versions:
        assert {app: known.get(app) for app in "abcdefgh"} == {
            app: said.get(app) for app in "abcdefgh"
        }
