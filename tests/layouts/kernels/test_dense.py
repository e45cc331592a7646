"""How blocks are laid out for the loops, which Python runs here without a compiler."""

import numpy as np
import pytest
from kernel_law import CHAINS, check, space

from tensorlake_spark.layouts.kernels import dense, loops
from tensorlake_spark.layouts.kernels.steps import Steps

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")


@pytest.mark.parametrize("shape", [(3,), (34, 2), (2, 3, 2)])
def test_loops_give_the_words_that_numpy_gives(shape):
    rng = np.random.default_rng(0)
    assert sum(check("f4", shape, name, rng) for name in CHAINS) > 1


@pytest.mark.parametrize("axis", [0, -1, -2])
def test_a_result_with_strides_that_no_loop_knows(axis):
    words = np.arange(24, dtype="u2").reshape(4, 6)
    steps = Steps(axis, False, False, True, True)
    flat = dense.encode(words, steps)
    src = [slice(0, 4), slice(0, 6)]
    for out in (
        np.zeros((6, 4), "u2").T,
        np.zeros((4, 6), "u2")[::-1],
        np.zeros((4, 12), "u2")[:, ::2],
    ):
        dense.decode_into(flat, steps, words.shape, src, out)
        np.testing.assert_array_equal(out, words)


def test_nothing_of_a_block():
    steps = Steps(0, True, True, False, False)
    flat = dense.encode(np.arange(6, dtype="u4").reshape(2, 3), steps)
    out = space((0, 3), np.dtype("u4"), False)
    dense.decode_into(flat, steps, (2, 3), [slice(1, 1), slice(0, 3)], out)
    assert out.shape == (0, 3)


@pytest.mark.parametrize("encodes", [False, True])
@pytest.mark.parametrize("loop", ["plain", "lines", "rows", "lorenzo"])
def test_warming_runs_one_direction_of_a_loop(loop, encodes, monkeypatch):
    ran = []
    for name in ("put", "take"):
        function = getattr(loops, f"{name}_{loop}")
        monkeypatch.setattr(
            loops, f"{name}_{loop}", lambda *a, n=name, f=function: (ran.append(n), f(*a))
        )
    dense.warm(loop, 4, encodes)
    assert ran == ["take" if encodes else "put"]
