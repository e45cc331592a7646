"""Ingestion, optimisation, purges and readers at once on one table, for tests and the benchmark of Spark."""

import multiprocessing
import time
import traceback
from pathlib import Path

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark.jobs import ingest

SIDE = 32


def day_of(number):
    """What is stored of a day: every element tells which day, and where it is."""
    y, x = np.mgrid[:SIDE, :SIDE]
    return ((number * 31 + y * 7 + x) % 251).astype(np.uint8)


def optimise(path, stop):
    done = 0
    while not stop.is_set():
        lake = tl.open(path)
        lake.optimize(min_files=4)
        lake.optimize("days", zorder=("y", "x"))
        lake.vacuum()
        done += 1
    return done


def purge(path, stop):
    """Tensors of users come, and go for good; one user's row leaves a tensor that stays."""
    done = 0
    while not stop.is_set():
        lake = tl.open(path)
        name = f"users/{done}"
        lake.write(name, np.full((8, 64), done % 100 + 1))
        row = done % 8
        lake.purge(name, str(row))
        want = np.full((8, 64), done % 100 + 1)
        want[row] = 0
        np.testing.assert_array_equal(lake[name][...], want)
        lake.purge(name)
        assert name not in lake
        done += 1
    return done


def overwrite(path, stop):
    done = 0
    while not stop.is_set():
        tl.open(path).write("turns", np.full((done % 5 + 1, 40), done), mode="overwrite")
        done += 1
    return done


def read(path, stop):
    rng = np.random.default_rng()
    done = 0
    while not stop.is_set():
        lake = tl.open(path)
        days = lake["days"]
        first = int(rng.integers(0, len(days)))
        stop_ = int(rng.integers(first, len(days))) + 1
        y, x = sorted(rng.integers(0, SIDE + 1, 2)), sorted(rng.integers(0, SIDE + 1, 2))
        key = np.s_[first:stop_, slice(*y), slice(*x)]
        want = np.stack([day_of(i) for i in range(first, stop_)])[:, key[1], key[2]]
        np.testing.assert_array_equal(days[key], want)
        if "turns" in lake:
            turns = np.asarray(tl.open(path)["turns"])  # sparse, or dense after a conversion
            assert (turns == turns[0, 0]).all()
            assert len(turns) == turns[0, 0] % 5 + 1
        done += 1
    return done


def told(work, path, stop, queue):
    try:
        queue.put((work.__name__, work(path, stop), None))
    except BaseException:
        queue.put((work.__name__, 0, traceback.format_exc()))


def together(spark, folder, seconds):
    """Run all for so long, and return how often each of them did its work."""
    path = str(folder / "lake")
    tl.open(path).write("days", day_of(0)[None], axes=("day", "y", "x"), block_shape=(1, 8, 8))
    context = multiprocessing.get_context("spawn")
    stop, queue = context.Event(), context.Queue()
    kinds = (optimise, purge, overwrite, read)
    workers = [context.Process(target=told, args=(k, path, stop, queue)) for k in kinds]
    for worker in workers:
        worker.start()
    end = time.monotonic() + seconds
    days = 1
    try:
        while time.monotonic() < end and all(worker.is_alive() for worker in workers):
            file = folder / f"{days}.npy"
            np.save(file, day_of(days)[None])
            arguments = ["--table", path, "--id", "days", "--concat", "0", "--mode", "append"]
            batch = ["--txn-app-id", "days", "--txn-version", str(days)]
            for _ in range(1 + days % 2):  # every other batch is sent twice
                assert ingest.main([*arguments, *batch, str(file)], spark) == 0
            days += 1
            frame = spark.read.format("tensor").option("id", "days").load(path)
            assert frame.selectExpr("sum(length(tensor.data))").collect()[0][0] == days * SIDE**2
    finally:
        stop.set()
        said = [queue.get(timeout=300) for _ in workers]
        for worker in workers:
            worker.join(60)
    for name, _, error in said:
        assert error is None, f"{name}: {error}"
    lake = tl.open(path)
    want = np.stack([day_of(i) for i in range(days)])
    np.testing.assert_array_equal(lake["days"][...], want)
    assert sorted(lake) == ["days", "turns"]
    report = lake.check()
    assert report.ok, report
    counts = {name: count for name, count, _ in said} | {"ingest": days - 1}
    for number in range(counts["purge"]):
        receipt = lake.purge(f"users/{number}", now=True)
        assert not receipt.pending
        assert not receipt.uncertified
    lake.vacuum(0)
    assert lake.check().findings == ()
    np.testing.assert_array_equal(lake["days"][...], want)
    assert {p.name for p in Path(path).glob("*.parquet")} == set(lake["days"]._snapshot.files.path)
    return counts
