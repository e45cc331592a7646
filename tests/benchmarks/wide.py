"""Wide tables: 10,000 features of float32 beside one Parquet file; ``--features`` and ``--rows`` make it smaller.

Every round starts a fresh process for each of both. It opens the table and reads one feature; then, with the table held
open, another one, 1,000 scattered and 1,000 adjacent ones by name. All that is imported, pandas too, is imported before
the clock starts, and what imports leave to Python's garbage collector is collected. What is read is compared with what was written. Beside the time by the clock stands the processor time of
all threads, which other programs on the machine disturb less.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas  # noqa: F401 - pyarrow imports it when it first makes an array
import pyarrow as pa
import pyarrow.pandas_compat
import pyarrow.parquet as pq

import tensorlake_spark as tl

ENGINES = ("lake", "parquet")
AGAIN = 5
# Name, and what the ratio to Parquet should be at the most.
FIGURES = {
    "open + 1": 0.25, "1, held open": None, "many scattered": 1.0, "many adjacent": 0.25,
}  # fmt: skip
CPU = ", processor"
LIMITS_MS = {"open + 1": 6.0, "1, held open": 1.0}


def table_of(rows: int, features: int, first: int = 0) -> pa.Table:
    """Return features of random numbers, each known by its own number."""
    rng = np.random.default_rng(first)
    names = [f"feature_{k:05}" for k in range(first, first + features)]
    columns = rng.standard_normal((features, rows), np.float32)
    columns[:, 0] = np.arange(first, first + features)
    return pa.Table.from_arrays([pa.array(column) for column in columns], names=names)


def opened(engine: str, folder: Path) -> Any:
    """Return a handle of a table."""
    if engine == "parquet":
        return pq.ParquetFile(folder / "wide.parquet")
    return tl.open(folder / "lake").features("wide")


def read(engine: str, handle: Any, names: list[str]) -> pa.Table:
    """Return some features."""
    return handle.read(columns=names) if engine == "parquet" else handle.read(names)


def check(found: pa.Table, names: list[str]) -> None:
    """Raise if they are not those that were asked for."""
    have = {name: found[name][0].as_py() for name in found.column_names}
    if have != {name: float(name.removeprefix("feature_")) for name in names}:
        raise AssertionError(f"other values than were written, of {len(names)} features")


def child(engine: str, folder: Path, features: int) -> dict[str, float]:
    """Return the milliseconds of every figure."""
    tl.open(folder / "lake2")  # all modules of the package are imported
    gc.collect()
    rng = np.random.default_rng(os.getpid())
    many = min(1000, features // 10)
    name = "feature_{:05}".format
    out: dict[str, float] = {}
    began: dict[str, float] = {}

    def timed(figure: str, work: Callable[[], pa.Table], names: list[str]) -> None:
        for clock, kind in ((time.perf_counter, ""), (time.process_time, CPU)):
            began[kind] = clock()
        found = work()
        for clock, kind in ((time.perf_counter, ""), (time.process_time, CPU)):
            took = (clock() - began[kind]) * 1e3
            out[figure + kind] = min(out.get(figure + kind, np.inf), took)
        check(found, names)

    one = [name(int(rng.integers(features)))]
    handle: Any = None

    def open_and_read() -> pa.Table:
        nonlocal handle
        handle = opened(engine, folder)
        return read(engine, handle, one)

    timed("open + 1", open_and_read, one)
    for _ in range(AGAIN):
        other = [name(int(rng.integers(features)))]
        timed("1, held open", lambda: read(engine, handle, other), other)  # noqa: B023
        scattered = [name(k) for k in rng.permutation(features)[:many].tolist()]
        timed("many scattered", lambda: read(engine, handle, scattered), scattered)  # noqa: B023
        first = int(rng.integers(features - many + 1))
        adjacent = [name(k) for k in range(first, first + many)]
        timed("many adjacent", lambda: read(engine, handle, adjacent), adjacent)  # noqa: B023
    return out


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def report(times: dict[str, dict[str, list[float]]], added: float, sizes: dict[str, int]) -> bool:
    """Print the medians and say whether they are as they should be."""
    print(f"{'':16} {'lake ms':>9} {'parquet ms':>11} {'ratio':>7}  should be")
    good = True
    for figure, most in FIGURES.items():
        lake, parquet = (statistics.median(times[engine][figure]) for engine in ENGINES)
        limit = LIMITS_MS.get(figure)
        ok = (most is None or lake / parquet <= most) and (limit is None or lake <= limit)
        wanted = [f"ratio <= {most}"] * (most is not None) + [f"<= {limit} ms"] * (
            limit is not None
        )
        print(
            f"{figure:16} {lake:9.2f} {parquet:11.2f} {lake / parquet:7.3f}  {', '.join(wanted)}: {'yes' if ok else 'NO'}"
        )
        good &= ok
        lake, parquet = (statistics.median(times[engine][figure + CPU]) for engine in ENGINES)
        print(f"{CPU.strip(', '):>16} {lake:9.2f} {parquet:11.2f} {lake / parquet:7.3f}")
    ok = added <= 1.1
    print(f"100 features more write {added:.3f} of their bytes, <= 1.1: {'yes' if ok else 'NO'}")
    print(f"stored bytes: lake {sizes['lake']:,}, parquet {sizes['parquet']:,}")
    return good and ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child[0], Path(given.child[1]), given.features)))
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = table_of(given.rows, given.features)
        pq.write_table(table, folder / "wide.parquet")
        features = tl.open(folder / "lake").features("wide").write(table)
        sizes = {"lake": size_of(folder / "lake"), "parquet": size_of(folder / "wide.parquet")}
        sizes["parquet"] = (folder / "wide.parquet").stat().st_size
        times: dict[str, dict[str, list[float]]] = {
            engine: {figure + kind: [] for figure in FIGURES for kind in ("", CPU)}
            for engine in ENGINES
        }
        for _ in range(given.rounds):
            for engine in ENGINES:
                done = subprocess.run(
                    [sys.executable, __file__, "--features", str(given.features), "--child", engine, place],
                    check=True, capture_output=True, text=True, timeout=600,
                )  # fmt: skip
                for figure, ms in json.loads(done.stdout).items():
                    times[engine][figure].append(ms)
        more = table_of(given.rows, 100, given.features)
        features.add(more)
        added = (size_of(folder / "lake") - sizes["lake"]) / more.nbytes
        return 0 if report(times, added, sizes) else 1


if __name__ == "__main__":
    sys.exit(main())
