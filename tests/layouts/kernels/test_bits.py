"""Bins and nibbles by the loops: run by Python here, and compiled in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bit_kernel_law import WORDS, check
from places import ROOT

LAW = Path(ROOT, "tests", "support", "bit_kernel_law.py")


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("word", WORDS)
def test_loops_give_the_words_and_errors_that_numpy_gives(word):
    rng = np.random.default_rng(1)
    for _ in range(10):
        check(word, rng)


def test_compiled_loops_give_the_words_and_errors_that_numpy_gives():
    done = subprocess.run(
        [sys.executable, LAW], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "TENSORLAKE_KERNELS": "numpy"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) == len(WORDS), "what is warmed is what is used"
