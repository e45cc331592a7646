"""Which elements go through compiled loops."""

import numpy as np
import pytest

from tensorlake_spark import kernel_switch
from tensorlake_spark.ops import element_loops
from tensorlake_spark.ops.loop_choice import loops_for

MANY = 1 << 20


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setenv(kernel_switch.SWITCH, "fast")
    monkeypatch.setattr(kernel_switch, "installed", lambda: True)
    monkeypatch.setattr(kernel_switch, "_off", False)
    monkeypatch.setattr(kernel_switch, "_ready", set())


@pytest.mark.parametrize(
    ("dtype", "nbytes", "runs"),
    [("f8", MANY, True), ("u1", MANY, True), ("c8", MANY, True), ("f8", 100, False)]
    + [(dtype, MANY, False) for dtype in ("?", "f2", "M8[s]", "V2")],
)
def test_many_numbers_of_dtypes_that_numba_knows(dtype, nbytes, runs, fast):
    with np.errstate(over="ignore"):
        found = loops_for(element_loops.__name__, "total", np.dtype(dtype), nbytes)
    assert found is (element_loops if runs else None)


def test_numpy_does_the_work_where_it_is_asked_to(monkeypatch):
    monkeypatch.setenv(kernel_switch.SWITCH, "numpy")
    assert loops_for(element_loops.__name__, "total", np.dtype("f8"), MANY) is None
