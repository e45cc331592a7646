"""What processes of one core do without Spark: how much faster two are than one, on this machine, at the same work."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 3


def alone(folder: Path, files: list[str], count: int) -> dict[str, float]:
    """Return the median seconds in which so many processes, each on a core of its own, write all files and read them.

    Each has a share of the files, which becomes a table of its own.
    """
    context = get_context("spawn")
    tables = [folder / f"alone-{count}-{k}" for k in range(count)]
    shares = [files[k::count] for k in range(count)]
    begin = (context.Barrier(count, timeout=300),)
    with ProcessPoolExecutor(count, context, initializer=_begin, initargs=begin) as pool:
        found = list(pool.map(_work, tables, shares, range(count)))
    # All begin together, so that the slowest is what the round took.
    return {
        name: statistics.median(max(part[name][k] for part in found) for k in range(ROUNDS))
        for name in ("ingest", "read")
    }


_start: Any = None


def _begin(barrier: Any) -> None:
    global _start
    _start = barrier


def _work(table: Path, files: list[str], number: int) -> dict[str, list[float]]:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})  # before any package starts threads
    import tensorlake_spark as tl

    seconds: dict[str, list[float]] = {"ingest": [], "read": []}
    for k in range(-1, ROUNDS):  # the first round is for warmth
        shutil.rmtree(table, ignore_errors=True)
        _start.wait()
        begin = time.perf_counter()
        lake = tl.open(table)
        for i, file in enumerate(files):
            lake.write(f"photos-{i}", np.load(file, mmap_mode="r"), layout="ftsf")
        if k >= 0:
            seconds["ingest"].append(time.perf_counter() - begin)
        _start.wait()
        begin = time.perf_counter()
        for i in range(len(files)):
            lake[f"photos-{i}"][...]
        if k >= 0:
            seconds["read"].append(time.perf_counter() - begin)
    shutil.rmtree(table)
    return seconds
