"""The law of the loops that put elements into cells: they give what NumPy gives.

``python tests/support/cell_law.py`` holds the compiled loops to it; a page of tests holds the same loops, run by Python.
"""

from __future__ import annotations

import sys

import numpy as np

from tensorlake_spark import thread_shares
from tensorlake_spark.computing.operations import cell_loops as loops
from tensorlake_spark.computing.operations.reduction_kernels import Kernel, Moments

DTYPES = "bBhHiIlLqQfd"


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


def check_sums(rng: np.random.Generator, char: str, cells: int) -> None:
    """Hold sums, sums of squares and moments of cells to the law; they are those of NumPy in the order of the parts."""
    parts = [elements(rng, cells, count, char)[::2] for count in (40, 0, 1, 25)]
    of, values = (np.concatenate(arrays) for arrays in zip(*parts))
    wanted, numbers, sizes = np.unique(of, return_inverse=True, return_counts=True)
    sums, squares = np.bincount(numbers, values), np.bincount(numbers, values * values)
    for loop, want in ((loops.add, sums), (loops.add_squares, squares)):
        found = loop(parts, cells)
        assert [array.dtype.char for array in found] == ["l", "l", "d"]
        for one, other in zip(found, (wanted, sizes, want)):
            np.testing.assert_array_equal(one, other)
    found = loops.add_moments(parts, cells)
    means = sums / sizes
    apart = np.bincount(numbers, (values - means[numbers]) ** 2)
    for one, other in zip(found, (wanted, sizes, means, apart)):
        np.testing.assert_array_equal(one, other)


def check_variances(rng: np.random.Generator) -> None:
    """Hold variances of cells with zeros to the law: they are what NumPy's body gives, bit by bit."""
    total = 5
    counts = rng.integers(0, total + 1, 60)
    means, squares = rng.normal(size=60), rng.random(60)
    means[:6], squares[4:8] = [np.nan, np.inf, -np.inf, 1e200, -0.0, 0.0], [np.nan, np.inf, 0, 0.0]
    counts[:4:2] = total
    for is_root in (False, True):
        kernel = Moments(np.dtype("f8"), np.dtype("f8"), 1, is_root)
        with np.errstate(all="ignore"):
            want = Kernel.finish_with_zeros(kernel, (counts, means, squares), counts, total)
            found = loops.variances(counts, means, squares, total, total - 1.0, is_root)
        np.testing.assert_array_equal(found, want)
        numbers = ~np.isnan(want)
        assert found[numbers].tobytes() == want[numbers].tobytes()


def check_best(rng: np.random.Generator, char: str, cells: int) -> None:
    """Hold the search for the best elements to the law."""
    for has_nan, bound in (
        (True, 60),
        (False, 60),
        (True, 1 << 40),
    ):  # numbers of few and of many bits
        of, at, values = elements(rng, cells, 60, char)
        values = values if has_nan else np.nan_to_num(values, nan=2, neginf=-np.inf)
        parts = [(of[:20], at[:20], values[:20]), (of[20:], at[20:], values[20:])]
        for largest, function in ((True, np.argmax), (False, np.argmin)):
            worst = -np.inf if largest else np.inf
            if char not in "fd":
                worst = getattr(np.iinfo(char), "min" if largest else "max")
            found, first, best = loops.best(parts, cells, bound, worst, largest)
            np.testing.assert_array_equal(found, np.unique(of))
            assert best.dtype == char
            by = np.argsort(at)
            for cell, number, value in zip(found, first, best):
                mine = by[of[by] == cell]
                place = mine[function(values[mine])]
                assert number == at[place]
                np.testing.assert_array_equal(value, values[place])


def check(char: str, seed: int = 0) -> None:
    """Hold every loop to the law for values of a dtype."""
    rng = np.random.default_rng(seed)
    for cells in (1, 9, 1 << loops._BITS, (3 << loops._BITS) + 1):
        for kind in (char, "e", "?"):  # dtypes of which no other loop has values
            check_group(rng, kind, cells)
        with np.errstate(all="ignore"):
            check_sums(rng, char, cells)
        check_best(rng, char, cells)
    check_variances(rng)


if __name__ == "__main__":
    for dtype in sys.argv[1] if sys.argv[1:] else DTYPES:
        check(dtype)
        thread_shares._ALONE = 0  # each thread takes a share
        check(dtype)
        print(f"{dtype}: through the compiled loops")
