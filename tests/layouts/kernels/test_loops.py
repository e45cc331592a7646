"""The loops, compiled: in a process of its own, for this one runs with numba's compiler off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_law import DTYPES, MORE
from places import ROOT

LAW = Path(ROOT, "tests", "support", "kernel_law.py")


@pytest.mark.parametrize("dtypes", [DTYPES, pytest.param(MORE, marks=pytest.mark.soak)])
def test_compiled_loops_give_the_words_that_numpy_gives(dtypes):
    done = subprocess.run(
        [sys.executable, LAW, *dtypes], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    taken, total = (int(word) for word in done.stdout.split() if word.isdigit())
    assert taken > total / 2
