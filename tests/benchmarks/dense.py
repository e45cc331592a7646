"""The dense benchmark: size, write, full read, ten images, a crop, a line; fresh processes, medians.

``make bench-dense`` runs it in a virtual environment of its own and writes a table and a plot.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import dense_report
from dense_engines import ENGINES
from harness import Benchmark
from workloads import DENSE


class Dense(Benchmark):
    """Arrays; an answer is an array of the same shape, dtype and values as NumPy's."""

    name = "dense"
    script = Path(__file__)
    engines = ENGINES
    workloads = DENSE
    reads = ("full", "ten", "crop", "line")

    def save(self, made: np.ndarray, source: Path) -> int:
        source.mkdir()
        np.save(source / "x.npy", made)
        return made.nbytes

    def load(self, source: Path) -> tuple[np.ndarray, int]:
        array = np.load(source / "x.npy")
        return array, array.nbytes

    def wanted(self, source: Path, key: Any) -> np.ndarray:
        return np.array(np.load(source / "x.npy", mmap_mode="r")[key])

    def check(self, got: Any, want: np.ndarray, key: Any, what: str) -> None:
        same = isinstance(got, np.ndarray) and got.dtype == want.dtype
        if not same or not np.array_equal(got, want):
            raise AssertionError(f"{what}: the answer is not NumPy's")

    def table(self, report: dict[str, Any]) -> str:
        return dense_report.table(report)

    def plot(self, report: dict[str, Any], path: Path) -> None:
        dense_report.plot(report, path)


BENCHMARK = Dense()

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
