"""A hundred million cells through Spark in bounded memory; `make soak` runs it, `make test` does not."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

CELLS = int(os.environ.get("TENSORLAKE_SOAK_CELLS", 100_000_000))
SHAPE = (1000, 100, 1000, 1000)
EXECUTOR, HEAP = 2 << 30, 1 << 30
"""What the executor may take, and Java's heap in it; the rest is for the Python workers."""

INGEST = """
import json, sys, time
import numpy as np
import tensorlake_spark as tl
from tensorlake_spark.spark import group_cells, local_session

path, count, grouped, shape = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "grouped", json.loads(sys.argv[4])
spark = local_session("local[2]", **{"spark.driver.memory": "1g"})
# A prime that does not divide the size: no two ids meet in one cell, and neighbours lie far apart.
size, prime = int(np.prod(shape)), 6_180_339_887
strides = [int(np.prod(shape[k + 1 :])) for k in range(4)]
linear = f"(id * {prime}L) % {size}L"
columns = [f"({linear}) div {s}L % {n}L as i{k}" for k, (s, n) in enumerate(zip(strides, shape))]
cells = spark.range(0, count, 1, 8).selectExpr(*columns, "cast(id % 97 + 1 as double) as value")
if grouped:
    spark.conf.set("spark.sql.shuffle.partitions", 16)
    cells = group_cells(cells, shape)
start = time.perf_counter()
write = cells.write.format("tensor").mode("append").option("id", "x")
write.option("shape", ",".join(map(str, shape))).save(path)
seconds = time.perf_counter() - start
ref = tl.open(path)["x"]
ids = np.random.default_rng(0).integers(0, count, 1000)
found = ref.vindex[tuple(np.unravel_index([int(i) * prime % size for i in ids], shape))]
right = bool((found.todense() == ids % 97 + 1).all())
stored = ref.stored_bytes / count
print("answer", json.dumps([seconds, ref.nnz, right, stored, ref._meta.totals.rows]))
"""


def memory(root):
    """Return the resident bytes below a process: of Java, of Spark's workers, of the driver's own Python."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            )
    out = [0, 0, 0]
    for pid in parents:
        above = parents[pid]
        while above not in (0, root):
            above = parents.get(above, 0)
        if above != root:
            continue
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").split()
            # What workers share with the process they were forked from counts once.
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            size = next(int(x.split()[1]) << 10 for x in lines if "Pss:" in x)
        except (OSError, StopIteration):
            continue
        kind = (
            0
            if command[:1] and command[0].endswith("java")
            else 1
            if command[-1:] == ["pyspark.worker"]
            else 2
        )
        out[kind] += size
    return out


@pytest.mark.soak
@pytest.mark.parametrize("how", ["as they come", "grouped"])
def test_cells_are_ingested_within_the_memory_of_an_executor(tmp_path, how):
    arguments = [str(tmp_path / "lake"), str(CELLS), how, json.dumps(SHAPE)]
    job = subprocess.Popen(
        [sys.executable, "-c", INGEST, *arguments], stdout=subprocess.PIPE, text=True
    )
    peak = [0, 0, 0, 0]

    def watch():
        while job.poll() is None:
            now = memory(job.pid)
            peak[:] = map(max, peak, [*now, now[0] + now[1]])
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = job.communicate()
    watcher.join()
    (line,) = (x for x in out.splitlines() if x.startswith("answer "))
    seconds, nnz, right, stored, rows = json.loads(line[7:])
    java, workers, driver, both = (f"{size / 2**20:.0f} MiB" for size in peak)
    print(f"\n{how}: {CELLS} cells in {seconds:.0f} s, {stored:.2f} bytes each in {rows} rows; peak of Java "
          f"{java}, of its Python workers {workers}, of both {both}, of the driver's Python {driver}")  # fmt: skip
    assert (nnz, right) == (CELLS, True)
    assert peak[1] < EXECUTOR - HEAP
    assert peak[2] < 1 << 30
