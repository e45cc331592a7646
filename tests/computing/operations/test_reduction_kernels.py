"""Kernels: what one block, runs of elements, and other states come to is the same."""

import numpy as np
import pytest

from tensorlake_spark.computing.operations.block_reductions import KERNELS
from tensorlake_spark.computing.operations.reduction_kernels import (
    IntegerMoments,
    holds_moments,
    square_of,
)


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8"])
def test_a_block_in_two_halves_is_the_block(name, dtype):
    block = np.arange(1, 25).reshape(4, 6).astype(dtype)
    kernel = KERNELS[name](np.dtype(dtype), 4)
    state = kernel.wide(kernel.start(block[:1], (0,)))
    kernel.absorb(state, kernel.start(block[1:], (0,)))
    alone = kernel.blank((6,))
    kernel.absorb(alone, kernel.start(block, (0,)))
    np.testing.assert_allclose(kernel.finish(state, 4), kernel.finish(alone, 4), rtol=1e-6)


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_runs_of_elements_and_zeros_are_the_block(name, dtype):
    block = np.array([[3, 0], [1, 2], [0, 4], [0, 0]], dtype)
    kernel = KERNELS[name](np.dtype(dtype), 4)
    values = np.array([3, 1, 2, 4], dtype)
    ones = kernel.groups(values, np.arange(4))
    state = kernel.merge(ones, np.array([0, 2]))
    found = kernel.finish(kernel.with_zeros(state, np.array([2, 2])), 4)
    np.testing.assert_allclose(found, kernel.finish(kernel.start(block, (0,)), 4))


def test_moments_of_short_integers_are_exact_while_int64_holds_them():
    assert isinstance(KERNELS["var"](np.dtype("u1"), 1000), IntegerMoments)
    assert not holds_moments(np.dtype("u2"), 1 << 20)
    assert square_of(np.array([255], np.uint8)).tolist() == [65025]
