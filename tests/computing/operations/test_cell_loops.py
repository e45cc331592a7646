"""The loops that put elements into cells, run by Python here, and compiled in a process of its own."""

from pathlib import Path

import cell_law
import numpy as np
import pytest
from computed import equal
from loop_taking import check_compiled, take_loops
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark import thread_shares
from tensorlake_spark.computing.operations import cell_loops, element_reductions

LOOPS = ("group", "add", "add_squares", "add_moments", "variances", "best")
LAW = Path(ROOT, "tests", "support", "cell_law.py")


@pytest.fixture(autouse=True, params=["alone", "shared"])
def narrow(request, monkeypatch):
    """Have ranges of a few cells, for Python looks at each; they are shared out as those of many elements are."""
    monkeypatch.setattr(cell_loops, "_BITS", 6)
    if request.param == "shared":
        monkeypatch.setattr(thread_shares, "_ALONE", 0)
        monkeypatch.setattr(thread_shares, "THREADS", 3)
        # Run by Python, a loop in another thread would not know of np.errstate here.
        monkeypatch.setattr(cell_loops, "at_once", lambda work, tasks: [*map(work, tasks)])


@pytest.mark.parametrize("char", cell_law.DTYPES)
def test_loops_give_what_numpy_gives(char):
    cell_law.check(char)


@pytest.mark.parametrize("chars", ["d", pytest.param(cell_law.DTYPES, marks=pytest.mark.soak)])
def test_compiled_loops_give_what_numpy_gives(chars):
    check_compiled(LAW, chars)


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f8", "c16"])
def test_reductions_give_the_same_through_them(lake, monkeypatch, dtype):
    monkeypatch.setattr(element_reductions, "PART", 7)
    rng = np.random.default_rng(3)
    x = (rng.integers(1, 6, (5, 6, 9)) * (rng.random((5, 6, 9)) < 0.5)).astype(dtype)
    if x.dtype.kind == "f":
        x[1, 2, 3], x[:2, 4, 4] = np.nan, [-3, -np.inf]
    ref = lake.write("x", tl.SparseTensor.from_dense(x), layout="bsgs", block_shape=(2, 4, 4))
    taken = take_loops(monkeypatch, cell_loops, LOOPS)
    with np.errstate(all="ignore"):
        for axis in range(3):
            for name in ("sum", "mean", "var", "max", "count_nonzero", "prod", "argmax", "argmin"):
                equal(getattr(ref, name)(axis=axis), getattr(np, name)(x, axis=axis))
            equal(ref.norm(axis=axis), np.linalg.norm(x, axis=axis))
        equal(ref.argmin(), np.argmin(x))
    if dtype == "f8":
        assert taken == {*LOOPS}
    assert ("group" in taken) == (dtype != "c16")
