"""The digest of a table of 1 GB: how fast the first one is beside SHA-256 alone, and what it costs when nothing changed.

Every figure is the median of fresh processes. Imports are not counted, pandas among them, which pyarrow imports. The files are in the page cache. SHA-256 alone hashes the same bytes,
memory-mapped, with ``hashlib`` in as many threads.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import run_script

SIZES = {"full": 1000, "tiny": 100}
"""Megabytes."""

WRITE = """
    import json, sys
    import numpy as np, tensorlake_spark as tl

    lake = tl.open(sys.argv[1])
    rng = np.random.default_rng(0)
    rows = int(sys.argv[2]) * 1_000_000 // (512 * 512 * 4)
    lake.write("noise", (rng.random((8, 512, 512), "f4") for _ in range(rows // 8)))
    lake.digest()
    print(json.dumps({"bytes": lake["noise"].stored_bytes, "block": lake["noise"].block_shape}))
"""

FIRST = """
    import hashlib, json, mmap, shutil, sys, time
    from pathlib import Path
    import numpy, pandas, pyarrow.parquet, tensorlake_spark as tl
    from tensorlake_spark.threads import THREADS, threads

    STEP = 32 << 20
    found = {}

    def timed(name, act):
        wall, cpu = time.perf_counter(), time.process_time()
        out = act()
        found[name] = time.perf_counter() - wall
        found[name + " cpu"] = time.process_time() - cpu
        return out

    def alone():
        parts = []
        for path in Path(sys.argv[1]).glob("*.parquet"):
            with open(path, "rb") as file:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            parts += [data[i : i + STEP] for i in range(0, len(data), STEP)]
        list(threads().map(lambda part: hashlib.sha256(part).digest(), parts))

    def first():
        shutil.rmtree(Path(sys.argv[1], "_tensorlake"), ignore_errors=True)
        digest = lake.digest()
        assert digest.hashed > 0
        return digest

    lake = tl.open(sys.argv[1])
    if sys.argv[2] == "first":  # then the other has the warm caches
        timed("first", first), timed("alone", alone)
    else:
        timed("alone", alone), timed("first", first)
    found["threads"] = THREADS
    print(json.dumps(found))
"""

AGAIN = """
    import json, sys, time
    import numpy, pandas, tensorlake_spark as tl

    found = {}

    def timed(name, act):
        start = time.perf_counter()
        out = act()
        found[name] = time.perf_counter() - start
        return out

    lake = timed("open", lambda: tl.open(sys.argv[1]))
    assert timed("fresh", lake.digest).hashed == 0
    assert timed("again", lake.digest).hashed == 0
    print(json.dumps(found))
"""


def figures(place: Path, megabytes: int, repeat: int) -> list[tuple[str, float, str, bool | None]]:
    """Return the rows of the table: what, its figure, what it must be, and whether it is."""
    wrote = run_script(WRITE, place, megabytes)
    firsts = [run_script(FIRST, place, ("alone", "first")[i % 2]) for i in range(repeat)]
    again = [run_script(AGAIN, place) for _ in range(repeat)]
    ratio = median(found["alone"] / found["first"] for found in firsts)
    ratio_cpu = median(found["alone cpu"] / found["first cpu"] for found in firsts)

    def mid(found: list[dict[str, float]], name: str) -> float:
        return median(each[name] for each in found)

    fresh, warm = mid(again, "fresh"), mid(again, "again")
    return [
        ("SHA-256 alone / first digest, wall", ratio, "at least 0.8", ratio >= 0.8),
        ("SHA-256 alone / first digest, CPU", ratio_cpu, "", None),
        ("unchanged, in an open lake, s", warm, "at most 0.05", warm <= 0.05),
        ("unchanged, in a fresh process, s", fresh, "", None),
        ("tl.open in it, s", mid(again, "open"), "", None),
        ("first digest, s", mid(firsts, "first"), "", None),
        ("SHA-256 alone, s", mid(firsts, "alone"), "", None),
        ("threads", firsts[0]["threads"], "", None),
        ("stored, GB", wrote["bytes"] / 1e9, "", None),
    ]


def table(rows: Sequence[tuple[str, float, str, bool | None]]) -> str:
    """Return the figures as a table.

    Examples
    --------
    >>> print(table([("unchanged, s", 0.0021, "at most 0.05", True), ("threads", 2, "", None)]))
    | figure | value | must be |
    |---|---|---|
    | unchanged, s | 0.0021 | at most 0.05, met |
    | threads | 2 |  |
    """
    lines = ["| figure | value | must be |", "|---|---|---|"]
    for name, value, bound, met in rows:
        said = bound if met is None else f"{bound}, {'met' if met else 'missed'}"
        lines.append(f"| {name} | {value:.4g} | {said} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, hash, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="full", help="tiny: 100 MB")
    parser.add_argument("--repeat", type=int, default=5, help="fresh processes for each figure")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="digests-"))
    try:
        print(f"{SIZES[given.size]} MB of float32 noise in one tensor")
        print(table(figures(folder / "lake", SIZES[given.size], given.repeat)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
