"""Packed words by the loops, which Python runs here; test_loops.py has them compiled."""

import numpy as np
import pytest
from kernel_law import check_packing

from tensorlake_spark.layouts.kernels import packing

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")


@pytest.mark.parametrize("word", ["u1", "<u2", "<u4", "<u8"])
def test_loops_give_the_bytes_and_words_that_numpy_gives(word):
    rng = np.random.default_rng(2)
    for _ in range(4):
        check_packing(word, rng)


@pytest.mark.parametrize("loop", ["pack", "unpack"])
def test_warming_runs_one_direction(loop, monkeypatch):
    ran = []
    for name in ("pack", "unpack"):
        function = getattr(packing, name)
        monkeypatch.setattr(packing, name, lambda *a, n=name, f=function: (ran.append(n), f(*a))[1])
    packing.warm(loop, 4)
    assert ran == (["pack"] if loop == "pack" else ["pack", "unpack"])
