"""Writes and reads on two workers, and what is left after faults: all of a batch once, or none of it."""

import json
import os
import signal
import time

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from places import ROOT
from writing import with_files_of

import tensorlake_spark as tl

SHAPE = (32, 8, 256, 256)
CELLS, SIDES = 6000, (40, 50, 60)
SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}
ALONE = {"spark.master": "local[2]"}
"""A driver without the cluster, where executors would show nothing more."""


@pytest.fixture(scope="module")
def slabs():
    """What the driver's executors make."""
    made = [np.random.default_rng(k).integers(0, 256, SHAPE[1:], np.uint8) for k in range(SHAPE[0])]
    return np.stack(made)


@pytest.fixture(scope="module")
def cells():
    out = np.zeros(SIDES)
    out.reshape(-1)[np.arange(CELLS) * 7919 % out.size] = np.arange(1, CELLS + 1)
    return out


class Job:
    """A job that a driver does, and the notes of its processes."""

    def __init__(self, driver, number, notes):
        self.driver, self.notes = driver, notes
        self.said = driver.folder / f"{number}.said"

    def wait(self):
        """Wait until it is done."""
        until(lambda: self.said.exists() or self.driver.ended, "the end of a job", self.driver)
        assert self.said.exists(), self.driver.program.text()[-4000:]
        assert self.said.read_text() == "done", self.driver.program.text()[-4000:]
        return self

    def told(self, what):
        """The notes of that name, by partition and attempt."""
        out = {}
        for path in self.notes.glob(f"{what}-*"):
            partition, attempt = map(int, path.name.removeprefix(f"{what}-").split("-"))
            out[partition, attempt] = json.loads(path.read_text())
        return out


class Driver:
    """A driver on the cluster that does one job after the other."""

    def __init__(self, cluster, folder, **conf):
        self.folder = folder
        self.count = 0
        self.program = cluster.submit(folder, **conf)

    @property
    def ended(self):
        return self.program.popen.poll() is not None

    def ask(self, job, lake, trouble="", **options):
        """Let it begin a job; `trouble` is what befalls a writer."""
        notes = self.folder / f"notes{self.count}"
        notes.mkdir()
        asked = {"job": job, "lake": lake, "notes": notes, "trouble": trouble, "options": options}
        self._put(json.dumps(asked, default=str))
        return Job(self, self.count - 1, notes)

    def do(self, *arguments, **options):
        """Let it do a job, and wait."""
        return self.ask(*arguments, **options).wait()

    def _put(self, text):
        (self.folder / "asked").write_text(text)
        (self.folder / "asked").rename(self.folder / f"{self.count}.json")
        self.count += 1

    def stop(self):
        """Let it end by itself, and end what it left."""
        try:
            if not self.ended:
                self._put("null")
            return self.program.wait()
        finally:
            self.program.end()


def until(ready, what, driver):
    """Wait until `ready` returns something true, and return that."""
    stop = time.monotonic() + 240
    while not (got := ready()):
        assert time.monotonic() < stop, f"{what} did not come\n{driver.program.text()[-4000:]}"
        time.sleep(0.05)
    return got


class Drivers:
    """Hands out the driver that has all cores of the cluster, a new one only where it has to."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.conf, self.driver, self.count = {}, None, 0

    def __call__(self, **conf):
        if self.driver is None or self.driver.ended or conf != self.conf:
            self.end()
            self.count += 1
            self.driver = Driver(self.cluster, self.folder / str(self.count), **conf)
            self.conf = conf
        return self.driver

    def end(self):
        """End the driver that there is."""
        if self.driver is not None and not self.driver.ended:
            assert self.driver.stop() == 0


@pytest.fixture(scope="module")
def drivers(cluster, tmp_path_factory):
    """Tests of this page share drivers, as each takes seconds to start."""
    made = Drivers(cluster, tmp_path_factory.mktemp("drivers"))
    yield made
    made.end()


@pytest.fixture
def driver(drivers):
    """A driver with nothing special."""
    return drivers()


def stored(path):
    """The data files of a table's newest version, after a look that each row is in them once."""
    uris = [uri.removeprefix("file://") for uri in DeltaTable(path).file_uris()]
    rows = [
        (row["id"], row["seq"])
        for uri in uris
        for row in pq.read_table(uri, columns=["id", "seq"]).to_pylist()
    ]
    assert len(set(rows)) == len(rows), "a row is there twice"
    return {os.path.basename(uri) for uri in uris}


def files(path):
    return {p.name for p in path.glob("*.parquet")}


def check(path, **arrays):
    """Compare all tensors, before and after vacuum, which leaves nothing that no commit names."""
    lake = tl.open(path)
    assert list(lake) == sorted(arrays)
    for _ in range(2):
        for name, array in arrays.items():
            got = lake[name][:]
            got = got.todense() if isinstance(got, tl.SparseTensor) else got
            np.testing.assert_array_equal(got, array)
        lake.vacuum(0)
    assert files(path) == stored(path)


def check_read(job, slabs, cells):
    """Compare what a driver read with all it should have."""
    np.testing.assert_array_equal(np.load(job.notes / "slabs.npy"), slabs)
    part = slabs[3:20:4, 2, ::-1, 7:99]
    np.testing.assert_array_equal(np.load(job.notes / "slice.npy"), part)
    np.testing.assert_array_equal(np.load(job.notes / "cells.npy"), cells)


def kill_hanging(cluster, driver, job):
    """Kill the executor of the task that hangs, and wait for the end of the job."""
    told = until(lambda: job.told("hangs"), "a task that hangs", driver)
    victim = told[1, 0]["executor"]
    assert victim in cluster.executors()
    os.kill(victim, signal.SIGKILL)
    job.wait()
    assert victim not in cluster.executors()


def test_two_executors_write_and_read_with_the_package_of_the_archive(
    cluster, driver, tmp_path, slabs, cells, archive
):
    lake = tmp_path / "lake"
    jobs = [driver.do(name, lake, "watch") for name in ("slabs", "cells")]
    check(lake, slabs=slabs, cells=cells)
    read = driver.do("read", lake)
    for job in jobs:
        assert sorted(job.told("written")) == [(k, 0) for k in range(4)]
    tasks = [job.told("written") for job in jobs] + [read.told("read-slabs")]
    for told in tasks:
        executors = {each["executor"] for each in told.values()}
        assert len(executors) == 2
        assert executors <= cluster.executors()
        for each in told.values():
            assert f"/{archive.name}/tensorlake_spark/" in each["package"]
            assert str(archive.parent) not in each["package"], "a copy that Spark sent"
            assert str(ROOT) not in each["path"]
    check_read(read, slabs, cells)


def test_a_tensor_larger_than_the_memory_of_an_executor(driver, tmp_path):
    """Half of it is written by each of two tasks, and all of it read; an executor's JVM has 512 MiB."""
    shape = (640, 1024, 1024)
    (tmp_path / "files").mkdir()
    with h5py.File(tmp_path / "files" / "x.h5", "w") as file:
        file.create_dataset("x", shape, "u1", chunks=(1, 1024, 1024), fillvalue=3)
    with_files_of(str(tmp_path / "lake"), "1gb")
    written = driver.do(
        "ingest", tmp_path / "lake", "watch", sources=str(tmp_path / "files"), codec="raw"
    )
    assert tl.open(tmp_path / "lake")["stack"].shape == (1, *shape)
    tasks = written.told("written")
    assert sorted(tasks) == [(0, 0), (1, 0)]
    # Half of the tensor are 320 MiB, beside the 130 that Python and Arrow take.
    assert max(task["most"] for task in tasks.values()) < 400 << 20, "a writer holds a few bands"
    job = driver.do("add up", tmp_path / "lake")
    total, most = json.loads((job.notes / "found").read_text())
    assert total == 3 * np.prod(shape)
    # The process may be the one that wrote; Arrow keeps what it had. All of a task's half would be 500 MiB and more.
    assert most < 480 << 20, "a task's Python holds a few batches"


@pytest.mark.parametrize("form", ["slabs", "cells"])
def test_a_task_that_fails_twice(driver, tmp_path, slabs, cells, form):
    path = tmp_path / "lake"
    job = driver.do(form, path, "fail")
    assert set(job.told("fails")) == {(1, 0), (1, 1)}
    assert set(job.told("written")) == {(0, 0), (1, 2), (2, 0), (3, 0)}
    assert files(path) == stored(path), "a task that fails takes its files away"
    check(path, **{form: slabs if form == "slabs" else cells})


def test_an_executor_killed_in_the_middle_of_a_write(cluster, driver, tmp_path, slabs):
    path = tmp_path / "lake"
    job = driver.ask("slabs", path, "hang")
    until(lambda: job.told("hangs"), "a task that hangs", driver)
    assert files(path), "a file is begun"
    kill_hanging(cluster, driver, job)
    assert {partition for partition, _ in job.told("written")} == set(range(4))
    assert (1, 0) not in job.told("written")
    assert files(path) - stored(path), "what the lost task left is not in the table"
    check(path, slabs=slabs)


def test_an_executor_killed_in_the_middle_of_a_read(cluster, driver, tmp_path, slabs, cells):
    lake = tl.open(tmp_path / "lake")
    lake.write("slabs", slabs)
    lake.write("cells", cells, layout="bsgs")
    job = driver.ask("read", tmp_path / "lake", "hang")
    kill_hanging(cluster, driver, job)
    check_read(job, slabs, cells)
    check(tmp_path / "lake", slabs=slabs, cells=cells)


def test_executors_optimise_beside_a_writer_and_one_is_killed(cluster, driver, tmp_path, slabs):
    path = tmp_path / "lake"
    lake = tl.open(path)
    x = slabs[:, 0]
    for k in range(len(x)):
        lake.write("x", x[k : k + 1], mode="append")
    small = files(path)
    job = driver.ask("optimize", path, "hang", target_bytes=8 * x[0].nbytes)
    until(lambda: job.told("hangs"), "a task that hangs", driver)
    lake.write("y", x[:3])
    kill_hanging(cluster, driver, job)
    told = job.told("written")
    assert (1, 1) in told, "the other executor did it"
    assert len({each["executor"] for each in told.values()}) >= 2
    before, after = json.loads((job.notes / "outcome").read_text())
    assert before == len(x)
    assert 2 <= after <= 6, "files near the target"
    assert not small & stored(path)
    check(path, x=x, y=x[:3])


@pytest.fixture
def sources(tmp_path):
    """Files, eight or so for each task of an ingestion, and what they hold."""
    x = np.random.default_rng(1).integers(0, 256, (64, 2, 64, 64), np.uint8)
    (tmp_path / "files").mkdir()
    for k, one in enumerate(x):
        np.save(tmp_path / "files" / f"{k:02}.npy", one)
    return x


def receipts(path):
    return [p for p in path.glob("_tensorlake/**/*") if p.name.startswith("receipt-")]


def test_an_ingestion_whose_task_is_lost_at_its_end(driver, tmp_path, sources):
    """Both attempts leave a receipt; the files of one are committed, those of the other taken away."""
    path = tmp_path / "lake"
    job = driver.do("ingest", path, "late", sources=str(tmp_path / "files"))
    assert {(1, 0), (1, 1)} <= set(job.told("written"))
    assert json.loads((job.notes / "outcome").read_text()) == [64, 0]
    assert files(path) == stored(path)
    assert not receipts(path)
    check(path, stack=sources)


def test_an_ingestion_whose_executor_is_lost_for_good(cluster, driver, tmp_path, sources):
    """What its task does later fails as often as Spark tries it."""
    path = tmp_path / "lake"
    job = driver.ask("ingest", path, "doomed", sources=str(tmp_path / "files"))
    told = until(lambda: job.told("hangs"), "a task that hangs", driver)
    until(lambda: receipts(path), "a task that ends on the other executor", driver)
    os.kill(told[1, 0]["executor"], signal.SIGKILL)
    until(job.said.exists, "the end of a job", driver)
    assert job.said.read_text() != "done"
    assert list(tl.open(path)) == []
    again = driver.do("ingest", path, sources=str(tmp_path / "files"))
    pieces, reused = json.loads((again.notes / "outcome").read_text())
    assert pieces == 64
    assert 4 <= reused <= 60
    assert tl.open(path).version == 1
    assert not receipts(path)
    check(path, stack=sources)


def test_a_driver_killed_before_and_after_its_commit(drivers, tmp_path, slabs, sources):
    path, given = tmp_path / "lake", str(tmp_path / "files")
    lake = tl.open(path)
    lake.write("slabs", slabs[:3])
    batch = {"txnAppId": "day", "txnVersion": "7"}
    both = np.concatenate([slabs[:3], slabs])

    def killed(job, trouble, driver, **options):
        job = driver.ask(job, path, trouble, **options)
        assert driver.program.wait() == -signal.SIGKILL, driver.program.text()[-4000:]
        driver.program.end()
        assert list(job.notes.glob("kill-*"))
        assert not job.said.exists()

    version = DeltaTable(path).version()
    killed("slabs and ingest", "before", drivers(), batch=batch, sources=given)
    assert DeltaTable(path).version() == version
    lost = files(path) - stored(path)
    assert lost, "all files of the batch are there, and in no version"
    assert receipts(path), "and those of the ingestion"
    assert list(tl.open(path)) == ["slabs"]
    np.testing.assert_array_equal(tl.open(path)["slabs"][:], slabs[:3])

    killed("slabs", "after", drivers(**ALONE), **batch)
    assert DeltaTable(path).version() == version + 1
    assert files(path) - stored(path) == lost, "no file of this batch is left over"
    np.testing.assert_array_equal(tl.open(path)["slabs"][:], both)

    driver = drivers(**SPECULATIVE)  # as the next test, which saves the start of another
    driver.do("slabs", path, **batch)
    assert DeltaTable(path).version() == version + 1, "the batch is there already"
    driver.do("slabs", path, txnAppId="day", txnVersion="8")
    resumed = driver.do("ingest", path, sources=given)
    assert json.loads((resumed.notes / "outcome").read_text()) == [64, 64], "nothing is read again"
    assert DeltaTable(path).version() == version + 3
    assert not receipts(path)
    check(path, slabs=np.concatenate([both, slabs]), stack=sources)


def test_two_copies_of_a_task_that_both_end(drivers, tmp_path, slabs, cells):
    """Speculative execution: both copies have written their files before either may commit."""
    for form, array in (("slabs", slabs), ("cells", cells)):
        path = tmp_path / form
        job = drivers(**SPECULATIVE).do(form, path, "slow")
        copies = [each for (partition, _), each in job.told("written").items() if partition == 1]
        assert len({each["executor"] for each in copies}) == 2
        assert files(path) - stored(path), "what the other copy wrote is not in the table"
        check(path, **{form: array})
