"""Halves of floats by the loop: run by Python here, and compiled in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from half_kernel_law import check
from places import ROOT

LAW = Path(ROOT, "tests", "support", "half_kernel_law.py")


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("shape", [(200,), (0, 4), (5, 1, 7)])
def test_the_loop_gives_the_bits_that_numpy_gives(shape):
    rng = np.random.default_rng(1)
    check(*rng.integers(0, 1 << 16, (2, *shape), np.uint16))


def test_the_compiled_loop_gives_the_bits_that_numpy_gives():
    done = subprocess.run(
        [sys.executable, LAW], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) == 1, "what is warmed is what is used"
