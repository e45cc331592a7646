"""The loops that resize images: run by Python, and compiled in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import resize_law
from places import ROOT

LAW = Path(ROOT, "tests", "support", "resize_law.py")


@pytest.mark.filterwarnings(
    "ignore:overflow encountered"
)  # numbers of NumPy, which Python adds, and numba does not
@pytest.mark.parametrize("size", [(9, 9, 9, 4), (7, 5, 3, 9), (1, 1, 3, 2), (12, 3, 1, 1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_loops_give_what_pillow_gives(size, channels):
    assert resize_law.check(*size, channels) > 0


def test_compiled_loops_give_what_pillow_gives():
    done = subprocess.run(
        [sys.executable, LAW], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 50
