"""Tensors and parts that are taken out by many tasks: NumPy is the oracle, and one commit has it all."""

from pathlib import Path

import deltalake
import numpy as np
import pytest
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import LAYOUTS
from tensorlake_spark.writing.editing import removal
from tensorlake_spark.writing.editing.removal import clear_part, remove_tensor

pytestmark = pytest.mark.local_disk

SPARSE = [name for name, layout in LAYOUTS.items() if layout.is_sparse]


def one_file_a_task(lake):
    """Files of one byte are wanted, so that each task takes one."""
    deltalake.DeltaTable(lake.uri).alter.set_table_properties({"delta.targetFileSize": "1"})
    forget()


def opened(lake, tensor_id):
    snapshot = Snapshot.open(Storage(lake.uri))
    return snapshot, catalog.get(snapshot, tensor_id)


def counted(snapshots):
    """Return what does tasks in this process, last one first, and how many they were."""

    def run(work, tasks, sizes=None):
        tasks = list(tasks)
        snapshots.append(len(tasks))
        done = {task: work(task) for task in reversed(tasks)}
        yield from done.items()

    return run


def places(lake, tensor_id):
    rows = deltalake.DeltaTable(lake.uri).to_pyarrow_table(columns=["id", "seq", "nnz"]).to_pylist()
    return [row["seq"] for row in rows if row["id"] == tensor_id]


@pytest.mark.parametrize("fill", [0, 7])
def test_a_part_of_a_dense_tensor_is_cleared_by_many_tasks(lake, fill):
    x = np.random.default_rng(0).integers(1, 255, (40, 30)).astype("u1")
    for start in range(0, 40, 8):
        lake.write("x", x[start : start + 8], mode="append", block_shape=(3, 7), fill_value=fill)
    lake.write("y", x)
    one_file_a_task(lake)
    counts = []
    for key in (np.s_[5:25, 3:20], np.s_[:, 4], np.s_[[1, 39], ::2], np.s_[30:40]):
        snapshot, meta = opened(lake, "x")
        after = clear_part(snapshot, meta, select(key, x.shape), counted(counts))
        x[key] = fill
        assert after.version == snapshot.version + 1
        forget()
        np.testing.assert_array_equal(tl.open(lake.uri)["x"][:], x)
        assert lake.check().findings == ()
    assert max(counts) > 3
    assert len(set(places(lake, "x"))) == len(places(lake, "x"))


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("duplicates", ["error", "sum", "last"])
def test_elements_of_a_sparse_tensor_are_cleared_by_many_tasks(lake, layout, duplicates):
    rng = np.random.default_rng(1)
    x = np.zeros((24, 50))
    twice = duplicates != "error"
    for start in range(0, 24, 6):
        part = np.where(rng.random((6, 50)) < 0.3, rng.integers(1, 9, (6, 50)), 0.0)
        x[start : start + 6] += part
        block = {"block_shape": (4, 8)} if layout == "bsgs" else {}
        s = tl.SparseTensor.from_dense(part)
        rule = {"duplicates": duplicates} if twice else {}
        lake.write("s", s, mode="append", layout=layout, **block, **rule)
    if twice:  # elements that are there twice, in different files
        more = np.zeros_like(x)
        more[::5, ::3] = 2
        lake.write("s", tl.SparseTensor.from_dense(more), mode="append", axis=None)
        x = x + more if duplicates == "sum" else np.where(more != 0, more, x)
    one_file_a_task(lake)
    counts = []
    for key in (np.s_[3:20, 5:30], np.s_[:, ::7], np.s_[[0, 23]]):
        snapshot, meta = opened(lake, "s")
        clear_part(snapshot, meta, select(key, x.shape), counted(counts))
        x[key] = 0
        forget()
        ref = tl.open(lake.uri)["s"]
        np.testing.assert_array_equal(ref[:].todense(), x)
        assert lake.check().findings == ()
    assert (max(counts) > 1) != twice
    assert len(set(places(lake, "s"))) == len(places(lake, "s"))
    grown = tl.SparseTensor.from_dense(np.ones((1, 50)))
    lake.write("s", grown, mode="append")  # after all places that tasks took
    np.testing.assert_array_equal(lake["s"][24].todense(), np.ones(50))


def test_a_task_that_fails_leaves_nothing(lake):
    x = np.arange(1, 401).reshape(20, 20)
    for start in range(0, 20, 5):
        lake.write("x", x[start : start + 5], mode="append", block_shape=(1, 20))
    one_file_a_task(lake)
    snapshot, meta = opened(lake, "x")
    there = {*Path(lake.uri).glob("*.parquet")}

    def failing(work, tasks, sizes=None):
        for number, task in enumerate(tasks):
            if number == 2:
                raise tl.StorageError("the store is away")
            yield task, work(task)

    with pytest.raises(tl.StorageError, match="the store is away"):
        clear_part(snapshot, meta, select(np.s_[:, 3], x.shape), failing)
    assert {*Path(lake.uri).glob("*.parquet")} == there
    assert tl.open(lake.uri).version == snapshot.version


def test_files_that_were_moved_meanwhile_are_written_from_where_they_are(lake, monkeypatch):
    x = np.arange(1, 401).reshape(20, 20)
    for start in range(0, 20, 5):
        lake.write("x", x[start : start + 5], mode="append", block_shape=(1, 20))
    snapshot, meta = opened(lake, "x")
    commit = removal.commit_change
    moved = []

    def late(*arguments):
        if not moved:
            moved.append(tl.open(lake.uri).optimize())
        return commit(*arguments)

    monkeypatch.setattr(removal, "commit_change", late)
    clear_part(snapshot, meta, select(np.s_[2:7], x.shape))
    assert moved[0].files_before == 4
    x[2:7] = 0
    forget()
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][:], x)
    assert lake.check().findings == ()


def test_a_tensor_that_changed_meanwhile_is_left_as_it_is(lake):
    lake.write("x", np.arange(1, 10), block_shape=(3,))
    snapshot, meta = opened(lake, "x")
    lake.write("x", np.arange(3), mode="append")
    with pytest.raises(tl.ConcurrentWriteError, match="nothing was committed"):
        clear_part(snapshot, meta, select(np.s_[:2], (9,)))
    with pytest.raises(tl.ConcurrentWriteError, match="nothing was purged"):
        remove_tensor(snapshot, "x", lambda now: [*now.files.path], {})
    np.testing.assert_array_equal(lake["x"][:], [*range(1, 10), 0, 1, 2])


def test_files_of_a_removal_that_fails_are_deleted(lake, monkeypatch):
    lake.write("x", np.arange(40), block_shape=(4,))
    lake.write("y", np.arange(4))
    lake.optimize()
    snapshot, meta = opened(lake, "x")
    (path,) = snapshot.files.path
    before = {*Path(lake.uri).glob("*.parquet")}

    def fails(*_):
        assert {*Path(lake.uri).glob("*.parquet")} > before
        raise KeyboardInterrupt

    monkeypatch.setattr(removal, "commit_change", fails)
    with pytest.raises(KeyboardInterrupt):
        remove_tensor(snapshot, "x", lambda now: [path], {path: 11})
    with pytest.raises(KeyboardInterrupt):
        clear_part(snapshot, meta, select(np.s_[3:9], (40,)))
    assert {*Path(lake.uri).glob("*.parquet")} == before


def test_a_task_reads_no_more_than_four_files_worth(lake):
    """Also where next to nothing is left of them."""
    for start in range(0, 4000, 400):
        lake.write("x", np.random.default_rng(start).random(400), mode="append", codec="raw")
    snapshot, _ = opened(lake, "x")
    paths = [p for p, most in zip(snapshot.files.path, snapshot.files.most_nnz) if most]
    sizes = snapshot.files.size[[snapshot.places[path] for path in paths]]
    held = {path: int(snapshot.files.rows[snapshot.places[path]]) for path in paths}
    target = int(sizes.max())
    deltalake.DeltaTable(lake.uri).alter.set_table_properties({"delta.targetFileSize": str(target)})
    forget()
    snapshot, _ = opened(lake, "x")
    shares = removal._shares(snapshot, paths, held)
    assert sorted(path for _, some in shares for path in some) == sorted(paths)
    assert max(len(some) for _, some in shares) == 4
