"""Kernels: what one block, runs of elements, and other states come to is the same."""

import numpy as np
import pytest
from computed import put

from tensorlake_spark.computing.operations.block_reductions import KERNELS
from tensorlake_spark.computing.operations.reduction_kernels import (
    IntegerMoments,
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
@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f4", "f8", "c16", "?"])
def test_a_packed_state_takes_part_as_the_one_it_was(name, dtype):
    block = np.random.default_rng(1).integers(0, 255, (300, 6)).astype(dtype)
    kernel = KERNELS[name](np.dtype(dtype), 600)
    state = kernel.wide(kernel.start(block, (0,)))
    sent = kernel.packed(state)
    assert sum(a.nbytes for a in sent) <= sum(a.nbytes for a in state)
    into, back = kernel.wide(state), kernel.wide(sent)
    kernel.absorb(into, sent)
    kernel.absorb(back, state)
    twice = kernel.wide(state)
    kernel.absorb(twice, state)
    for found in (into, back):
        assert [a.dtype for a in found] == [a.dtype for a in twice]
        np.testing.assert_array_equal(kernel.finish(found, 600), kernel.finish(twice, 600))


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
    assert square_of(np.array([255], np.uint8)).tolist() == [65025]


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_squares_beyond_the_largest_float_are_infinite_and_not_nan(shared, layout):
    array = np.full((40, 30), 1e200)
    array[::2] = 0.5e200
    array[:, 3] = 0
    ref = put(shared, array, layout)
    for axis in (0, 1, None):
        with np.errstate(all="ignore"):
            wanted = np.var(array, axis=axis)
            found = ref.var(axis=axis)
            found = found.todense() if hasattr(found, "todense") else found
        np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
        assert not np.isnan(found).any()
