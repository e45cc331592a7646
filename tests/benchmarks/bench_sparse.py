"""The sparse benchmark: size, write, full read, one day, one box, one hour; fresh processes, medians.

``make bench-sparse`` runs it in a virtual environment of its own and writes tables and a plot. The file
is not named sparse.py, because a program's folder comes first on its path, and PyData's package has that
name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import sparse_report
from harness import Benchmark
from sparse_engines import ENGINES, Found, places_of, result_shape
from workloads import SPARSE, Elements


class Wanted(NamedTuple):
    """The right answer: places of the elements in the tensor, ascending, their values, the tensor's shape."""

    places: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...]


class Sparse(Benchmark):
    """Non-zeros; an answer is right if a mask over all coordinates finds the same elements."""

    name = "sparse"
    script = Path(__file__)
    engines = ENGINES
    workloads = SPARSE
    reads = sparse_report.READS

    def save(self, made: Elements, source: Path) -> int:
        source.mkdir()
        for name, array in made._asdict().items():
            np.save(source / f"{name}.npy", array)
        return made.nbytes

    def load(self, source: Path) -> tuple[Elements, int]:
        coords, values, shape = (np.load(source / f"{name}.npy") for name in Elements._fields)
        made = Elements(coords, values, tuple(shape.tolist()))
        return made, made.nbytes

    def wanted(self, source: Path, key: Any) -> Wanted:
        made, _ = self.load(source)
        mask = np.ones(len(made.values), bool)
        for k, part in enumerate(key if isinstance(key, tuple) else (key,)):
            inside = np.zeros(made.shape[k], bool)
            inside[part] = True
            mask &= inside[made.coords[k]]
        places = np.ravel_multi_index(tuple(made.coords[:, mask]), made.shape)
        return Wanted(places, made.values[mask], made.shape)

    def check(self, got: Any, want: Wanted, key: Any, what: str) -> None:
        wrong = AssertionError(f"{what}: the answer is not NumPy's")
        if not isinstance(got, Found) or got.values.dtype != want.values.dtype:
            raise wrong
        if got.shape is not None and got.shape != result_shape(key, want.shape):
            raise wrong
        if any(axis.dtype != np.int64 or axis.shape != got.values.shape for axis in got.coords):
            raise wrong
        try:
            places = places_of(got, key, want.shape)
        except ValueError as error:
            raise wrong from error
        values = got.values
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            places, values = places[order], values[order]
        if not np.array_equal(places, want.places) or not np.array_equal(values, want.values):
            raise wrong

    def table(self, report: dict[str, Any]) -> str:
        return sparse_report.table(report)

    def plot(self, report: dict[str, Any], path: Path) -> None:
        sparse_report.plot(report, path)


BENCHMARK = Sparse()

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
