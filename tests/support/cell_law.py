"""The law of the loops that put elements into cells: they give what NumPy gives.

``python tests/support/cell_law.py`` holds the compiled loops to it; a page of tests holds the same loops, run by Python.
"""

from __future__ import annotations

import sys

import numpy as np

from tensorlake_spark.computing.operations import cell_loops as loops

DTYPES = "bBhHiIlLfd"


def elements(
    rng: np.random.Generator, cells: int, count: int, char: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cells, places of which no cell has one twice, and values, of floats some NaN and infinite."""
    values = rng.integers(0, 5, count).astype(char)
    if char in "fd":
        values *= rng.choice([-1, 1], count)
        values[rng.random(count) < 0.1] = np.nan
        values[rng.random(count) < 0.1] = -np.inf
    return rng.integers(0, cells, count), rng.permutation(count), values


def check_group(rng: np.random.Generator, char: str, cells: int) -> None:
    """Hold the grouping to the law."""
    parts = [elements(rng, cells, count, char) for count in (40, 0, 1, 25)]
    of_all = [np.concatenate(arrays) for arrays in zip(*parts)]
    wanted, sizes = np.unique(of_all[0], return_counts=True)
    for chosen in ((0, 1, 2), (0, 2)):
        found, counts, (of, *others) = loops.group(
            [tuple(part[k] for k in chosen) for part in parts], cells
        )
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(counts, sizes)
        rows = zip(found[of].tolist(), *(np.asarray(x).tolist() for x in others))
        given = zip(*(of_all[k].tolist() for k in chosen))
        assert sorted(map(repr, rows)) == sorted(map(repr, given))
        assert others[-1].dtype == char


def check_sums(rng: np.random.Generator, char: str) -> None:
    """Hold sums and moments of cells to the law."""
    of = np.append(np.arange(7), rng.integers(0, 7, 30)).astype(np.int32)
    values = rng.integers(0, 9, len(of)).astype(char)
    sums, counts = np.zeros(7, char), np.bincount(of)
    loops.add(of, values, sums)
    np.testing.assert_array_equal(sums, np.bincount(of, values).astype(char))
    means, squares = np.zeros((2, 7))
    loops.add_moments(of, values, counts, means, squares)
    for n in range(7):
        np.testing.assert_allclose(means[n], values[of == n].mean(dtype="f8"))
        np.testing.assert_allclose(squares[n] / counts[n], values[of == n].var(dtype="f8"))


def check_best(rng: np.random.Generator, char: str) -> None:
    """Hold the search for the best elements to the law."""
    of, at, values = elements(rng, 7, 60, char)
    of[:7] = np.arange(7)
    of = of.astype(np.int32)
    for largest, function in ((True, np.argmax), (False, np.argmin)):
        worst = -np.inf if largest else np.inf
        if char not in "fd":
            worst = getattr(np.iinfo(char), "min" if largest else "max")
        found, first = np.full(7, worst, char), np.full(7, 60)
        loops.best(of, at, values, found, first, largest)
        by = np.argsort(at)
        for n in range(7):
            mine = by[of[by] == n]
            place = mine[function(values[mine])]
            assert first[n] == at[place]
            np.testing.assert_array_equal(found[n], values[place])


def check(char: str, seed: int = 0) -> None:
    """Hold every loop to the law for values of a dtype."""
    rng = np.random.default_rng(seed)
    for cells in (1, 9, 1 << loops._BITS, (3 << loops._BITS) + 1):
        check_group(rng, char, cells)
    check_sums(rng, char)
    check_best(rng, char)


if __name__ == "__main__":
    for dtype in sys.argv[1] if sys.argv[1:] else DTYPES:
        check(dtype)
        print(f"{dtype}: through the compiled loops")
