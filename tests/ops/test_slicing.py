"""Slices of sparse tensors: what they share, and where the bisection ends. tests of SparseTensor try all keys."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.indexing import select, select_points
from tensorlake_spark.ops.slicing import stretch


@pytest.fixture
def tensor():
    dense = np.random.default_rng(0).random((20, 6, 8))
    return tl.SparseTensor.from_dense(dense * (dense < 0.3))


@pytest.mark.parametrize(
    "key", [np.s_[3:10], 5, np.s_[2:4, ...], np.s_[3, 1:4], np.s_[3, 2], np.s_[None, 4], np.s_[7:8, 1, 2:5], ...],
    ids=str,
)  # fmt: skip
def test_slices_of_leading_axes_share_values(tensor, key):
    part = tensor[key]
    assert part.nnz
    assert np.shares_memory(part.values, tensor.values)
    assert np.array_equal(part.todense(), tensor.todense()[key])


def test_slices_share_coordinates_of_one_axis_whose_numbers_stay(tensor):
    at = np.argmax(np.count_nonzero(tensor.todense()[3], axis=1))
    row = tensor[3, at]
    assert np.shares_memory(row.coords, tensor.coords)
    assert np.shares_memory(row[:7].coords, tensor.coords)
    assert not np.shares_memory(row[2:].coords, tensor.coords)
    assert not np.shares_memory(tensor[3].coords, tensor.coords)
    assert tensor[3].coords.flags.c_contiguous
    assert np.shares_memory(tensor[...].coords, tensor.coords)


@pytest.mark.parametrize(
    "key", [np.s_[::2], np.s_[::-1], np.s_[:, 3], np.s_[3:5, 1], [4, 2]], ids=str
)
def test_other_slices_have_values_of_their_own(tensor, key):
    assert not np.shares_memory(tensor[key].values, tensor.values)
    assert np.array_equal(tensor[key].todense(), tensor.todense()[key])


def test_the_run_of_elements_ends_at_the_first_axis_that_takes_several(tensor):
    dense = tensor.todense()
    before, inside = np.count_nonzero(dense[:3]), np.count_nonzero(dense[3:5])
    run = slice(before, before + inside)
    assert stretch(select(np.s_[3:5, 2], tensor.shape), tensor) == (run, 1)
    assert stretch(select(np.s_[3:5:1], tensor.shape), tensor) == (run, 1)
    everything = slice(0, tensor.nnz)
    assert stretch(select((), tensor.shape), tensor) == (everything, 1)
    one = stretch(select_points((0, 0, 0), tensor.shape), tensor)
    assert one == (slice(0, np.count_nonzero(dense[0, 0, 0])), 3)
    empty, bounded = stretch(select(np.s_[2:2], tensor.shape), tensor)
    assert empty.start == empty.stop
    assert bounded == 3


def test_a_tensor_without_coordinates_is_sliced_by_places(tensor):
    def placed():
        return tl.SparseTensor._trusted(None, tensor.values, tensor.shape, tensor.places)

    dense = tensor.todense()
    for key in (
        np.s_[3:10],
        5,
        np.s_[3, 1:4],
        np.s_[3:10, 2],
        np.s_[2, 3, 4],
        np.s_[:, 1],
        np.s_[4:4],
        [3, 1],
        ...,
    ):
        x = placed()
        assert np.array_equal(np.asarray(x[key]), dense[key])
        assert x._coords is None or key in (..., np.s_[:, 1])
    x = placed()
    assert x[3:10]._coords is None
    assert np.shares_memory(x[:10].places, x.places)
