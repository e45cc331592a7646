"""Operations on stored tensors beside a full read of the same tensor, in processor time; a part of bench_operations.

Reads and operations take turns, and of each the best of several counts. ``python tests/benchmarks/stored_operations.py``
runs it; ``--tiny`` with small tensors.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import workloads

import tensorlake_spark as tl

ROUNDS = 5

LIMIT, SLICE_LIMIT = 1.2, 2.0
"""Shares of the full read, and of the slice, that operations may take."""


def ratios(calls: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the processor time of calls as shares of that of the first one."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            result = call()
            best[name] = min(best[name], time.process_time() - start)
            del result
    first = next(iter(best.values()))
    return {name: value / first for name, value in best.items()}


def measured(ref: tl.TensorRef, axis: int) -> dict[str, float]:
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


def one_day(ref: tl.TensorRef) -> dict[str, float]:
    """Return the share of the slice of a day that its sum takes."""
    return ratios(
        {"slice": lambda: ref[90], "sum of a day": lambda: ref.view[90].sum()}, 3 * ROUNDS
    )


def report(tiny: bool) -> str:
    """Write the tensors, measure, and return a table in Markdown."""
    lines = ["| tensor | operation | of the read | at most |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        lake = tl.open(folder)
        photos = workloads.photos(12, 64) if tiny else workloads.photos()
        lake.write("photos", photos)
        coords, values, shape = (
            workloads.uber((183, 24, 60, 70), 20_000) if tiny else workloads.uber()
        )
        lake.write("uber", tl.SparseTensor(coords, values, shape))
        for name in ("photos", "uber"):
            ref = lake[name]
            for axis in (0, ref.ndim - 1):
                for operation, share in [*measured(ref, axis).items()][1:]:
                    lines.append(f"| {name} | {operation}, axis {axis} | {share:.2f} | {LIMIT} |")
        lines.append(
            f"| uber | sum of a day | {one_day(lake['uber'])['sum of a day']:.2f} | {SLICE_LIMIT} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="small tensors, to see that it runs")
    np.seterr(all="ignore")
    print(report(parser.parse_args().tiny))
