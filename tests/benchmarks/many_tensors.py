"""A lake of many small tensors: what writing them one by one costs, and what finding them does afterwards.

``make bench-many`` prints the figures. Each is the median of fresh processes but for the writes, which are one
process. Imports are not counted, and neither is `optimize`, which nobody calls here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import run_script

WARM = 10
"""Writes before the first that counts: modules are imported, threads started."""

WRITE = """
    import json, sys, time
    import numpy as np, tensorlake_spark as tl

    lake = tl.open(sys.argv[1])
    x = np.arange(64, dtype="f4").reshape(8, 8)
    found = {"wall": [], "cpu": []}
    for i in range(int(sys.argv[2])):
        wall, cpu = time.perf_counter(), time.process_time()
        lake.write(f"t/{i:06}", x + i)
        found["wall"].append(time.perf_counter() - wall)
        found["cpu"].append(time.process_time() - cpu)
    print(json.dumps(found))
"""

READ = """
    import json, sys, time
    import deltalake, numpy, pandas, pyarrow.parquet, tensorlake_spark as tl

    found = {}

    def timed(name, act):
        start = time.perf_counter()
        out = act()
        found[name] = time.perf_counter() - start
        return out

    count = int(sys.argv[2])
    lake = timed("open", lambda: tl.open(sys.argv[1]))
    if sys.argv[3] == "one":
        timed("one", lambda: lake[f"t/{count // 2:06}"])
    elif sys.argv[3] == "list":
        assert len(timed("list", lambda: list(lake))) == count
    else:
        assert len(timed("catalog", lake.catalog)) == count
    print(json.dumps(found))
"""


def growth(seconds: Sequence[float]) -> tuple[float, float]:
    """Return what a write of the first hundred takes, and one of the last, on average.

    Examples
    --------
    >>> growth([9.0] * 10 + [1.0] * 100 + [2.0] * 100)
    (1.0, 2.0)
    """
    first, last = seconds[WARM : WARM + 100], seconds[-100:]
    return sum(first) / len(first), sum(last) / len(last)


def figures(place: str, count: int, repeat: int) -> list[tuple[str, float, float | None]]:
    """Return the rows of the table: what, its figure, and its bound."""
    took = run_script(WRITE, place, count)
    rows: list[tuple[str, float, float | None]] = []
    for kind in ("wall", "cpu"):
        first, last = growth(took[kind])
        rows.append((f"a write of the first 100, {kind} s", first, None))
        rows.append((f"a write of the last 100, {kind} s", last, None))
        rows.append((f"last 100 / first 100, {kind}", last / first, 1.3))
    bounds = {"open": None, "one": 0.05, "list": 1.0, "catalog": 1.0}
    found: dict[str, list[float]] = {name: [] for name in bounds}
    for _ in range(repeat):
        for what in ("one", "list", "catalog"):
            for name, seconds in run_script(READ, place, count, what).items():
                found[name].append(seconds)
    names = {
        "open": "tl.open, s", "one": "lake[id], s", "list": "list(lake), s", "catalog": "lake.catalog(), s",
    }  # fmt: skip
    return rows + [(names[name], median(found[name]), bound) for name, bound in bounds.items()]


def table(rows: Sequence[tuple[str, float, float | None]]) -> str:
    """Return the figures as a table.

    Examples
    --------
    >>> print(table([("list(lake), s", 0.25, 1.0), ("tl.open, s", 0.1, None)]))
    | figure | value | must be at most |
    |---|---|---|
    | list(lake), s | 0.250 | 1.0, met |
    | tl.open, s | 0.100 |  |
    """
    lines = ["| figure | value | must be at most |", "|---|---|---|"]
    for name, value, bound in rows:
        said = "" if bound is None else f"{bound}, {'met' if value <= bound else 'missed'}"
        lines.append(f"| {name} | {value:.3f} | {said} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="tensors (at least 210)")
    parser.add_argument("--repeat", type=int, default=5, help="fresh processes for each figure")
    parser.add_argument("--place", help="folder of a table to make, which stays")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="many-tensors-") as folder:
        place = given.place or str(Path(folder, "lake"))
        print(f"{given.count} tensors of 8 x 8 float32, written one by one")
        print(table(figures(place, given.count, given.repeat)))


if __name__ == "__main__":
    main()
