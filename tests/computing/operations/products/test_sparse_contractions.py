"""Products of stored tensors with sparse ones: NumPy is the oracle."""

import pickle

import numpy as np
import pytest
from computed import LAYOUTS, array_of, dense, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.computing.operations.products import contractions
from tensorlake_spark.errors import AxisError, InvalidTensorError
from tensorlake_spark.tensor.sparse import SparseTensor


def sparse(array):
    return SparseTensor.from_dense(array)


@given(st.data(), st.sampled_from(("f8", "i2", "c8")), st.sampled_from(LAYOUTS), st.integers(0, 50))
@times(0.3)
def test_products_are_numpys(shared, data, dtype, layout, seed):
    array = array_of(dtype, (5, 6, 4), 3 * seed + 1)
    key = data.draw(keys(array.shape))
    x, view = array[key], put(shared, array, layout).view[key]
    if not x.ndim:
        return
    k = data.draw(st.integers(0, x.ndim - 1))
    other = array_of("f4", (2, x.shape[k], 3), 3 * seed + 2)
    for axes in ((k, 1), 0):
        wanted = np.tensordot(x, other, axes)
        found = np.tensordot(view, sparse(other), axes)
        np.testing.assert_allclose(dense(found), wanted, rtol=1e-4, atol=1e-6)
        assert found.dtype == wanted.dtype
    turned = np.tensordot(sparse(other), view, (1, k))
    np.testing.assert_allclose(dense(turned), np.tensordot(other, x, (1, k)), rtol=1e-4, atol=1e-6)
    matrix = array_of("f8", (x.shape[-1], 3), 3 * seed + 2)
    np.testing.assert_allclose(dense(np.dot(view, sparse(matrix))), np.dot(x, matrix), atol=1e-9)


def test_a_result_is_sparse_where_both_are_and_canonical(lake):
    array, other = array_of("f8", (4, 5), 1), sparse(array_of("f8", (5, 3), 2))
    product = put(lake, array, "bsgs").dot(other)
    assert isinstance(product, SparseTensor)
    assert product.equals(sparse(product.todense()))
    assert isinstance(put(lake, array, "ftsf").dot(other), np.ndarray)
    assert isinstance(put(lake, array, "ftsf").tensordot(other, 0), SparseTensor)
    nothing = SparseTensor(np.zeros((2, 0), int), np.zeros(0), (5, 3))
    assert put(lake, array, "bsgs").dot(nothing).nnz == 0
    assert not put(lake, array, "ftsf").dot(nothing).any()


def test_matrix_products_and_sums_over_all_axes(lake):
    array, other = array_of("f8", (4, 5), 1), array_of("f8", (5, 3), 2)
    for layout in LAYOUTS:
        ref = put(lake, array, layout)
        np.testing.assert_allclose(dense(ref @ sparse(other)), array @ other)
        np.testing.assert_allclose(ref.tensordot(sparse(array)), (array * array).sum())


def test_two_stored_sparse_tensors_are_multiplied(lake):
    array = array_of("f8", (4, 5), 1)
    x, y = put(lake, array, "bsgs"), put(lake, array.T.copy(), "coo")
    found = x.dot(y)
    assert isinstance(found, SparseTensor)
    np.testing.assert_allclose(found.todense(), array @ array.T)
    assert x.dot(y, into="product")[...].shape == (4, 4)


def test_coordinates_of_huge_tensors(lake):
    long = 10**9
    x = lake.write("x", SparseTensor([[3, long - 1], [5, 7]], [2.0, 3.0], (long, long)))
    found = x.dot(SparseTensor([[5, 7], [1, long - 1]], [5.0, 7.0], (long, long)))
    assert found.coords.tolist() == [[3, long - 1], [1, long - 1]]
    assert found.values.tolist() == [10.0, 21.0]
    with pytest.raises(InvalidTensorError):
        x.tensordot(SparseTensor([[5], [1]], [5.0], (long, long)), 0)


def test_what_does_not_fit_is_refused(lake):
    ref = put(lake, array_of("f8", (4, 5), 1), "ftsf")
    with pytest.raises(InvalidTensorError, match="axis 1 has length 5"):
        ref.dot(sparse(np.ones(4)))
    with pytest.raises(AxisError):
        ref.tensordot(sparse(np.ones(4)), (0, 1))


def test_a_fold_is_pickled(lake):
    array = array_of("f8", (4, 5), 1)
    stored = put(lake, array, "coo")._stored
    fold = pickle.loads(pickle.dumps(contractions.dot(stored, sparse(array.T))))
    assert fold.answer_shape == (4, 4)
