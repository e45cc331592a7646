"""Tensors of large samples: one commit of the lake for all of them, or none."""

import os

import numpy as np
import pytest
from races import before_commit

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart import tile_writer
from tensorlake_spark.datasets.apart.inner_tables import inner_tables
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.apart.tile_writer import TileWriter
from tensorlake_spark.datasets.samples.appending import commit_files
from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

KIND = tl.types.Tensor("uint8")
PLACE = Place("scan")


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path / "ds"))


def lake(storage):
    return tl.open(f"{storage.uri}/_tensors")


def test_large_samples_become_tensors_in_one_commit(storage):
    writer = TileWriter(storage, 100)
    small, large, other = np.zeros(9, "u1"), np.arange(200, dtype="u1"), np.ones((20, 9), "u1")
    left = writer.take([small, large, None, other], KIND, "a/scan", [4, 5, 6, 7], PLACE)
    assert left[0] is small
    assert left[2] is None
    assert left[1] == tl.types.Tiled((200,), "uint8")
    assert left[3].shape == (20, 9)
    assert writer.finish() == [Written("_tensors", 1)]
    assert list(lake(storage)) == ["a/scan/5", "a/scan/7"]
    assert lake(storage)["a/scan/5"][:].tolist() == list(range(200))


def test_small_samples_make_no_lake(storage):
    writer = TileWriter(storage, 100)
    values = [np.zeros(9, "u1")]
    assert writer.take(values, KIND, "scan", [0], PLACE) is values
    assert writer.finish() == []
    assert not os.path.exists(storage.uri)


def test_what_is_aborted_is_not_there(storage):
    writer = TileWriter(storage, 100)
    writer.take([np.arange(200, dtype="u1")] * 3, KIND, "scan", [0, 1, 2], PLACE)
    writer.abort()
    writer.abort()
    assert len(lake(storage)) == 0
    assert not [name for _, _, names in os.walk(storage.uri) for name in names]


def test_an_array_that_lies_about_its_dtype_leaves_nothing(storage):
    class Lying:
        shape, dtype = (300,), np.dtype("u1")

        def __getitem__(self, key):
            return np.zeros(300, "f4")[key]

    writer = TileWriter(storage, 100)
    with pytest.raises(
        tl.InvalidSampleError, match="column 'scan', sample 0: expected dtype uint8"
    ):
        writer.take([Lying()], KIND, "scan", [0], PLACE)
    writer.abort()
    assert len(lake(storage)) == 0


def test_tiles_that_are_replaced_and_those_of_an_old_version(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"scan": KIND}, tile_bytes=100)
    ds.extend({"scan": [np.zeros(200, "u1"), np.ones(200, "u1")]})
    storage, version = Storage(ds.uri), ds.version
    snapshot = Snapshot.open(storage, kind=SAMPLES)
    parts = PartsWriter(storage, snapshot, ds.schema, replaces=True)
    left = parts.take({"scan": [np.full(200, 7, "u1")]}, [1], 0)
    assert left["scan"] == [tl.types.Tiled((200,), "uint8")]
    assert parts.finish() == [Written("_tensors", inner_tables(snapshot)["_tensors"] + 1, True)]
    assert lake(storage)["scan/1"][0] == 7
    # Nothing of it is visible before the samples' commit.
    assert (
        tl.dataset(ds.uri)["scan"][1, 0] == 1 == tl.dataset(ds.uri, version=version)["scan"][1, 0]
    )


def test_two_that_replace_tiles_at_once(storage):
    TileWriter(storage, 100)
    first, second = (TileWriter(storage, 100, replaces=True) for _ in range(2))
    tl.dataset(storage.uri, {"scan": KIND})
    for value, writer in enumerate((first, second), 1):
        writer.take([np.full(200, value, "u1")], KIND, "scan", [0], PLACE)
    assert first.finish()
    with pytest.raises(tl.ConcurrentWriteError):
        second.finish()
    assert lake(storage)["scan/0"][3] == 1


def test_two_that_commit_the_same_tiles_at_once_are_told_of_samples(storage, monkeypatch):
    """Who loses the race of the commit never saw the transaction that lost it."""
    tl.dataset(storage.uri, {"scan": KIND})
    start, first, second = (TileWriter(storage, 100, replaces=True) for _ in range(3))
    for value, writer in enumerate((start, first, second)):
        writer.take([np.full(200, value, "u1")], KIND, "scan", [0], PLACE)
        if writer is start:
            commit_files(storage, [], "update", start.finish())
    won = []
    before_commit(monkeypatch, lambda: won.extend(first.finish()))
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed large samples"):
        second.finish()
    assert won
    assert lake(storage)["scan/0"][3] == 1


@pytest.mark.parametrize("sid", [0, 1])
def test_another_one_replaces_tiles_before_the_first_sample_is_written(
    storage, monkeypatch, caplog, sid
):
    tl.dataset(storage.uri, {"scan": KIND})
    first, second = (TileWriter(storage, 100, replaces=True) for _ in range(2))
    looked = tile_writer.settled

    def slow(*args):
        found = looked(*args)
        monkeypatch.setattr(tile_writer, "settled", looked)
        first.take([np.full(200, 1, "u1")], KIND, "scan", [0], PLACE)
        assert first.finish()
        return found

    start = TileWriter(storage, 100, replaces=True)
    start.take([np.full(200, 9, "u1")], KIND, "scan", [0], PLACE)
    start.finish()
    monkeypatch.setattr(tile_writer, "settled", slow)
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed large samples"):
        second.take([np.full(200, 2, "u1")], KIND, "scan", [sid], PLACE)
    second.abort()
    assert list(lake(storage)) == ["scan/0"]
    assert lake(storage)["scan/0"][3] == 1
    assert not [said for said in caplog.records if said.levelname == "WARNING"]
