"""Operations on stored tensors beside a full read of the same tensor; a part of bench_operations.

Times are processor times of all threads, which other programs disturb less, and those of the clock.

Reads and operations take turns, and of each the best of several counts. ``python tests/benchmarks/stored_operations.py``
runs it; ``--tiny`` with small tensors. Both bodies of the kernels are measured: NumPy's, and where numba is there the
compiled ones, each through all turns. Left to itself a process changes from one to the other in the middle.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import workloads

import tensorlake_spark as tl
from tensorlake_spark.kernel_switch import SWITCH, installed

ROUNDS = 5

LIMIT, SLICE_LIMIT = 1.2, 2.0
"""Shares of the full read, and of the slice, that operations may take."""


Share = tuple[float, float]
"""Of the processor time, and of the time by the clock."""


def ratios(calls: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, Share]:
    """Return the times of calls as shares of those of the first one."""
    best = {name: (float("inf"), float("inf")) for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            work, clock = time.process_time(), time.perf_counter()
            result = call()
            took = time.process_time() - work, time.perf_counter() - clock
            best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
            del result
    first = next(iter(best.values()))
    return {name: (work / first[0], clock / first[1]) for name, (work, clock) in best.items()}


def measured(ref: tl.TensorRef, axis: int) -> dict[str, Share]:
    """Return the shares of a full read that operations over one axis take."""
    return ratios(
        {
            "full read": lambda: ref[...],
            "sum": lambda: ref.sum(axis=axis),
            "var": lambda: ref.var(axis=axis),
            "argmax": lambda: ref.argmax(axis=axis),
            "norm": lambda: ref.norm(axis=axis),
        }
    )


def one_day(ref: tl.TensorRef) -> dict[str, Share]:
    """Return the share of the slice of a day that its sum takes."""
    return ratios(
        {"slice": lambda: ref[90], "sum of a day": lambda: ref.view[90].sum()}, 3 * ROUNDS
    )


def shares(lake: tl.Lake) -> Iterator[tuple[str, Share, float]]:
    """Yield what was measured, its share, and how much it may be."""
    for name in ("photos", "uber"):
        ref = lake[name]
        for axis in (0, ref.ndim - 1):
            for operation, share in [*measured(ref, axis).items()][1:]:
                yield f"{name} | {operation}, axis {axis}", share, LIMIT
    yield "uber | sum of a day", one_day(lake["uber"])["sum of a day"], SLICE_LIMIT


def report(tiny: bool) -> str:
    """Write the tensors, measure, and return a table in Markdown."""
    lines = [
        "| tensor | operation | kernels | of the read, processor | by the clock | at most |",
        "|---|---|---|---|---|---|",
    ]
    bodies = ("numpy", "fast") if installed() else ("numpy",)
    with tempfile.TemporaryDirectory() as folder:
        lake = tl.open(folder)
        photos = workloads.photos(12, 64) if tiny else workloads.photos()
        lake.write("photos", photos)
        coords, values, shape = (
            workloads.uber((183, 24, 60, 70), 20_000) if tiny else workloads.uber()
        )
        lake.write("uber", tl.SparseTensor(coords, values, shape))
        for kernels in bodies:
            os.environ[SWITCH] = kernels
            lines += [
                f"| {what} | {kernels} | {work:.2f} | {clock:.2f} | {most} |"
                for what, (work, clock), most in shares(lake)
            ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="small tensors, to see that it runs")
    np.seterr(all="ignore")
    print(report(parser.parse_args().tiny))
