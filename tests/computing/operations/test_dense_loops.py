"""The loops that reduce dense blocks, run by Python here, and compiled in a process of its own."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import reduction_law
from places import ROOT

from tensorlake_spark import kernel_switch
from tensorlake_spark.computing.operations import accumulation, dense_loops

LAW = Path(ROOT, "tests", "support", "reduction_law.py")


@pytest.fixture
def taken(monkeypatch):
    """Have reductions take the loops, as with numba, for whatever is small; returns which ones they took."""
    monkeypatch.setenv(kernel_switch.SWITCH, "fast")
    monkeypatch.setattr(kernel_switch, "installed", lambda: True)
    monkeypatch.setattr(kernel_switch, "_off", False)
    monkeypatch.setattr(kernel_switch, "_ready", set())
    monkeypatch.setattr(accumulation, "_SHORT", 2)
    monkeypatch.setattr(dense_loops, "_PART", 5)  # lines of several parts
    names = set()
    back = reduction_law.counted(names)
    yield names
    back()


@pytest.mark.parametrize("dtype", reduction_law.DTYPES)
def test_blocks_of_any_form_give_what_numpy_gives(dtype, taken):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # integers wrap around, infinities differ
        for seed in range(4):
            reduction_law.check(dtype, seed, 14)
    assert {"add", "add_squares", "best"} <= taken
    assert ("add_runs" in taken) == (np.dtype(dtype).itemsize <= 2)
    assert ("best_runs" in taken) == (np.dtype(dtype).kind in "iub")
    assert len({"add_moments", "add_variance"} & taken) == 1


def test_compiled_loops_give_what_numpy_gives():
    done = subprocess.run(
        [sys.executable, LAW, "u1", "i2", "f4"], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "fast", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == sorted(reduction_law.LOOPS)
