"""Batches from processes: the same as from threads; and whatever dies, nothing is left and nobody waits."""

import functools
import gc
import multiprocessing
import operator
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import sample_transforms as transforms
from small_datasets import picture

import tensorlake_spark as tl
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidSampleError,
    LoaderClosedError,
    LoaderWorkerError,
)
from tensorlake_spark.loader.order.epoch_order import EpochOrder
from tensorlake_spark.loader.pipeline.batch_plan import plan_of
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats
from tensorlake_spark.loader.pipeline.process_workers import ProcessBatches, WorkerPool
from tensorlake_spark.loader.pipeline.worker_process import EpochSetting, WorkerSetting
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples

COUNT = 60


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(
        tmp_path / "ds", {"x": tl.types.Tensor("float32", (40, 40)), "label": "int64"}
    )
    for start in (0, COUNT // 2):
        labels = np.arange(start, start + COUNT // 2)
        found.extend(
            {"x": np.ones((1, 40, 40), "f4") * labels[:, None, None].astype("f4"), "label": labels}
        )
    return found


def batches(ds, transform=None, collate=None, memory=64 << 20, order=None, skips=False):
    """Return batches that one process makes, and the pool."""
    order = EpochOrder(COUNT, 8, None) if order is None else order
    source = DatasetSamples(ds.parts, ("x", "label"), {}, 8 << 20)
    pool = WorkerPool(WorkerSetting(source, 0, 1, transform, collate, skips), 1)
    made = ProcessBatches(
        range(order.n_batches),
        lambda number: plan_of(order, None, number, 0, 1, 15 if skips else 0),
        EpochSetting(5),
        pool,
        memory,
        4,
        LoaderStats(),
        source,
    )
    return made, pool


def assert_ended(pids):
    """Wait until processes are gone."""
    for _ in range(600):
        if not any(pathlib.Path(f"/proc/{pid}").exists() and not is_zombie(pid) for pid in pids):
            return
        time.sleep(0.05)
    pytest.fail(f"some of {pids} are still there")


def is_zombie(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rsplit(")", 1)[1].split()[0] in "ZX"


def test_a_loader_gives_what_threads_give(ds):
    shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    options = {"shuffle": True, "seed": 4, "transform": transforms.doubled}
    with ds.loader(8, workers=2, **options) as threads:
        expected = [list(threads), list(threads)]
    with ds.loader(8, workers="processes", memory="20MB", **options) as loader:
        first = iter(loader)
        found = [next(first), next(first)]
        state = loader.state_dict()
        found = [found + list(first), list(loader)]
        pool = loader._pool
        stats = loader.stats()
    assert_ended([process.pid for process in pool.processes])
    assert state["samples"] == 16
    assert stats["samples"] == 2 * COUNT
    assert stats["transform_seconds"] > 0
    pids = set()
    for one, other in zip(
        functools.reduce(operator.iadd, found, []),
        functools.reduce(operator.iadd, expected, []),
        strict=True,
    ):
        np.testing.assert_array_equal(one["label"], other["label"])
        np.testing.assert_array_equal(one["x"], other["x"])
        pids |= set(one["pid"].tolist())
    assert pids == {process.pid for process in pool.processes}  # the same in both epochs
    if shared:
        assert set(os.listdir("/dev/shm")) <= shared


def test_a_process_makes_batches_ahead_while_nobody_takes_them(ds):
    made, pool = batches(ds)  # one process, and four batches ahead
    with made:
        taken = iter(made)
        next(taken)
        end = time.monotonic() + 60
        while len(made._results) < 4 and time.monotonic() < end:
            time.sleep(0.01)
        assert sorted(made._results) == [1, 2, 3, 4]
        assert len(list(taken)) == 7
    pool.close()


def test_a_process_that_is_killed(ds):
    made, pool = batches(ds, transforms.dying)
    taken = []
    with made, pytest.raises(LoaderWorkerError, match=r"ended by signal 9 .*memory") as caught:
        taken.extend(iter(made))
    assert isinstance(caught.value, RuntimeError)
    assert len(taken) <= 2
    assert not pool.is_open
    assert_ended([process.pid for process in pool.processes])


def test_a_transform_that_fails_names_the_sample(ds):
    made, _ = batches(ds, transforms.failing)
    with made:
        taken = iter(made)
        next(taken), next(taken)
        with pytest.raises(InvalidSampleError, match=r"sample 17 of .*seventeen") as caught:
            next(taken)
    assert "sample_transforms.py" in str(caught.value.__cause__)


def test_a_collate_function_and_its_result(ds):
    made, pool = batches(ds, collate=transforms.summed)
    with made:
        found = list(made)
    assert pool.is_open
    pool.close()
    np.testing.assert_array_equal([one[0, 0] for one in found[:2]], [28, 92])


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (transforms.as_function, "AttributeError|PicklingError"),
        (transforms.as_unsent, "RuntimeError: stays here"),
        (transforms.as_unread, "ValueError: invalid literal"),
    ],
)
def test_what_does_not_come_back(ds, transform, says):
    made, _ = batches(ds, transform)
    with made, pytest.raises(InvalidSampleError, match=rf"one process to another \(({says})"):
        next(iter(made))


def test_memory_that_is_too_small(ds):
    made, _ = batches(ds, memory=1000)
    with (
        made,
        pytest.raises(InvalidOptionError, match="memory= leaves 1000 bytes for batches, too few"),
    ):
        next(iter(made))


def test_memory_holds(ds):
    made, pool = batches(ds, memory=300_000)  # five batches of 51 KB
    with made:
        taken = iter(made)
        found = [next(taken)["label"]]
        time.sleep(0.5)  # batches are made ahead, as many as may be
        found += [batch["label"] for batch in taken]
    pool.close()
    np.testing.assert_array_equal(np.concatenate(found), np.arange(COUNT))
    assert made._stats.counts.peak_bytes <= 300_000


def test_samples_that_cannot_be_read_are_replaced(tmp_path):
    jpegs = [picture(number, "JPEG") for number in range(20)]
    ds = tl.dataset(tmp_path / "images", {"image": tl.types.Image("jpeg"), "label": "int64"})
    ds.extend({"image": jpegs, "label": np.arange(20)})
    damage(tmp_path / "images", jpegs[7])
    options = {"shuffle": "global", "on_error": "skip"}
    with ds.loader(4, workers=1, **options) as loader:
        expected = [batch["label"] for batch in loader]
    with ds.loader(4, workers="processes", **options) as loader:
        found = [batch["label"] for batch in loader]
        assert loader.stats()["skipped"] == 1
    np.testing.assert_array_equal(found, expected)
    assert 7 not in np.concatenate(found)


def damage(place, payload):
    """Change a byte of a payload in its data file."""
    (file,) = place.glob("*.parquet")
    raw = file.read_bytes()
    at = raw.index(payload) + len(payload) // 2
    file.write_bytes(raw[:at] + bytes([raw[at] ^ 255]) + raw[at + 1 :])


@pytest.mark.parametrize("name", ["transform", "collate"])
def test_a_function_that_does_not_pickle(ds, name):
    loader = ds.loader(8, workers="processes", **{name: lambda one: one})
    with pytest.raises(InvalidOptionError, match=f"{name}=.*top of a module"):
        next(iter(loader))


def test_a_process_that_may_start_no_others(ds, monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    loader = ds.loader(8, workers="processes")
    with pytest.raises(InvalidOptionError, match="DataLoader"):
        next(iter(loader))


def test_two_iterations_at_once_have_processes_of_their_own(ds):
    """Or each would take batches of the other for its own."""
    options = {"columns": ["label"], "shuffle": True, "seed": 4}
    with ds.loader(8, workers=1, **options) as threads:
        expected = [[batch["label"].tolist() for batch in threads] for _ in range(2)]
    with ds.loader(8, workers="processes", **options) as loader:
        both = iter(loader), iter(loader)
        found = [[next(one)["label"].tolist()] for one in both]
        for one, labels in zip(both, found, strict=True):
            labels += [batch["label"].tolist() for batch in one]
    assert found == expected


def test_who_takes_from_a_loader_that_was_closed_is_told(ds):
    with ds.loader(8, workers="processes") as loader:
        taken = iter(loader)
        next(taken)
        loader.close()
        with pytest.raises(LoaderClosedError, match="iterate over it anew"):
            next(taken)


def test_a_loop_that_begins_anew_while_the_loader_is_closed_keeps_its_processes(ds, monkeypatch):
    close, again = ProcessBatches.close, []

    def closed(self):
        close(self)
        if not again:  # as the loop does in another thread, for it is told so by now
            again.append(iter(loader))
            again.append(next(again[0]))

    with ds.loader(8, ["label"], workers="processes") as loader:
        taken = iter(loader)
        next(taken)
        monkeypatch.setattr(ProcessBatches, "close", closed)
        loader.close()
        assert len([*again[0]]) == len(loader) - 1


def test_a_thread_that_is_woken_to_end_sees_that_it_shall(ds, monkeypatch):
    """Or it waited for ever, and with it two pipes, if it was quicker than who woke it."""
    made, pool = batches(ds)
    write, seen = os.write, []

    def written(file, data):
        seen.append(made._stopped)
        return write(file, data)

    with made:
        list(made)
        monkeypatch.setattr(os, "write", written)
    pool.close()
    assert seen == [True]
    assert not made._thread.is_alive()


def test_leaving_in_the_middle_ends_all(ds):
    made, pool = batches(ds, transforms.doubled)
    with made:
        next(iter(made))
    assert not pool.is_open
    assert_ended([process.pid for process in pool.processes])


SCRIPT = """
import sys, threading, time
import tensorlake_spark as tl
import sample_transforms

def tell(loader):
    while loader._pool is None:
        time.sleep(0.01)
    print(*[process.pid for process in loader._pool.processes], flush=True)

def main():
    ds = tl.dataset(sys.argv[1])
    with ds.loader(8, workers="processes", transform=sample_transforms.{transform}) as loader:
        threading.Thread(target=tell, args=(loader,), daemon=True).start()
        next(iter(loader))

{guard}main()
"""


def script(tmp_path, ds, transform="", guard="", text=SCRIPT, **environment):
    """Start a script that iterates over a loader with processes."""
    file = tmp_path / "train.py"
    file.write_text(text.format(transform=transform, guard=guard) if transform else text)
    support = pathlib.Path(transforms.__file__).parent
    path = os.pathsep.join([str(support), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(file), ds.uri],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def test_a_script_without_a_main_guard_is_told(tmp_path, ds):
    _, said = script(tmp_path, ds, "doubled", "").communicate(timeout=120)
    assert "LoaderWorkerError" in said
    assert 'if __name__ == "__main__":' in said


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_their_parent(tmp_path, ds, ends):
    with script(tmp_path, ds, "endless", 'if __name__ == "__main__":\n    ') as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) >= 2
        parent.send_signal(ends)
        parent.communicate(timeout=120)
    assert parent.returncode != 0
    assert_ended(pids)


DELIVERING = """
import os, sys
import tensorlake_spark as tl
import sample_transforms

def main():
    ds = tl.dataset(sys.argv[1])
    loader = ds.loader(20, workers="processes", transform=sample_transforms.doubled)
    kept = [batch for _ in range(2) for batch in loader]
    print(sum("tensorlake-batch" in line for line in open("/proc/self/maps")))
    for _ in loader:
        print(*[process.pid for process in loader._pool.processes], flush=True)
        sys.stdin.readline()

if __name__ == "__main__":
    main()
"""


def held(pid):
    """Return how many pieces of shared memory a process maps or has open."""
    folder = pathlib.Path("/proc") / str(pid)
    try:
        mapped = (folder / "maps").read_text().count("tensorlake-batch")
        opened = [os.readlink(file) for file in (folder / "fd").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return mapped + sum("tensorlake-batch" in name for name in opened)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_parent_that_is_killed_while_it_holds_batches_leaves_no_memory(tmp_path, ds):
    """Shared memory has no name: it is gone when the last process is that maps it, and no file is left."""
    shared, folder = set(os.listdir("/dev/shm")), tmp_path / "temporary"
    folder.mkdir()
    with script(tmp_path, ds, text=DELIVERING, TMPDIR=str(folder)) as parent:
        assert int(parent.stdout.readline()) >= 2, "batches are in shared memory"
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
        parent.communicate(timeout=120)
    assert_ended(pids)
    assert sum(held(pid) for pid in [parent.pid, *pids]) == 0
    assert set(os.listdir("/dev/shm")) <= shared
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_worker_that_is_killed_leaves_no_memory(ds):
    before = held(os.getpid())
    with ds.loader(15, workers="processes", transform=transforms.doubled) as loader:
        taken = iter(loader)
        batch = next(taken)
        pids = [process.pid for process in loader._pool.processes]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(LoaderWorkerError, match="ended by signal 9"):
            list(taken)
            list(loader)
    assert batch["x"].nbytes > 64 << 10, "it came by shared memory"
    assert_ended(pids)
    del batch, taken
    gc.collect()
    assert held(os.getpid()) <= before


def test_counts_are_those_of_threads(ds):
    """Each batch counts once, wherever it was made, and so do the seconds that were spent on it."""
    counts = []
    for workers in (1, "processes"):
        with ds.loader(8, workers=workers, transform=transforms.doubled) as loader:
            for _ in range(2):
                for batch in loader:
                    del batch["pid"]
            counts.append(loader.stats())
    for name in ("batches", "samples", "bytes", "skipped", "hits", "misses"):
        assert counts[0][name] == counts[1][name], name
    assert counts[1]["samples"] == 2 * COUNT
    for found in counts:
        assert found["fetch_seconds"] > 0
        assert found["decode_seconds"] > 0
        assert found["transform_seconds"] > 0
