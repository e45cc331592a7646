"""Restore: a tensor becomes what it was, beside other writers, and what retention takes of that."""

import multiprocessing
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts.testing.laws import bits


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 50, (8, 6, 4)).astype("f4")


def files(lake):
    return set(Snapshot.open(Storage(lake.uri)).files.path)


def make_shared(lake, arrays, tensor_id="x"):
    """Write tensors of a slab each, and bring all of them into one file."""
    for name, array in arrays.items():
        lake.write(name, array, block_shape=(1, *array.shape[1:]), layout="ftsf")
    lake.optimize()
    assert len(files(lake)) == 1
    return lake.version


def set_property(lake, name, value):
    table = Snapshot.open(Storage(lake.uri)).table
    table.alter.set_table_properties({name: value})


@pytest.mark.local_disk
def test_a_restore_adds_old_files_as_they_are(lake, x):
    ref = lake.write("x", x, block_shape=(2, 6, 4))
    (old,) = files(lake)
    content = Path(lake.uri, old).read_bytes()
    stats = Snapshot.open(Storage(lake.uri)).statistics(0)
    lake.write("x", x + 1, mode="overwrite")
    lake.write("x", x + 2, mode="append")
    back = lake.restore("x", ref.version)
    np.testing.assert_array_equal(back[...], x)
    assert old in files(lake)
    assert len(files(lake)) == 2  # and the metadata row
    assert Path(lake.uri, old).read_bytes() == content
    snapshot = Snapshot.open(Storage(lake.uri))
    assert snapshot.statistics(snapshot.files.path.index(old)) == stats
    assert back.explain(np.s_[2:4]).n_rows == ref.explain(np.s_[2:4]).n_rows
    assert lake.history("x", 1)["operation"].item() == "restore"
    assert lake.history("x", 1)["files_removed"].item() == 2


def test_files_that_are_there_in_both_versions_stay(lake, x):
    lake.write("x", x, block_shape=(2, 6, 4))
    for _ in range(3):
        lake.write("x", x, mode="append")
    version, before = lake.version, files(lake)
    lake.write("x", x, mode="append")
    lake.restore("x", version)
    commit = lake.history(limit=1).iloc[0]
    assert (commit["files_added"], commit["files_removed"]) == (1, 1)
    assert before < files(lake)
    assert lake["x"].shape == (32, 6, 4)


def test_restore_twice_and_go_on(lake, x):
    first = lake.write("x", x, attrs={"by": "me"}, axes=("a", "b", "c")).version
    second = lake.write("x", x.astype("i2")[:3] * 2, mode="overwrite").version
    for _ in range(2):
        back = lake.restore("x", first)
        assert bits(back[...]) == bits(x)
        assert back.attrs == {"by": "me"}
        back = lake.restore("x", second)
        assert bits(back[...]) == bits(x.astype("i2")[:3] * 2)
        assert back.axes is None
    lake.restore("x", first)
    lake.restore("x", first)
    longer = lake.write("x", x[:2], mode="append")
    longer[0] = 0
    want = np.concatenate([x * 1, x[:2]])
    want[0] = 0
    np.testing.assert_array_equal(lake["x"][...], want)
    np.testing.assert_array_equal(lake["x"][5:9, ::2, -1], want[5:9, ::2, -1])
    assert lake["x"].axes == ("a", "b", "c")


def test_the_number_and_the_seq_go_on(lake, x):
    version = lake.write("x", x).version
    for _ in range(3):
        lake.write("x", x, mode="append")
    snapshot = Snapshot.open(Storage(lake.uri))
    number, seq = snapshot.transaction(app_of("x")), lake["x"]._meta.seq
    lake.restore("x", version)
    snapshot = Snapshot.open(Storage(lake.uri))
    assert snapshot.transaction(app_of("x")) == number + 1
    assert lake["x"]._meta.seq > seq


def test_a_tensor_that_was_deleted_comes_back(lake, x):
    version = lake.write("x", x).version
    lake.write("y", x)
    lake.delete("x")
    lake.write("x", x[:2] * 3)
    lake.delete("x")
    assert "x" not in lake
    np.testing.assert_array_equal(lake.restore("x", version)[...], x)
    assert [*lake] == ["x", "y"]
    with pytest.raises(tl.TensorNotFoundError, match=f"'y' in version {version}"):
        lake.restore("y", version)


@pytest.mark.parametrize("layout", ["bsgs", "coo", "csr", "csc", "csf"])
def test_sparse_tensors(lake, layout):
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((20, 30)) < 0.1, rng.integers(1, 9, (20, 30)), 0).astype("f8")
    lake.write("rides", tl.SparseTensor.from_dense(dense), layout=layout)
    more = tl.SparseTensor([[0, 19], [0, 29]], [2.0, 3.0], (20, 30))
    version = lake.write("rides", more, mode="append", axis=None, duplicates="sum").version
    want = lake["rides"][...]
    lake["rides"][3:7] = 0
    lake.write("rides", more, mode="append", axis=None, duplicates="sum")
    lake.convert("rides", layout="ftsf")
    back = lake.restore("rides", version)
    assert back.layout == layout
    assert back[...].equals(want)
    again = lake.write("rides", more, mode="append", axis=None, duplicates="sum")
    np.testing.assert_array_equal(again[...].todense(), want.todense() + more.todense())


def test_the_last_of_duplicates_stays_the_last(lake):
    first, second, third = (tl.SparseTensor([[0], [1]], [v], (2, 3)) for v in (1.0, 2.0, 3.0))
    lake.write("s", first, layout="coo")
    version = lake.write("s", second, mode="append", axis=None, duplicates="last").version
    lake.write("s", first, mode="overwrite", layout="coo")
    assert lake.restore("s", version)[0, 1] == 2
    assert lake.write("s", third, mode="append", axis=None, duplicates="last")[0, 1] == 3


def test_other_tensors_of_a_shared_file_do_not_change(lake, x):
    version = make_shared(lake, {"a": x, "b": x + 1, "c": x + 2})
    (shared,) = files(lake)
    lake["b"][0] = 0  # writes the shared file anew
    lake.write("c", x, mode="append")
    lake["c"][1] = 5
    others = {name: lake[name][...] for name in ("a", "c")}
    np.testing.assert_array_equal(lake.restore("b", version)[...], x + 1)
    for name, want in others.items():
        np.testing.assert_array_equal(lake[name][...], want)
    assert shared not in files(lake)
    np.testing.assert_array_equal(lake.restore("c", version)[...], x + 2)
    np.testing.assert_array_equal(lake["b"][...], x + 1)
    np.testing.assert_array_equal(lake["a"][...], x)


def test_across_a_compaction(lake, x):
    """Files of before come back, those that rows were moved to are written without them."""
    lake.write("y", x[:1])
    for i in range(6):
        version = lake.write("x", x[i : i + 1], mode="append").version
    lake.write("x", x[6:7], mode="append")
    old = set(Snapshot.open(Storage(lake.uri), version).files.path)
    lake.optimize()
    np.testing.assert_array_equal(lake.restore("x", version)[...], x[:6])
    np.testing.assert_array_equal(lake["y"][...], x[:1])
    assert len(files(lake) & old) == 6
    lake.optimize()
    np.testing.assert_array_equal(lake["x"][...], x[:6])
    np.testing.assert_array_equal(lake["x"][2:4, 1], x[2:4, 1])


def test_a_tensor_without_rows(lake):
    version = lake.write("x", np.zeros((4, 5)), layout="ftsf").version
    lake.write("x", np.ones((4, 5)), mode="overwrite")
    assert not lake.restore("x", version)[...].any()
    scalar = lake.write("s", np.float32(3)).version
    lake.write("s", np.float32(4), mode="overwrite")
    assert lake.restore("s", scalar)[...] == 3


def test_columns_that_users_added_are_kept(lake, x):
    version = make_shared(lake, {"a": x, "b": x + 1})
    table = Snapshot.open(Storage(lake.uri)).table
    from deltalake import Field

    table.alter.add_columns([Field("note", "string")])
    lake["b"][0] = 1
    np.testing.assert_array_equal(lake.restore("b", version)[...], x + 1)
    assert Snapshot.open(Storage(lake.uri)).schema.names[-1] == "note"


@pytest.mark.local_disk
def test_a_restored_file_survives_checkpoints_and_vacuum(lake, x):
    """Its tombstone is in the log, too."""
    version = lake.write("x", x).version
    (old,) = files(lake)
    lake.write("x", x + 1, mode="overwrite")
    lake.restore("x", version)
    lake.vacuum(0)
    assert old in os.listdir(lake.uri)
    for _ in range(11):
        lake.write("y", x[:1], mode="append")
    assert any("checkpoint" in name for name in os.listdir(f"{lake.uri}/_delta_log"))
    assert old not in lake.vacuum(0)
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][...], x)


def test_a_lake_at_a_version_is_for_reading(lake, x):
    version = lake.write("x", x).version
    old = tl.open(lake.uri, version=version)
    for change in (lambda: old.restore("x", version), lambda: old.tag("a"), lambda: old.untag("a")):
        with pytest.raises(tl.InvalidOptionError, match="for reading only"):
            change()


# ------------------------------------------------------------------------------------ beside other writers


def test_beside_writers_of_other_tensors(lake, x):
    """They share files with it, and compaction moves files meanwhile."""
    version = make_shared(lake, {f"t{k}": x + k for k in range(4)})
    failed = []

    def work(k):
        try:
            other = tl.open(lake.uri)
            for i in range(5):
                other[f"t{k}"][i] = 100 * k + i
                if k == 2:
                    other.optimize()
        except Exception as error:
            failed.append(error)

    lake["t0"][:] = 0
    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        np.testing.assert_array_equal(lake.restore("t0", version)[...], x)
        lake["t0"][0] = 0
    for thread in threads:
        thread.join()
    assert not failed
    lake.restore("t0", version)
    for k in range(4):
        want = x + k
        for i in range(5 if k else 0):
            want[i] = 100 * k + i
        np.testing.assert_array_equal(lake[f"t{k}"][...], want)


@pytest.mark.local_disk
def test_a_change_of_the_same_tensor_meanwhile(lake, x, monkeypatch):
    """The other writer commits when the restore has read what the tensor is, and before it commits."""
    version = lake.write("x", x).version
    lake.write("x", x + 1, mode="overwrite")
    from tensorlake_spark.writing.editing import restore

    def interrupted(storage, change):
        monkeypatch.undo()
        tl.open(lake.uri)["x"][0] = 9
        return restore.commit(storage, change)

    monkeypatch.setattr(restore, "commit", interrupted)
    with pytest.raises(tl.ConcurrentWriteError, match="while it was restored"):
        lake.restore("x", version)
    want = x + 1
    want[0] = 9
    np.testing.assert_array_equal(lake["x"][...], want)
    assert lake.history("x", 1)["operation"].item() == "assign"
    names = {name for name in os.listdir(lake.uri) if name.endswith(".parquet")}
    live = {
        p for v in range(lake.version + 1) for p in Snapshot.open(Storage(lake.uri), v).files.path
    }
    assert names == live  # what it had written is gone
    np.testing.assert_array_equal(lake.restore("x", version)[...], x)


def _restore(uri, version, results):
    try:
        tl.open(uri).restore("x", version)
        results.put("restored")
    except tl.ConcurrentWriteError:
        results.put("refused")


def test_restores_in_several_processes(lake, x):
    versions = [lake.write("x", x + k, mode="overwrite").version for k in range(3)]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_restore, args=(lake.uri, v, results)) for v in versions]
    for worker in workers:
        worker.start()
    said = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert set(said) <= {"restored", "refused"}
    operations = [*lake.history("x")["operation"]]
    assert operations.count("restore") == said.count("restored") >= 1
    got = lake["x"][...]
    assert any(np.array_equal(got, x + k) for k in range(3))


# --------------------------------------------------------------------------------- what retention takes


def test_restore_of_a_version_that_was_vacuumed(lake, x):
    version = lake.write("x", x).version
    lake.write("x", x + 1, mode="overwrite")
    set_property(lake, "delta.deletedFileRetentionDuration", "interval 3 days")
    lake.vacuum(0)
    before = lake.version
    with pytest.raises(tl.MissingDataError) as caught:
        lake.restore("x", version)
    said = str(caught.value)
    for part in (
        f"version {version} of {lake.uri}", "VACUUM", "delta.deletedFileRetentionDuration", "a week",
        "interval 3 days", "tag(name, version)",
    ):  # fmt: skip
        assert part in said
    assert lake.version == before
    np.testing.assert_array_equal(lake["x"][...], x + 1)


@pytest.mark.local_disk
def test_a_file_that_goes_while_rows_are_written_anew(lake, x, monkeypatch):
    version = lake.write("x", x).version
    (old,) = files(lake)
    lake.write("x", x + 1, mode="overwrite")
    from tensorlake_spark.writing.editing import restore

    real, before = restore.catalog.find, lake.version

    def find(snapshot, tensor_id):
        if snapshot.version == before:
            os.remove(f"{lake.uri}/{old}")
        return real(snapshot, tensor_id)

    monkeypatch.setattr(restore.catalog, "find", find)
    with pytest.raises(tl.MissingDataError, match="cannot be restored"):
        lake.restore("x", version)
    monkeypatch.undo()
    assert lake.version == before


@pytest.mark.local_disk
def test_vacuum_keeps_files_of_tagged_versions(lake, x):
    versions = [lake.write("x", x + k, mode="overwrite").version for k in range(4)]
    lake.write("y", x)
    shared = make_shared(lake, {"z": x})
    lake["z"][0] = 0
    lake.tag("one", versions[1])
    lake.tag("shared", shared)
    Path(lake.uri, "part-orphan.parquet").touch()
    assert set(lake.vacuum(0, dry_run=True)) == set(gone := lake.vacuum(0))
    assert "part-orphan.parquet" in gone
    np.testing.assert_array_equal(tl.open(lake.uri, version="one")["x"][...], x + 1)
    old = tl.open(lake.uri, version="shared")
    np.testing.assert_array_equal(old["z"][...], x)
    np.testing.assert_array_equal(old["x"][...], x + 3)
    for version in (versions[0], versions[2]):
        with pytest.raises(tl.MissingDataError):
            tl.open(lake.uri, version=version)["x"][...]
    np.testing.assert_array_equal(lake.restore("x", "one")[...], x + 1)
    lake.write("x", x, mode="overwrite")
    lake.untag("one")
    lake.vacuum(0)
    with pytest.raises(tl.MissingDataError):
        lake.restore("x", versions[1])
    np.testing.assert_array_equal(lake["z"][1:], x[1:])


def test_several_tensors_come_back_by_one_commit(lake, x):
    """Out of one file that they share with a third."""
    version = make_shared(lake, {"a": x, "b": x + 1, "c": x + 2})
    for name in "abc":
        lake.write(name, x[:1] * 0, mode="overwrite")
    lake.optimize()
    refs = lake.restore(["b", "a"], version)
    assert [ref.id for ref in refs] == ["b", "a"]
    assert bits(refs[0][...]) == bits(x + 1)
    assert bits(lake["a"][...]) == bits(x)
    assert bits(lake["c"][...]) == bits(x[:1] * 0)
    commit = lake.history(limit=1).iloc[0]
    assert commit["operation"] == "restore"
    assert [*commit["tensors"]] == ["a", "b"]
    assert lake.check().ok


@pytest.mark.parametrize("seed", range(6))
def test_some_tensors_of_any_version_come_back(lake, seed):
    draw = np.random.default_rng(seed)
    known, now = {}, {}
    for step in range(14):
        name = str(draw.choice([*"pqrs"]))
        action = draw.choice(["write", "assign", "append", "delete", "optimize"])
        if action == "optimize" and known:
            lake.optimize()
        elif action == "delete" and name in now:
            lake.delete(name)
            del now[name]
        elif name not in now or action == "write":
            now[name] = draw.integers(0, 9, (4, 3))
            lake.write(name, now[name], mode="overwrite", block_shape=(1, 3), layout="ftsf")
        elif action == "append":
            now[name] = np.concatenate([now[name], now[name][:2]])
            lake.write(name, now[name][-2:], mode="append")
        else:
            now[name] = now[name].copy()
            now[name][step % 4] = step
            lake[name][step % 4] = step
        known[lake.version] = dict(now)
    for version in draw.permutation([*known])[:5].tolist():
        there = [*known[version]]
        chosen = [name for name in there if draw.random() < 0.7] or there
        if chosen:
            lake.restore(chosen, version)
            now |= {name: known[version][name] for name in chosen}
        assert {*lake} == {*now}
        for name, array in now.items():
            np.testing.assert_array_equal(lake[name][...], array)
    assert lake.check().ok


def test_ids_that_are_no_list_of_ids(lake, x):
    version = lake.write("x", x).version
    for ids, text in (
        (["x", "x"], "'x' is named twice"),
        ([], "no tensor is named"),
        (7, "7 is not an id"),
        (b"x", "is not an id"),
    ):
        with pytest.raises(tl.InvalidOptionError, match=text):
            lake.restore(ids, version)
    with pytest.raises(tl.InvalidTensorError, match="id is a string, not int"):
        lake.restore(["x", 5], version)
    with pytest.raises(tl.TensorNotFoundError, match="'y'"):
        lake.restore(["x", "y"], version)
    assert lake.version == version


@pytest.mark.local_disk
def test_what_a_vacuum_takes_from_several_is_told(lake, x):
    version = lake.write("x", x).version
    lake.write("y", x)
    lake.write("x", x + 1, mode="overwrite")
    lake.write("y", x + 1, mode="overwrite")
    lake.vacuum(0)
    with pytest.raises(
        tl.MissingDataError, match=f"tensors 'x', 'y' cannot be restored from version {version + 1}"
    ):
        lake.restore(["x", "y"], version + 1)
