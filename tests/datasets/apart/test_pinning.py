"""Writers who meet, and writers who are killed: nothing is visible that no commit of samples has made so."""

import threading

import numpy as np
import pytest
from races import before_commit

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart import pinning, tile_writer
from tensorlake_spark.datasets.apart.inner_tables import inner_storage, inner_tables
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.apart.pinning import Written, pins, settled
from tensorlake_spark.datasets.samples.appending import commit_files
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

COLUMNS = {
    "label": "int32",
    "x": tl.types.Tensor("int64", apart=True),
    "scan": tl.types.Tensor("uint8"),
}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """The dead do not come back in a tenth of a second."""
    monkeypatch.setattr(pinning, "PATIENCE", 0.1)


def rows(*numbers):
    return {
        "label": list(numbers),
        "x": [np.full(2, n) for n in numbers],
        "scan": [np.full(200, n, "u1") for n in numbers],
    }


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=100)
    found.extend(rows(0, 1, 2))
    return found


def newest(ds):
    return Snapshot.open(Storage(ds.uri), kind=SAMPLES)


def written(ds, columns, sids, replaces):
    """What a writer has done that is killed before the samples' commit."""
    parts = PartsWriter(Storage(ds.uri), newest(ds), ds.schema, replaces)
    parts.take(columns, sids, 0)
    return parts.finish()


def newest_tiles(ds):
    return Snapshot.open(inner_storage(Storage(ds.uri), "_tensors")).version


def content(uri, version=None):
    ds = tl.dataset(uri, version=version)
    return {
        int(sid): (
            label,
            None if x is None else x.tolist(),
            None if s is None else s[[0, -1]].tolist(),
        )
        for sid, label, x, s in zip(ds.sids, ds["label"], ds["x"], ds["scan"], strict=True)
    }


def expected(*numbers):
    return {sid: (n, [n, n], [n, n]) for sid, n in enumerate(numbers)}


def test_an_append_that_was_killed_is_not_visible_then_or_later(ds):
    written(ds, {key: rows(66)[key] for key in ("x", "scan")}, [1000], replaces=False)
    assert content(ds.uri) == expected(0, 1, 2)
    ds.extend(rows(3, 4))
    assert content(ds.uri) == expected(0, 1, 2, 3, 4)


@pytest.mark.parametrize("column", ["x", "scan"])
def test_an_update_that_was_killed_is_undone_by_the_next_append(ds, column):
    written(ds, {column: rows(66)[column]}, [1], replaces=True)
    assert content(ds.uri) == expected(0, 1, 2)
    ds.extend(rows(3))
    assert content(ds.uri) == expected(0, 1, 2, 3)
    ds.extend(rows(4))
    assert content(ds.uri) == expected(0, 1, 2, 3, 4)
    assert content(ds.uri, 2) == expected(0, 1, 2)


@pytest.mark.parametrize("column", ["x", "scan"])
def test_an_update_that_was_killed_is_undone_by_the_next_update(ds, column):
    written(ds, {column: rows(66)[column]}, [1], replaces=True)
    done = written(ds, {column: rows(77)[column]}, [2], replaces=True)
    commit_files(Storage(ds.uri), [], "update", done)
    found = content(ds.uri)
    assert found[1] == expected(0, 1)[1]
    assert found[0] == expected(0)[0]
    assert 77 in found[2][1] + found[2][2]


def test_two_appends_that_undo_the_same_tiles_both_land(ds, monkeypatch):
    """One of them lost the race of the undo, and was told to run a block again that it had not written."""
    written(ds, {"scan": rows(66)["scan"]}, [1], replaces=True)
    before_commit(monkeypatch, lambda: tl.dataset(ds.uri).extend(rows(3)))
    assert settled(Storage(ds.uri), "_tensors").version == newest_tiles(ds)
    ds.extend(rows(4))
    assert content(ds.uri) == expected(0, 1, 2, 3, 4)


@pytest.mark.parametrize("column", ["x", "scan"])
def test_the_sample_of_an_update_that_was_killed_can_be_updated_again_and_again(ds, column):
    """The undone tiles have another number than the dataset knew, which was taken for a change of another writer."""
    written(ds, {column: rows(66)[column]}, [1], replaces=True)
    for value in (77, 78):
        ds.update([1], {column: rows(value)[column]})
        assert value in np.concatenate(content(ds.uri)[1][1:])
    assert ds.check(deep=True).ok


def test_a_writer_who_was_undone_is_told(ds):
    late = written(ds, {"x": rows(66)["x"]}, [1], replaces=True)
    ds.extend(rows(3))
    with pytest.raises(tl.ConcurrentWriteError, match="run it again"):
        commit_files(Storage(ds.uri), [], "update", late)
    assert content(ds.uri) == expected(0, 1, 2, 3)


@pytest.mark.parametrize("column", ["x", "scan"])
def test_an_update_that_was_undone_and_is_pinned_after_all_stays(ds, column):
    """Its writer was slow and not dead, and somebody else has written on what the undo left."""
    late = written(ds, {column: rows(66)[column]}, [1], replaces=True)
    first = written(ds, {column: rows(3)[column]}, [1000], replaces=False)
    ((known, undone),) = pins(Storage(ds.uri), newest(ds), first).values()  # and is killed
    assert undone > first[0].version > late[0].version > known
    second = written(ds, {column: rows(4)[column]}, [2000], replaces=False)
    commit_files(Storage(ds.uri), [], "update", late)
    commit_files(Storage(ds.uri), [], "extend", second)
    found = content(ds.uri)
    assert 66 in np.concatenate(found[1][1:])
    assert {sid: found[sid] for sid in (0, 2)} == {sid: expected(0, 1, 2)[sid] for sid in (0, 2)}


def test_appends_before_and_after_an_update_that_was_killed_all_land(ds):
    first = written(ds, {"x": [np.full(2, 3)]}, [1000], replaces=False)
    written(ds, {"x": rows(66)["x"]}, [1], replaces=True)
    second = written(ds, {"x": [np.full(2, 4)]}, [2000], replaces=False)
    pinned = pins(Storage(ds.uri), newest(ds), second)
    ((known, version),) = pinned.values()
    assert version > second[0].version > first[0].version > known
    inner = tl.dataset(f"{ds.uri}/_columns/x", version=version)
    assert {int(s): x.tolist() for s, x in zip(inner.sids, inner["x"], strict=True)} == {
        0: [0, 0], 1: [1, 1], 2: [2, 2], 1000: [3, 3], 2000: [4, 4],
    }  # fmt: skip


def test_who_pins_first_does_not_take_from_the_other(ds):
    one = written(ds, {"x": [np.full(2, 3)]}, [1000], replaces=False)
    two = written(ds, {"x": [np.full(2, 4)]}, [2000], replaces=False)
    commit_files(Storage(ds.uri), [], "extend", two)
    later = inner_tables(newest(ds))["_columns/x"]
    commit_files(Storage(ds.uri), [], "extend", one)
    assert inner_tables(newest(ds))["_columns/x"] == later == two[0].version


def test_two_updates_of_one_sample_at_once(ds):
    parts = [PartsWriter(Storage(ds.uri), newest(ds), ds.schema, True) for _ in range(2)]
    outcome = {}
    together = threading.Barrier(2)

    def run(number):
        parts[number].take({"x": [np.full(1, number)]}, [1], 0)
        together.wait()
        try:
            commit_files(Storage(ds.uri), [], "update", parts[number].finish())
            outcome[number] = "done"
        except tl.ConcurrentWriteError:
            outcome[number] = "lost"

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [number for number, said in outcome.items() if said == "done"]
    assert winners
    found = content(ds.uri)
    assert found[1][1] in [[number] for number in winners]
    assert {sid: found[sid] for sid in (0, 2)} == {sid: expected(0, 1, 2)[sid] for sid in (0, 2)}


def test_writers_who_append_at_once_all_land(ds):
    failures = []

    def run(number):
        try:
            tl.dataset(ds.uri).extend(rows(*range(10 * number, 10 * number + 3)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    found = content(ds.uri)
    assert sorted(label for label, _, _ in found.values()) == [
        0,
        1,
        2,
        10,
        11,
        12,
        20,
        21,
        22,
        30,
        31,
        32,
    ]
    assert all((x, scan) == ([n, n], [n, n]) for n, x, scan in found.values())


def test_a_table_without_changes_is_settled_as_it_is(ds):
    at = inner_tables(newest(ds))["_columns/x"]
    assert settled(Storage(ds.uri), "_columns/x").version == at
    assert pins(Storage(ds.uri), newest(ds), [Written("_columns/x", at)]) == {
        "dataset/part/_columns/x": (at, at)
    }


def test_an_update_that_another_one_overtakes_says_so_in_its_own_words(ds, monkeypatch):
    looked = tile_writer.settled

    def slow(*args):
        found = looked(*args)
        monkeypatch.setattr(tile_writer, "settled", looked)
        tl.dataset(ds.uri).update([0], {"scan": [np.full(300, 7, "u1")]})
        return found

    monkeypatch.setattr(tile_writer, "settled", slow)
    ds.append({"label": 3})  # a sample without tiles, which gets some
    with pytest.raises(tl.ConcurrentWriteError, match="nothing of it is visible"):
        ds.update([3], {"scan": [np.full(200, 5, "u1")]})
    now = content(ds.uri)
    assert (now[0][2], now[3][2]) == ([7, 7], None)


def test_an_update_that_was_killed_is_undone_after_a_vacuum_took_what_it_wrote(ds):
    """A vacuum takes files out whose samples are gone; a later change took them for files that were written anew."""
    old = ds.version
    ds.extend(rows(3, 4))
    parts = PartsWriter(Storage(ds.uri), newest(ds), ds.schema, True)
    ds.restore(old)
    parts.take({"x": [np.full(2, 77)]}, [3], 0)
    parts.finish()  # and is killed
    ds.vacuum(0)
    ds.vacuum(0)
    ds.update([1], {"x": [np.full(2, 5)]})
    assert [x.tolist() for x in ds["x"][:]] == [[0, 0], [5, 5], [2, 2]]
    assert ds.check(deep=True).ok
