"""Values that are assigned: `np.broadcast_to` says what they become. tests of the builder try all kinds of values."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import DenseResultError, InvalidTensorError
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.sparse.assigned import FEW, assigned


@given(st.data())
def test_values_are_stretched(data):
    shape = data.draw(st.sampled_from([(30, 60), (2, 3, 4), (50, 1, 40), (0, 5), ()]))
    lengths = tuple(data.draw(st.sampled_from([1, n])) for n in shape)
    lengths = lengths[data.draw(st.integers(0, len(shape))) :]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = rng.integers(-1, 2, lengths) * (
        rng.random(lengths) < data.draw(st.sampled_from([0.1, 1]))
    )
    zeros = data.draw(st.booleans())
    for x in (values, SparseTensor.from_dense(values)):
        elements, every = assigned(x, shape, np.dtype("f4"), zeros)
        want = np.broadcast_to(values, shape)
        assert np.array_equal(elements.places, np.sort(elements.places))
        dense = np.zeros(want.size, "f4")
        dense[elements.places] = elements.values
        assert np.array_equal(dense.reshape(shape), want)
        assert elements.nnz == (want.size if every else np.count_nonzero(want))
        assert not every or zeros
        assert every or not zeros or want.size > FEW


def test_sparse_values_of_other_packages():
    elements, _ = assigned(scipy.sparse.coo_array(np.eye(3)), (2, 3, 3), np.dtype(int), zeros=False)
    assert elements.coords.tolist() == [[0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [0, 1, 2] * 2]


def test_sparse_values_for_an_empty_part_do_not_become_dense():
    some = SparseTensor([[0], [5]], [1.0], (1, 2**61))
    elements, every = assigned(some, (0, 2**61), np.dtype(float))
    assert (elements.shape, elements.nnz, every) == ((0, 2**61), 0, True)


def test_values_that_do_not_fit():
    for values, shape in [((2,), (3,)), ((2, 3), (3,)), ((0,), (3,)), ((2, 1), (3, 3))]:
        with pytest.raises(InvalidTensorError, match="cannot be assigned"):
            assigned(np.ones(values), shape, np.dtype(float))
    with pytest.raises(DenseResultError, match="bytes with their places"):
        assigned(1, (2**20, 2**20), np.dtype(float))
    assert assigned(0, (2**20, 2**20), np.dtype(float))[0].nnz == 0


def test_masked_values_are_refused():
    values = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(InvalidTensorError, match="1 element is masked; fill it"):
        assigned(values, (2,), np.dtype(float))
    elements, _ = assigned(np.ma.array([1.0, 2.0]), (2,), np.dtype(float))
    assert elements.values.tolist() == [1, 2]
