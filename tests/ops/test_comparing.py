"""Tensors as a whole; NumPy is the oracle."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases, sparse_of

import tensorlake_spark as tl


@times(2)
@given(cases(), st.booleans())
def test_distinct_values_are_numpys(case, equal_nan):
    dense, x = case
    options = {"return_index": True, "return_counts": True, "equal_nan": equal_nan}
    for got, want in zip(np.unique(x, **options), np.unique(dense, **options), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
    np.testing.assert_array_equal(np.unique(x), np.unique(dense))
    np.testing.assert_array_equal(np.unique_counts(x).counts, np.unique_counts(dense).counts)


def test_the_inverse_and_slices_name_the_way_out():
    x = tl.SparseTensor([[1]], [2.0], (3,))
    with pytest.raises(tl.DenseResultError, match="24 bytes"):
        np.unique(x, return_inverse=True)
    with pytest.raises(TypeError, match="axis is None"):
        np.unique(x, axis=0)


@times(2)
@given(st.data(), cases())
def test_equal_and_close_are_numpys(data, case):
    dense, x = case
    other = dense.copy()
    if dense.size and data.draw(st.booleans()):
        other.reshape(-1)[data.draw(st.integers(0, dense.size - 1))] = data.draw(
            st.sampled_from([0, 1])
        )
    y = data.draw(st.sampled_from([other, sparse_of(other)]))
    equal_nan = data.draw(st.booleans())
    assert np.array_equal(x, y, equal_nan) == np.array_equal(dense, other, equal_nan)
    if dense.dtype != bool:
        with np.errstate(all="ignore"):
            want = np.allclose(dense, other, equal_nan=equal_nan)
            assert np.allclose(x, y, equal_nan=equal_nan) == want
            assert np.allclose(x, 0) == np.allclose(dense, 0)
            assert np.allclose(1, x) == np.allclose(1, dense)


def test_shapes_that_differ_are_not_equal_and_may_broadcast():
    x = tl.SparseTensor([[1]], [2.0], (2,))
    assert not np.array_equal(x, x.reshape(1, 2))
    assert np.allclose(x, np.array([[0, 2.0], [0, 2.0]]))
    assert not np.allclose(x, np.array([[0, 2.0], [0, 3.0]]))


def test_what_numpy_asks_of_any_array_is_answered():
    x = tl.SparseTensor([[1], [0]], np.array([2], np.int8), (3, 2))
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((3, 2), 2, 6, 2)
    assert np.result_type(x, 1.0) == np.float64
    assert np.result_type(x, 1) == np.int8
    assert not np.iscomplexobj(x)
    assert np.isrealobj(x)
    assert np.may_share_memory(x, x)
    assert not np.shares_memory(x, np.zeros(3))
    zeros = np.zeros_like(x, dtype=float)
    assert (zeros.nnz, zeros.shape, zeros.dtype) == (0, (3, 2), np.float64)
    assert np.zeros_like(x, shape=4).shape == (4,)
    assert np.copy(x).equals(x)
