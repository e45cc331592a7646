"""Ten thousand small tensors in one transaction: seconds, processor time, files, and how long it takes to list them.

Run as a program::

    python tests/benchmarks/transactions.py [COUNT] [PLACE]

PLACE is an empty folder, or an URL with the options of its store in the environment; a temporary folder by default.
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np

import tensorlake_spark as tl


def measure(count: int, place: str) -> dict[str, float]:
    """Write `count` tensors of 256 bytes in one transaction; return what it took."""
    arrays = np.random.default_rng(0).normal(size=(count, 4, 4, 4)).astype("f4")
    lake = tl.open(place)
    start, processor = time.perf_counter(), time.process_time()
    with lake.transaction() as tx:
        for i, x in enumerate(arrays):
            tx.write(f"small/{i:06}", x)
    wall, processor = time.perf_counter() - start, time.process_time() - processor
    start = time.perf_counter()
    names = list(tl.open(place))
    listing = time.perf_counter() - start
    assert len(names) == count
    assert lake.version == 1
    assert np.array_equal(lake[names[count // 2]][...], arrays[count // 2])
    files = len(lake._snapshot().files.path)
    return {"seconds": wall, "processor": processor, "files": files, "listing": listing}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        found = measure(count, sys.argv[2] if len(sys.argv) > 2 else folder)
    print(
        f"{count} tensors in one transaction: "
        + ", ".join(f"{k} {v:.2f}" for k, v in found.items())
    )


if __name__ == "__main__":
    main()
