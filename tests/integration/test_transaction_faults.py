"""Transactions beside other writers, and transactions that are killed: all of a block, or nothing of it."""

import multiprocessing
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from deltalake import DeltaTable, Field

import tensorlake_spark as tl
from tensorlake_spark.delta.files.table_folder import listing
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

X = np.arange(600.0).reshape(3, 200)


def orphans(uri):
    """Data files that no version has."""
    storage = Storage(uri)
    live = set(Snapshot.open(storage).files.path)
    return {file.path for file in listing(storage) if file.may_have_rows} - live


def settled(place):
    """Tensors that share a file, and a large one."""
    lake = tl.open(place)
    with lake.transaction() as tx:
        for name in "abc":
            tx.write(name, X)
    return lake


@pytest.mark.both_stores
def test_a_block_is_one_commit_or_nothing(place):
    lake = settled(place)
    version = lake.version
    with pytest.raises(ZeroDivisionError), lake.transaction() as tx:
        tx.write("large", np.random.default_rng(0).random(3 << 18))
        tx["a"][0] = -1
        tx.delete("b")
        assert tx["large"].shape == (3 << 18,)
        raise ZeroDivisionError
    assert lake.version == version
    assert list(lake) == ["a", "b", "c"]
    assert not orphans(place)
    with lake.transaction() as tx:
        tx["a"][0] = -1
        tx["a"][1, :5] = 7
        tx.delete("b")
        tx.write("c", X[:1], mode="append")
        assert tx["a"][1, :6].tolist() == [7] * 5 + [205]
    assert lake.version == version + 1
    assert tl.open(place)["a"][0].tolist() == [-1] * 200
    assert (list(lake), lake["c"].shape) == (["a", "c"], (4, 200))
    assert lake.check().ok


KILLED = """
    import os, sys, numpy as np, tensorlake_spark as tl
    from tensorlake_spark.writing import transaction_commit

    def die(*_):
        os.kill(os.getpid(), 9)

    if sys.argv[2] == "before the commit":
        transaction_commit.commit = die
    with tl.open(sys.argv[1]).transaction() as tx:
        tx.write("large", np.random.default_rng(0).random(3 << 18))
        tx["a"][0] = -1
        tx.delete("b")
        if sys.argv[2] == "in the block":
            die()
    raise SystemExit("not killed")
"""


@pytest.mark.both_stores
@pytest.mark.parametrize("when", ["in the block", "before the commit"])
def test_a_killed_block_leaves_the_table_as_it_was(place, when):
    lake = settled(place)
    version = lake.version
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), place, when],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lake.version == version
    for name in "abc":
        np.testing.assert_array_equal(lake[name][...], X)
    left = orphans(place)
    assert left or place.startswith("s3:"), "an object is there when its upload is complete"
    lake.vacuum(0)
    assert not orphans(place)
    for name in "abc":
        np.testing.assert_array_equal(tl.open(place)[name][...], X)
    assert lake.check().ok


def meet(place, mine, barrier, queue):
    """Change a tensor in a block that ends when all others have begun theirs."""
    lake = tl.open(place)
    try:
        with lake.transaction() as tx:
            for name in mine:
                tx[name][0] = len(mine)
            tx.write(f"new/{mine}", X)
            barrier.wait(120)
        queue.put((mine, "landed"))
    except tl.ConcurrentWriteError as error:
        queue.put((mine, str(error)))


@pytest.mark.both_stores
@pytest.mark.parametrize(("one", "two"), [("a", "bc"), ("ab", "c"), ("ab", "bc")])
def test_two_processes_at_once(place, one, two):
    lake = settled(place)
    version = lake.version
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=meet, args=(place, names, barrier, queue)) for names in (one, two)
    ]
    for worker in workers:
        worker.start()
    said = dict(queue.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join(60)
    landed = [names for names, what in said.items() if what == "landed"]
    assert len(landed) == (1 if {*one} & {*two} else 2), said
    for names, what in said.items():
        if what != "landed":
            assert "changed tensor 'b'" in what
            assert "nothing of the transaction was committed, run the block again" in what
        assert (f"new/{names}" in lake) == (what == "landed")
    for name in "abc":
        want = X.copy()
        for names in landed:
            want[0] = len(names) if name in names else want[0]
        np.testing.assert_array_equal(lake[name][...], want)
    assert lake.version == version + len(landed)
    assert lake.check().ok


@pytest.mark.both_stores
def test_rows_that_plain_delta_changed_during_the_block_are_not_written_over(place):
    """The number of a tensor tells nothing of a DELETE or UPDATE by others; the log does."""
    lake = settled(place)
    table = DeltaTable(place, storage_options=Storage(place).log_options)
    table.alter.add_columns([Field("who", "string")])
    change = r"another program changed rows of .* \(of 'a'\); nothing was committed"
    with pytest.raises(tl.ConcurrentWriteError, match=change), lake.transaction() as tx:
        tx["a"][0] = -1
        table.update_incremental()
        table.update(updates={"who": "'me'"}, predicate="nnz > 0")
    rows = DeltaTable(place, storage_options=Storage(place).log_options).to_pandas()
    assert set(rows[rows["nnz"] > 0]["who"]) == {"me"}
    with pytest.raises(tl.ConcurrentWriteError, match=change), lake.transaction() as tx:
        tx.convert("a", layout="coo")
        tx.delete("c")
        table.update_incremental()
        table.delete("id = 'a'")
    assert "a" not in lake
    assert lake["c"].shape == X.shape
    with lake.transaction() as tx:
        tx["b"][0] = -1
        tx.write("d", X)
        table.update_incremental()
        table.optimize.compact()
        lake.write("c", X[:1], mode="append")
        lake.optimize()
    assert lake["b"][0, 0] == -1
    rows = DeltaTable(place, storage_options=Storage(place).log_options).to_pandas()
    data = rows[rows["nnz"] > 0]
    assert set(data[data["id"] == "b"]["who"]) == {"me"}
    assert lake.check().ok


@pytest.mark.local_disk
def test_a_table_that_is_made_anew_during_the_block_does_not_get_it(place, tmp_path):
    lake = settled(place)
    block = lake.transaction()
    anew = "was made anew during the transaction; nothing was committed"
    with pytest.raises(tl.ConcurrentWriteError, match=anew), block as tx:
        tx["a"][0] = -1
        (tmp_path / "lake").rename(tmp_path / "aside")
        settled(place)
    assert lake["a"][0, 1] == 1
    assert not orphans(place)
