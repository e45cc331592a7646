"""The loops of sparse reads, compiled: in a process of its own, for this one runs with numba's compiler off."""

import os
import subprocess
import sys
from pathlib import Path

from places import ROOT

LAW = Path(ROOT, "tests", "support", "sparse_kernel_law.py")


def test_compiled_loops_give_the_elements_that_numpy_gives():
    done = subprocess.run(
        [sys.executable, LAW], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 0, "damaged rows are errors in both bodies"
