"""The law of the compiled loops over elements: they give what NumPy gives, integers to the last bit.

``python tests/support/element_law.py`` holds the compiled loops to it; pages of tests hold the same loops, run by Python.
"""

from __future__ import annotations

import sys

import numpy as np

from tensorlake_spark.ops import element_loops as loops

DTYPES = "bilBLfdFD"


def numbers(rng: np.random.Generator, count: int, char: str) -> np.ndarray:
    """Return whole numbers other than zero, whose sums are the same in any order and may be zero."""
    found = rng.integers(1, 5, count)
    return (found if char in "BL" else found * rng.choice([-1, 1], count)).astype(char)


def check_sums(rng: np.random.Generator, char: str, count: int) -> None:
    """Hold sums of all numbers, and of runs, to the law."""
    values = numbers(rng, count, char)
    got = loops.total(values)
    assert got == np.add.reduce(values, dtype=char)
    assert got.dtype == char
    starts = np.unique(np.append(rng.integers(0, max(1, count), count // 3), 0)) if count else []
    got = loops.run_sums(values, np.array(starts, np.int64))
    np.testing.assert_array_equal(
        got, [np.sum(run, dtype=char) for run in np.split(values, starts)[1:]]
    )
    assert got.dtype == char
    cells = rng.integers(0, 9, count)
    wanted = np.zeros(9, char)
    np.add.at(wanted, cells, values)
    for word in (np.int32, np.int64):
        got = loops.cell_sums(cells.astype(word), values, 9)
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == char


def check_best(rng: np.random.Generator, char: str, count: int) -> None:
    """Hold the largest and the smallest numbers of runs to the law."""
    values = numbers(rng, count, char)
    if char in "fd":
        values[rng.random(count) < 0.1] = np.nan
        values[rng.random(count) < 0.1] = -np.inf
    starts = np.unique(np.append(rng.integers(0, max(1, count), count // 3), 0))
    for largest, ufunc in ((True, np.maximum), (False, np.minimum)):
        got = loops.run_best(values, starts, largest)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, ufunc.reduceat(values, starts))
        assert got.dtype == char


def check_add(
    rng: np.random.Generator, char: str, shape: tuple[int, int], counts: list[int]
) -> None:
    """Hold the sum and the product of two matrices to the law, by cells and by places."""
    size = shape[0] * shape[1]
    places = [np.sort(rng.choice(size, count, replace=False)) for count in counts]
    values = [numbers(rng, count, char) for count in counts]
    dense = np.zeros(size, char)
    for at, some in zip(places, values):
        dense[at] += some
    product = np.zeros((2, size), char)
    for line, at, some in zip(product, places, values):
        line[at] = some
    for loop, all_ in ((loops.add, dense), (loops.multiply, product[0] * product[1])):
        wanted = np.flatnonzero(all_)
        for columns in (shape[1], 0):
            cells, found = loop(tuple(places), tuple(values), columns)
            rows = np.divmod(wanted, columns) if columns else [wanted]
            np.testing.assert_array_equal(cells, rows)
            np.testing.assert_array_equal(found, all_[wanted])
            assert found.dtype == char
            assert cells.flags.c_contiguous


def check_take(rng: np.random.Generator, char: str, count: int) -> None:
    """Hold what is taken of a dense array to the law."""
    dense = numbers(rng, count, char)
    places = np.flatnonzero(rng.random(count) < 0.3)
    np.testing.assert_array_equal(loops.take_finite(dense, places), dense[places])
    wild = [np.nan, np.inf, -np.inf] + [1j * np.inf, complex(1, np.nan)] * (char in "FD")
    for value in wild if count else []:
        spoiled = dense.copy()
        spoiled[rng.integers(count)] = value
        assert loops.take_finite(spoiled, places) is None
    largest = np.full(count, np.finfo(char).max, char)
    np.testing.assert_array_equal(loops.take_finite(largest, places), largest[places])


def check_keep(rng: np.random.Generator, char: str, count: int) -> None:
    """Hold what a mask keeps to the law."""
    places, values = rng.integers(0, 99, count), rng.integers(0, 2, count).astype(char)
    mask = rng.random(count) < 0.4
    kept, out = np.zeros(mask.sum(), np.int64), np.zeros(mask.sum(), char)
    loops.keep(mask, places, values, kept, out)
    np.testing.assert_array_equal(kept, places[mask])
    np.testing.assert_array_equal(out, values[mask])


def check(char: str, seed: int = 0) -> None:
    """Hold every loop to the law for values of a dtype."""
    rng = np.random.default_rng(seed)
    for count in (0, 1, 7, 50):
        check_sums(rng, char, count)
        for kind in (char.replace("D", "F"), "e", "?"):  # dtypes that no other loop takes
            check_keep(rng, kind, count)
        if count and char not in "FD":
            check_best(rng, char, count)
    for shape, counts in (
        ((1, 1), [1, 1]), ((6, 7), [9, 20]), ((40, 3), [1, 70]), ((3, 40), [100, 110]), ((9, 9), [81, 81]),
    ):  # fmt: skip
        check_add(rng, char, shape, counts)
    if char in "fdFD":
        for count in (0, 1, 7, 50):
            check_take(rng, char, count)


if __name__ == "__main__":
    for dtype in sys.argv[1] if sys.argv[1:] else DTYPES:
        check(dtype)
        print(f"{dtype}: through the compiled loops")
