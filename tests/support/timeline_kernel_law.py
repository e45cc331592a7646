"""The law of the compiled loop of samples that slide: it gives the rows that NumPy's body gives.

``python tests/support/timeline_kernel_law.py`` holds the compiled loop to it; pages of tests hold the same loop, run by
Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorlake_spark.layouts.kernels import timeline_loops as loops
from tensorlake_spark.layouts.timelines import timeline
from tensorlake_spark.layouts.timelines.timeline import Timeline

DTYPES = ("i1", "u2", "i4", "i8")
Array = np.ndarray[Any, Any]


@contextmanager
def by_loops() -> Iterator[None]:
    """Read rows of a timeline by the loop, few rows too."""
    before = timeline.compiled, timeline.SHORT
    timeline.compiled, timeline.SHORT = lambda *_, **__: loops, 0
    try:
        yield
    finally:
        timeline.compiled, timeline.SHORT = before


def made(dtype: str, rng: np.random.Generator) -> tuple[Array, Timeline]:
    """Return rows, some elements of them edited, and a timeline of them."""
    width, count = (int(n) for n in rng.integers(1, 40, 2))
    line = rng.integers(0, 100, width + int(rng.integers(0, 50))).astype(dtype)
    starts = rng.integers(0, len(line) - width + 1, count)
    rows = line[starts[:, None] + np.arange(width)]
    edits = int(rng.choice([0, 1, count * width // 5]))
    rows[rng.integers(0, count, edits), rng.integers(0, width, edits)] = 101
    return rows, Timeline.of(rows, line, starts)


def check(dtype: str, rng: np.random.Generator) -> None:
    """Hold the loop to NumPy: all rows, a slice of them, any of them; some columns of each."""
    rows, line = made(dtype, rng)
    count, width = rows.shape
    some = slice(*np.sort(rng.integers(0, count + 1, 2)).tolist(), int(rng.integers(1, 4)))
    for asked in (slice(0, count, 1), some, rng.integers(0, count, 9)):
        first, stop = np.sort(rng.integers(0, width + 1, 2)).tolist()
        for columns in (slice(0, width, 1), slice(first, stop, int(rng.integers(1, 4)))):
            want = rows[asked][:, columns]
            found = np.full((len(want) + 2, want.shape[1]), 77, rows.dtype)
            line.take(asked, columns, found[1:-1])
            assert np.array_equal(found[1:-1], want), f"{dtype} {rows.shape} {asked} {columns}"
            assert (found[[0, -1]] == 77).all()


if __name__ == "__main__":
    source = np.random.default_rng(0)
    for name in DTYPES:
        for _ in range(100):
            check(name, source)
            with by_loops():
                check(name, source)
        loops.warm(np.dtype(name).itemsize)
    print(len(loops.put.signatures), "kinds of ids")
