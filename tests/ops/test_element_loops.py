"""The loops, run by Python here, and compiled in a process of its own; and that operations take them."""

from pathlib import Path

import element_law
import numpy as np
import pytest
from loop_taking import check_compiled, take_loops
from places import ROOT
from reduced import check_canonical

import tensorlake_spark as tl
from tensorlake_spark.ops import element_loops
from tensorlake_spark.ops.reducing import groups

LAW = Path(ROOT, "tests", "support", "element_law.py")


@pytest.fixture(autouse=True)
def wrapping():
    """Integers wrap around without a word in compiled loops; Python would warn."""
    with np.errstate(over="ignore"):
        yield


@pytest.mark.parametrize("char", element_law.DTYPES)
def test_loops_give_what_numpy_gives(char, monkeypatch):
    monkeypatch.setattr(element_loops, "_PART", 5)  # several parts
    element_law.check(char, seed=1)


@pytest.mark.parametrize("chars", ["d", pytest.param(element_law.DTYPES, marks=pytest.mark.soak)])
def test_compiled_loops_give_what_numpy_gives(chars):
    check_compiled(LAW, chars)


LOOPS = ("total", "run_sums", "cell_sums", "run_best", "add", "multiply", "take_finite")


@pytest.fixture
def taken(monkeypatch):
    """Have operations take the loops, as with numba, for whatever is small; returns which ones they took."""
    monkeypatch.setattr(groups, "_MANY", 0)
    return take_loops(monkeypatch, element_loops, LOOPS)


def some(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)
    return (np.abs(dense) if np.dtype(dtype).kind in "ub" else dense).astype(dtype)


def check(found, wanted):
    if isinstance(found, tl.SparseTensor):
        check_canonical(found)
        found = found.todense()
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f8", "c16"])
@pytest.mark.parametrize("shape", [(40,), (7, 9), (3, 4, 5)])
def test_operations_give_the_same_through_them(dtype, shape, taken):
    dense, other = some(shape, dtype, 1), some(shape, dtype, 2)
    x, y = map(tl.SparseTensor.from_dense, (dense, other))
    check(x + y, dense + other)
    check(x + tl.SparseTensor.from_dense(np.zeros(shape, dtype)), dense)
    if dtype != "?":
        check(x - y, dense - other)
    check(x * y, dense * other)
    check(x * other, dense * other)
    check(x.sum(), dense.sum())
    for axis in range(dense.ndim):
        check(x.sum(axis=axis), dense.sum(axis=axis))
        check(x.max(axis=axis), dense.max(axis=axis))
        check(x.min(axis=axis), dense.min(axis=axis))
    loops = {"add", "multiply", "run_best"} if dtype not in ("?", "c16") else set()
    loops |= {"take_finite"} if np.dtype(dtype).kind in "fc" else set()
    loops |= {"total"} if np.dtype(dtype).char in "?BldLQ" else set()
    assert taken - {"run_sums", "cell_sums"} == loops
    for loop in ("run_sums", "cell_sums"):
        assert (loop in taken) == (len(shape) > 1 and "total" in loops)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_beside_zeros_is_seen_by_them(value, taken):
    dense, other = some((7, 9), "f8", 1), some((7, 9), "f8", 2)
    other[np.argwhere(dense == 0)[0][0], np.argwhere(dense == 0)[0][1]] = value
    with np.errstate(invalid="ignore"):
        wanted = dense * other
    assert np.isnan(wanted).sum() == 1
    np.testing.assert_array_equal((tl.SparseTensor.from_dense(dense) * other).todense(), wanted)
    assert taken == {"take_finite"}
