"""Sparse reads by the loops, which Python runs here without a compiler."""

import numpy as np
import pytest
from sparse_kernel_law import SHAPES, by_loops, check

from tensorlake_spark.indexing.coords import unravel
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.kernels import sparse
from tensorlake_spark.layouts.testing.laws import SparseLaws

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")


class TestBsgsByLoops(SparseLaws):
    layout = layout_of("bsgs")

    @pytest.fixture(autouse=True)
    def loops(self):
        with by_loops():
            yield


@pytest.mark.parametrize("shape", SHAPES)
def test_loops_give_the_elements_and_errors_that_numpy_gives(shape):
    rng = np.random.default_rng(1)
    assert sum(check(shape, rng) for _ in range(5)) > 0


@pytest.mark.parametrize(
    "shape", [(3, 4), (1, 1), (7, 1, 5), (2, 3, 1140, 1717), (2**9, 2**20, 2**31)]
)
def test_keys_become_coordinates_in_any_order(shape):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, np.prod(shape, dtype=object), 200)
    for some in (keys, np.sort(keys)):
        want = np.empty((len(shape), len(some)), np.int64)
        unravel(some, shape, want)
        found = np.full((len(shape), len(some) + 5), -1)
        sparse.unravel(some, shape, found, 3)
        assert (found[:, 3:-2] == want).all()
        assert (found[:, :3] == -1).all()
        assert (found[:, -2:] == -1).all()
