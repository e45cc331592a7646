"""The loops, run by Python here, and compiled in a process of its own; and that operations take them."""

from pathlib import Path

import numpy as np
import pytest
import sparse_law
from loop_taking import check_compiled, take_loops
from operands import array, check, sparse
from places import ROOT

from tensorlake_spark.ops.products import blas
from tensorlake_spark.ops.products import numpy_products as products
from tensorlake_spark.ops.products import product_loops as sparse_loops

LAW = Path(ROOT, "tests", "support", "sparse_law.py")


@pytest.fixture(autouse=True)
def wrapping():
    """Integers wrap around without a word in compiled loops; Python would warn."""
    with np.errstate(over="ignore"):
        yield


@pytest.mark.parametrize("char", sparse_law.DTYPES)
def test_loops_give_what_scipy_gives(char):
    sparse_law.check(char, seed=1)


@pytest.mark.parametrize("chars", ["d", pytest.param(sparse_law.DTYPES, marks=pytest.mark.soak)])
def test_compiled_loops_give_what_scipy_gives(chars):
    check_compiled(LAW, chars)


@pytest.fixture
def taken(monkeypatch):
    """Have operations take the loops, as with numba, for whatever is small; returns which ones they took."""
    return take_loops(monkeypatch, sparse_loops, ("spmm", "fibres", "solve", "matches"))


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f4", "f8", "c16"])
def test_operations_give_the_same_through_them(dtype, taken):
    a, b, x = array((5, 6), dtype, 1), array((6, 4), dtype, 2), array((3, 4, 5), dtype, 3)
    for _ in range(2):
        check(products.matmul, np.matmul, a, b)
        check(products.vdot, np.vdot, a, a)
        check(lambda x, y: np.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), x.T, x)
    factors = [array((n, 2), "f8", n) for n in x.shape]
    for mode, text in enumerate(("ijk,jr,kr->ir", "ijk,ir,kr->jr", "ijk,ir,jr->kr")):
        others = [u for k, u in enumerate(factors) if k != mode]
        np.testing.assert_array_equal(sparse(x).mttkrp(factors, mode), np.einsum(text, x, *others))
    triangle = array((4, 4), "f8", 5) + 3 * np.eye(4)
    got = blas.trsm(1.0, sparse(triangle), np.eye(4), lower=1)
    np.testing.assert_allclose(np.tril(triangle) @ got, np.eye(4), atol=1e-12)
    # Sums of booleans are no sums: SciPy knows that.
    assert taken == {"fibres", "solve", "matches"} | ({"spmm"} if dtype != "?" else set())
