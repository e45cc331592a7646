"""Writers beside each other, killed writers, and what vacuum does about the rest."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from examples import mostly
from races import before_call

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import commit_name
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.writing import write


def run(code, *args, **kwargs):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


def append_ten(path, number):
    lake = tl.open(path)
    for i in range(10):
        lake.write(f"t{number}", np.full((1, 4), 10 * number + i), mode="append")


def test_eight_processes_with_ten_commits_each_all_land(tmp_path):
    """Every process writes a tensor of its own, from the creation of the table on."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_ten, args=(tmp_path / "lake", n)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    lake = tl.open(tmp_path / "lake")
    assert len(lake) == 8
    for n in range(8):
        np.testing.assert_array_equal(lake[f"t{n}"][:, 0], 10 * n + np.arange(10))
    marks = []
    for version in range(1, 81):
        said = Path(lake.uri, commit_name(version)).read_text()
        marks.append(json.loads(said.splitlines()[0])["commitInfo"]["tensorlake.commit"])
    assert len({*marks}) == 80, "one line of versions, none of them written twice"
    assert lake.version == 80
    assert not list(Path(lake.uri, "_delta_log").glob("*.tmp"))


def append_rows(path, number):
    for i in range(5):
        tl.open(path).write("shared", np.full((1, 3), 10 * number + i), mode="append")


def test_appends_to_one_tensor_are_computed_anew_and_none_is_lost(tmp_path):
    tl.open(tmp_path / "lake").write("shared", np.full((1, 3), -1))
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_rows, args=(tmp_path / "lake", n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    x = tl.open(tmp_path / "lake")["shared"][:]
    assert sorted(x[:, 0].tolist()) == [-1, *range(5), *range(10, 15), *range(20, 25)]
    assert (x == x[:, :1]).all()


def test_of_two_overwrites_one_wins_and_one_is_told(tmp_path):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.zeros(4))

    def slabs():
        yield np.ones(2)
        tl.open(tmp_path / "lake").write("x", np.full(3, 7.0), mode="overwrite")
        yield np.ones(2)

    with pytest.raises(tl.ConcurrentWriteError, match="in version 2"):
        lake.write("x", slabs(), mode="overwrite")
    np.testing.assert_array_equal(lake["x"][:], [7, 7, 7])
    live = set(Snapshot.open(Storage(lake.uri)).files.path)
    newest = {p.name for p in Path(lake.uri).glob("*.parquet")}
    assert live <= newest
    assert len(newest) == 2, "the loser's files are gone; the overwritten one waits for vacuum"


def test_an_overwrite_with_an_array_is_not_repeated_over_that_of_another(tmp_path, monkeypatch):
    """An append would be: its data is there still."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.zeros(4))
    other = tl.open(tmp_path / "lake")
    before_call(
        monkeypatch,
        write,
        "_write_new",
        lambda: other.write("x", np.full(3, 7.0), mode="overwrite"),
    )
    with pytest.raises(tl.ConcurrentWriteError, match="in version 2"):
        lake.write("x", np.ones(4), mode="overwrite")
    np.testing.assert_array_equal(lake["x"][:], [7, 7, 7])


def test_an_assignment_to_a_tensor_that_changed_is_refused(tmp_path):
    lake = tl.open(tmp_path / "lake")
    ref = lake.write("x", np.zeros(4))
    lake.write("y", np.zeros(4))
    ref[0] = 1  # another tensor's commit is no conflict
    lake.write("x", np.zeros(1), mode="append")
    with pytest.raises(tl.ConcurrentWriteError, match="take a new reference"):
        ref[0] = 2
    np.testing.assert_array_equal(lake["x"][:], [1, 0, 0, 0, 0])


def test_a_commit_from_an_old_number_is_stale(tmp_path):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.zeros(4))
    storage = Storage(lake.uri)
    with pytest.raises(StaleChange):
        commit(storage, Change({"x": None}, []))
    snapshot = Snapshot.open(storage)
    number = snapshot.transaction(app_of("x"))
    after = commit(storage, Change({"x": number}, []))
    assert after.transaction(app_of("x")) == number + 1


KILLED = """
    import os, sys, numpy as np, tensorlake_spark as tl
    from tensorlake_spark.writing import pipeline as put

    def die(*_):  # all data files are written, and the log knows none of them
        os.kill(os.getpid(), 9)

    put.commit = die
    lake = tl.open(sys.argv[1])
    exec(sys.argv[2])
"""

CHANGES = {
    "overwrite": 'lake.write("x", np.arange(10**6), mode="overwrite")',
    "append": 'lake.write("x", np.arange(10**6), mode="append")',
    "assign": 'lake["x"][3:5] = 7',
    "assign to a sparse one": 'lake["s"][3:5] = 7',
    "added elements": 'lake.write("s", tl.SparseTensor([[7]], [1.0], (9,)), mode="append", axis=None)',
    "convert": 'lake.convert("s", layout="csf")',
    "delete": 'lake.delete("both/a")',
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_killed_before_its_commit_changes_nothing(tmp_path, change):
    lake = tl.open(tmp_path / "lake")
    x, s = np.arange(1000), tl.SparseTensor([[1, 4]], [2.0, 3.0], (9,))
    lake.write("x", x)
    lake.write("s", s, layout="coo")
    lake.write("both/a", x)
    lake.write("both/b", x)
    lake.optimize()  # tensors share a file, which a change of one of them writes anew
    lake.vacuum(0)
    before, version = set(Path(lake.uri).glob("*.parquet")), lake.version

    def check():
        for name in ("x", "both/a", "both/b"):
            np.testing.assert_array_equal(lake[name][:], x)
        assert lake["s"][:].equals(s)

    killed = run(KILLED, tmp_path / "lake", CHANGES[change])
    _, said = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, said
    orphans = set(Path(lake.uri).glob("*.parquet")) - before
    assert orphans, "files are there that no version has"
    assert lake.version == version
    check()
    assert {path.name for path in orphans} <= set(lake.vacuum(0, dry_run=True))
    assert set(Path(lake.uri).glob("*.parquet")) == before | orphans
    lake.vacuum(0)
    assert set(Path(lake.uri).glob("*.parquet")) == before
    check()


STREAM = """
    import sys, numpy as np, tensorlake_spark as tl

    count, path, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    rng = np.random.default_rng(0)
    base = rng.integers(0, 200, (1, 4096, 4096), np.uint8)  # 16 MiB

    class Images:
        shape, dtype = (count, 4096, 4096), np.dtype("uint8")

        def __getitem__(self, key):
            images = np.arange(count, dtype=np.uint8)[key[0]] % np.uint8(50)
            return base[0][key[1:]] + images[:, None, None]

    data = Images() if kind == "like" else (base + np.uint8(i % 50) for i in range(count))
    ref = tl.open(path).write("x", data)
    assert ref.shape == (count, 4096, 4096)
    for i in (0, count // 2, count - 1):
        assert np.array_equal(ref[i], base[0] + np.uint8(i % 50))
    # VmHWM begins with the program; ru_maxrss would remember the process that started it.
    status = open('/proc/self/status').read()
    print(int(status.split('VmHWM:')[1].split()[0]) // 1024)
"""


def peak(count, path, kind):
    done = run(STREAM, count, path, kind)
    out, err = done.communicate(timeout=1200)
    assert done.returncode == 0, err
    return int(out)


@pytest.mark.parametrize("kind", mostly([("slabs",), ("like",)], [("slabs",)]))
def test_memory_of_a_streamed_write_does_not_grow_with_the_tensor(tmp_path, kind):
    """Of slabs, and of an object that has a shape, a dtype and ``__getitem__``, and nothing else."""
    small, large = peak(4, tmp_path / "small", kind), peak(32, tmp_path / "large", kind)
    assert large < 512
    assert large < small + 150, (small, large)


@pytest.mark.soak
def test_four_gigabytes_stream_within_512_mb(tmp_path):
    assert peak(256, tmp_path / "lake", "slabs") < 512


def child(path, queue):
    lake_open = os.path.isdir(path)
    try:
        queue.put((lake_open, float(tl.open(path)["x"][3])))
    except BaseException as error:
        queue.put((type(error).__name__, str(error)))


def test_a_spawned_child_reads(tmp_path):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.arange(9.0))
    assert lake["x"][3] == 3
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=child, args=(lake.uri, queue))
    worker.start()
    assert queue.get(timeout=120) == (True, 3.0)
    worker.join(60)
