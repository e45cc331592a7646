"""Rows of a timeline by the loop: run by Python here, and compiled in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import ROOT
from timeline_kernel_law import DTYPES, by_loops, check

LAW = Path(ROOT, "tests", "support", "timeline_kernel_law.py")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loop_gives_the_rows_that_numpy_gives(dtype):
    rng = np.random.default_rng(1)
    with by_loops():
        for _ in range(10):
            check(dtype, rng)


def test_the_compiled_loop_gives_the_rows_that_numpy_gives():
    done = subprocess.run(
        [sys.executable, LAW], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) == len(DTYPES), "what is warmed is what is used"
