"""Batches from processes: the same as from threads; and whatever dies, nothing is left and nobody waits."""

import functools
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
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError, LoaderWorkerError
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
        EpochSetting(5, order.count, order.batch_size),
        pool,
        memory,
        4,
        LoaderStats(),
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


def test_what_does_not_come_back(ds):
    made, _ = batches(ds, transforms.as_function)
    with made, pytest.raises(InvalidSampleError, match="one process to another"):
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
        found = [batch["label"] for batch in made]
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


def script(tmp_path, ds, transform, guard):
    """Start a script that iterates over a loader with processes."""
    file = tmp_path / "train.py"
    file.write_text(SCRIPT.format(transform=transform, guard=guard))
    support = pathlib.Path(transforms.__file__).parent
    path = os.pathsep.join([str(support), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(file), ds.uri],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
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
