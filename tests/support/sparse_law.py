"""The law of the compiled loops of sparse elements: they give what NumPy and SciPy give, integers to the last bit.

``python tests/support/sparse_law.py`` holds the compiled loops to it; pages of tests hold the same loops, run by Python.
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse

from tensorlake_spark.ops.products import product_loops as loops

DTYPES = "bilBLfdFD"


def numbers(rng: np.random.Generator, shape: tuple[int, ...], char: str) -> np.ndarray:
    """Return an array of whole numbers, whose sums are the same in any order."""
    return rng.integers(1, 5, shape).astype(char)


def check_spmm(rng: np.random.Generator, char: str, rows: int, inner: int, columns: int) -> None:
    """Hold a product of a sparse and a dense matrix to the law."""
    a = scipy.sparse.csr_array(
        numbers(rng, (rows, inner), char) * (rng.random((rows, inner)) < 0.2)
    )
    b = numbers(rng, (inner, columns), char)
    for word in (np.int32, np.int64):
        got = np.ones((rows, columns), char)
        loops.spmm(a.indptr, a.indices.astype(word), a.data, b, got)
        np.testing.assert_array_equal(got, a @ b)


def check_fibres(rng: np.random.Generator, char: str, shape: tuple[int, ...], mode: int) -> None:
    """Hold the sums of ``mttkrp`` to the law."""
    x = numbers(rng, shape, char) * (rng.random(shape) < 0.4)
    factors = [numbers(rng, (n, 3), char) for n in shape]
    last = len(shape) - 1
    others = [k for k in range(last) if k != mode]
    lines = x.reshape(-1, shape[-1])
    full = np.flatnonzero(lines.any(axis=1))
    heads = np.array(np.unravel_index(full, shape[:-1]))
    fibre, at = np.nonzero(lines[full])
    ends = np.searchsorted(fibre, np.arange(len(full) + 1))
    above = np.cumsum([0, *(shape[k] for k in others)])[:-1]
    table = np.concatenate([np.ones((0, 3), char), *(factors[k] for k in others)])
    out = np.zeros((shape[mode], 3), char)
    loops.fibres(
        lines[full][fibre, at].astype(char), at, ends, factors[last], table,
        heads[others] + above[:, None], heads[min(mode, last - 1)], out, mode == last,
    )  # fmt: skip
    letters = "abcd"[: len(shape)]
    text = ",".join([letters, *(letters[k] + "r" for k in range(len(shape)) if k != mode)])
    want = np.einsum(
        f"{text}->{letters[mode]}r",
        x.astype(char),
        *(u for k, u in enumerate(factors) if k != mode),
    )
    np.testing.assert_array_equal(out, want)


def check_triangle(
    rng: np.random.Generator, char: str, size: int, lower: bool, columns: int
) -> None:
    """Hold triangular equations to the law."""
    dense = np.tril(rng.integers(-2, 3, (size, size)), -1).astype(char)
    diagonal = np.ones(size, char) * 2
    dense = dense if lower else dense.T
    matrix = scipy.sparse.csr_array(dense)
    right = numbers(rng, (size, columns)[: 1 + bool(columns)], char)
    want = np.linalg.solve(dense + np.diag(diagonal), right)
    loops.solve(matrix.indptr, matrix.indices, matrix.data, diagonal, right, lower)
    np.testing.assert_allclose(right, want, rtol=1e-3, atol=1e-3 * np.abs(want).max(initial=1))


def check_matches(rng: np.random.Generator, most: int) -> None:
    """Hold the places that two tensors share to the law."""
    a, b = (np.unique(rng.integers(0, most, rng.integers(0, 40))) for _ in range(2))
    _, *want = np.intersect1d(a, b, return_indices=True)
    for got, wanted in zip(loops.matches(a, b), want):
        np.testing.assert_array_equal(got, wanted)


def check(char: str, seed: int = 0) -> None:
    """Hold every loop to the law for values of a dtype."""
    rng = np.random.default_rng(seed)
    for rows, inner, columns in ((6, 5, 7), (3, 0, 4), (1, 4, 1)):
        check_spmm(rng, char, rows, inner, columns)
    for shape in ((4, 5), (3, 4, 5), (2, 3, 4, 3)):
        for mode in range(len(shape)):
            check_fibres(rng, char, shape, mode)
    if char in "fdFD":
        for lower in (True, False):
            for columns in (0, 2):
                check_triangle(rng, char, 6, lower, columns)
    for most in (1, 30, 500):
        check_matches(rng, most)


if __name__ == "__main__":
    for dtype in sys.argv[1] if sys.argv[1:] else DTYPES:
        check(dtype)
        print(f"{dtype}: through the compiled loops")
