"""How far a table goes: the Delta log measured with 1,000 to 100,000 files, and 100 TB on 1,000 executors.

``make bench-scale`` writes a table with the constants of this machine and what follows from them. The data
files are entries of the log only, with real statistics; one of them is there, and is what a slice finds.
"""

from __future__ import annotations

import argparse
import heapq
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import machine, peak, start_child, tell, versions

SCRIPT = Path(__file__)
FILES = (1_000, 10_000, 100_000)
MIB, GIB, TB = 1 << 20, 1 << 30, 10**12

STORED = 100 * TB
EXECUTORS, CORES = 1_000, 4
REQUEST_S, SLOW_S, SLOW_SHARE = 0.03, 1.0, 0.001
"""An object store's answer: usually, and now and then."""

DECODED_PER_S = 250e6
"""Bytes that a core decodes in a second, about."""

TASKS_PER_S = 2_000
"""Tasks that a Spark driver starts in a second, about."""


class Log(NamedTuple):
    """What the log of a table of so many files costs.

    Attributes
    ----------
    files : int
    commit_bytes : int
        Of the one commit that names them.
    commit_s, open_s, plan_s : float
        To commit them; to open the table; to plan a slice that needs one of them.
    memory : float
        By how much opening and planning raise the peak of a process, in MB.
    """

    files: int
    commit_bytes: int
    commit_s: float
    open_s: float
    plan_s: float
    memory: float


def main() -> int:
    """Measure, compute, and write both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    parser.add_argument("--files", type=int, nargs="+", default=list(FILES))
    parser.add_argument("--child", choices=("commit", "plan"), help=argparse.SUPPRESS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        tell(commit(args.table, args.files[0]) if args.child == "commit" else plan(args.table))
        return 0
    logs = []
    for count in args.files:
        with tempfile.TemporaryDirectory() as folder:
            table = ["--table", folder, "--files", str(count)]
            made, found = (start_child(SCRIPT, [part, *table]) for part in ("commit", "plan"))
        if isinstance(made, str) or isinstance(found, str):
            print(f"{count} files: {made} {found}", file=sys.stderr)
            return 1
        logs.append(Log(count, **made, **found))
    text = report(logs, message_bytes())
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "scale.md").write_text(text)
    (args.out / "scale.json").write_text(json.dumps([log._asdict() for log in logs], indent=1))
    print(text)
    return 0


def commit(table: str, count: int) -> dict[str, Any]:
    """Make a table of one tensor with `count` files more, in one commit."""
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    import tensorlake_spark as tl

    tl.open(table).write("x", np.ones((8, 3, 64, 64), np.uint8))
    handle = DeltaTable(table)
    log = Path(table) / "_delta_log"
    adds = [
        json.loads(line) for f in sorted(log.glob("*.json")) for line in f.read_text().splitlines()
    ]
    (stats,) = (json.loads(a["add"]["stats"]) for a in adds if "add" in a)
    made = []
    for k in range(count):
        least, most = stats["minValues"], stats["maxValues"]
        least["lo"]["d0"], most["hi"]["d0"] = 8 * (k + 1), 8 * (k + 2)
        least["nnz"] = 1
        name = f"x-{k:08}-00000000-0000-0000-0000-000000000000.parquet"
        made.append(AddAction(name, 128 * MIB, {}, 1_700_000_000_000, True, json.dumps(stats)))
    start = time.perf_counter()
    handle.create_write_transaction(made, "append", handle.schema())
    seconds = time.perf_counter() - start
    return {"commit_s": seconds, "commit_bytes": max(f.stat().st_size for f in log.glob("*.json"))}


def plan(table: str) -> dict[str, Any]:
    """Open the table and plan a slice."""
    import tensorlake_spark as tl

    before = peak()
    start = time.perf_counter()
    ref = tl.open(table)["x"]
    opened = time.perf_counter()
    found = ref.explain(np.s_[3:5])
    planned = time.perf_counter()
    if len(found.files) != 1:
        raise AssertionError(f"{len(found.files)} files are needed")
    return {"open_s": opened - start, "plan_s": planned - opened, "memory": peak() - before}


def message_bytes() -> int:
    """Return how many bytes a task sends to the driver for one file."""
    from tensorlake_spark.delta.log.data_file import DataFile
    from tensorlake_spark.spark.source.commit_message import TensorCommitMessage

    def size(count: int) -> int:
        stats = json.dumps(
            {"minValues": {"lo": {f"d{k}": 10**6 for k in range(4)}}, "x": "y" * 500}
        )
        files = tuple(DataFile(f"{k:064}.parquet", 128 * MIB, stats + str(k)) for k in range(count))
        return len(pickle.dumps(TensorCommitMessage(files)))

    return (size(200) - size(100)) // 100


def per_file(logs: Sequence[Log], field: str) -> float:
    """Return what one file more costs: the slope between the smallest and the largest table."""
    first, last = logs[0], logs[-1]
    return max(0.0, (getattr(last, field) - getattr(first, field)) / (last.files - first.files))


def makespan(tasks: int, requests: int, seconds: float, seed: int = 0) -> float:
    """Simulate a job: how long `tasks` take that the driver starts one by one on all cores.

    Parameters
    ----------
    tasks : int
        Of equal size.
    requests : int
        That each sends one after the other.
    seconds : float
        That each computes.
    """
    rng = np.random.default_rng(seed)
    slow = rng.binomial(requests, SLOW_SHARE, tasks)
    took = seconds + REQUEST_S * (requests - slow) + SLOW_S * slow
    free = [0.0] * min(tasks, EXECUTORS * CORES)
    end = 0.0
    for number, length in enumerate(took.tolist()):
        start = max(heapq.heappop(free), number / TASKS_PER_S)
        heapq.heappush(free, start + length)
        end = max(end, start + length)
    return end


def full_read(partitions: int) -> float:
    """Return the minutes of reading everything in so many partitions, each with a request for 8 MiB."""
    nbytes = STORED / partitions
    return makespan(partitions, 2 + round(nbytes / (8 * MIB)), nbytes / DECODED_PER_S) / 60


def report(logs: Sequence[Log], message: int) -> str:
    """Return the measured constants and the model as Markdown."""
    about = machine()
    packages = ", ".join(f"{k} {v}" for k, v in versions(["tensorlake-spark", "deltalake"]).items())
    lines = [
        f"Date {about['date']}, {about['cpus']} CPUs ({about['machine']}), Python {about['python']}; {packages}. "
        "Command: `make bench-scale`.",
        "",
        "| files | commit, MB | commit s | open s | plan a slice s | memory to open and plan, MB |",
        "|---|---|---|---|---|---|",
    ]
    for log in logs:
        lines.append(
            f"| {log.files:,} | {log.commit_bytes / 1e6:.1f} | {log.commit_s:.2f} | {log.open_s:.2f} "
            f"| {log.plan_s:.2f} | {log.memory:.0f} |"
        )
    lines += [
        "",
        f"For each file, a task sends {message:,} bytes to the driver.",
        "",
        "| 100 TB, files of | files | log MB | commit s | open and plan s | memory of the driver MB "
        "| a slice of 1 GB, requests |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in (128 * MIB, GIB, 4 * GIB):
        files = -(-STORED // size)
        planning = files * (per_file(logs, "open_s") + per_file(logs, "plan_s"))
        driver = files * (per_file(logs, "memory") + message / 1e6)
        requests = 2 * (-(-(10**9) // size) + 1) + 10**9 // (8 * MIB)
        lines.append(
            f"| {size // MIB:,} MiB | {files:,} | {files * per_file(logs, 'commit_bytes') / 1e6:,.0f} "
            f"| {files * per_file(logs, 'commit_s'):.1f} | {planning:.1f} | {driver:,.0f} | {requests} |"
        )
    most, small = 100_000, STORED // (32 * MIB)
    lines += [
        "",
        f"| a full read on {EXECUTORS * CORES:,} cores, simulated | minutes |",
        "|---|---|",
        f"| {most:,} partitions | {full_read(most):.0f} |",
        f"| {small:,} partitions of 32 MiB | {full_read(small):.0f} |",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
