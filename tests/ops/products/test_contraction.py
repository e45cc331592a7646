"""Contraction: tensors as matrices, which are kept, and products by labels."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from operands import SEEDS, array, check_canonical, sparse

import tensorlake_spark as tl
from tensorlake_spark.ops.products import contraction
from tensorlake_spark.ops.products.contraction import elements_of, multiply, same_lengths, to_csr


@times(0.5)
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=SEEDS, data=st.data())
def test_a_matrix_has_any_axes_as_rows(shape, seed, data):
    x = array(shape, "f8", seed)
    rows = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    others = [k for k in range(len(shape)) if k not in rows]
    count = int(np.prod([shape[k] for k in rows]))
    want = x.transpose(*rows, *others).reshape(count, -1)
    found = to_csr(sparse(x), rows)
    np.testing.assert_array_equal(found.toarray(), want)
    assert found.has_sorted_indices


def test_a_matrix_is_kept_and_cannot_be_written_to():
    x = sparse(np.eye(3))
    found = x.to_csr(1)
    assert x.to_csr(rows=[1]) is found
    assert x.to_csr() is not found
    with pytest.raises(ValueError, match="read-only"):
        found.data[0] = 5
    x @ np.ones(3)
    assert len(x._cached) == 2, "a product takes the matrix that is there"


def test_a_dtype_without_matrices_is_named():
    with pytest.raises(tl.InvalidTensorError, match="float16; convert it"):
        sparse(np.eye(2, dtype="f2")).to_csr()


@given(seed=SEEDS, out=st.permutations("abcde"), count=st.integers(0, 5))
def test_a_product_by_labels_is_that_of_einsum(seed, out, count):
    a, b = array((2, 3, 2, 4), "i8", seed), array((3, 2, 2), "i8", seed + 1)
    # What is in one operand only has to stay.
    out = "".join(n for n in out if n in "ade" or n in "".join(out[:count]))
    want = np.einsum(f"abcd,bce->{out}", a, b)
    found = multiply(sparse(a), "abcd", sparse(b), "bce", out)
    check_canonical(found)
    np.testing.assert_array_equal(contraction.dense_of(found), want)
    for some in ((sparse(a), b), (a, sparse(b))):
        got = multiply(some[0], "abcd", some[1], "bce", out)
        assert isinstance(got, np.ndarray) == (not {*"bc"} <= {*out})
        np.testing.assert_array_equal(contraction.dense_of(got), want)


def test_infinite_elements_beside_what_is_not_stored_count_as_zero():
    x = elements_of(np.array([[0.0, 2.0], [0.0, 0.0]]))
    assert multiply(x, "ij", np.array([np.inf, 1.0]), "j", "i").tolist() == [2, 0]
    found = multiply(x, "ij", elements_of(np.array([[np.inf, 0], [np.nan, 0]])), "jk", "ik")
    assert found.nnz == 1
    assert np.isnan(found.values[0])


def test_axes_of_one_label_have_one_length_or_that_of_one():
    with pytest.raises(
        tl.InvalidTensorError, match="has length 4, and the axis that it goes with has 3"
    ):
        same_lengths([np.ones(3), np.ones(4)], ["i", "i"])


def test_products_of_elements_that_cancel_are_not_stored():
    x = elements_of(np.array([[1.0, 1.0]]))
    found = multiply(x, "ij", elements_of(np.array([[1.0, 2.0], [-1.0, 2.0]])), "jk", "ik")
    assert found.coords.tolist() == [[0], [1]]
