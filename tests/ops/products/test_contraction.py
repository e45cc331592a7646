"""Contraction: tensors as matrices, which are kept, and products by labels."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from operands import SEEDS, array, check_canonical, sparse

import tensorlake_spark as tl
from tensorlake_spark import thread_shares
from tensorlake_spark.ops.csr_matrix import kept_blocks
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
    there = {*x._cached}
    x @ np.ones(3)
    assert {key[0] for key in {*x._cached} - there} == {"blocks"}
    assert x._cached["blocks", (0,), (1,), False][0].matrix is x.to_csr(), "the one that is there"


@pytest.mark.parametrize("char", "?bBilfdFDe")
@pytest.mark.parametrize("full", [0.0, 0.1, 0.9])
def test_threads_share_rows(char, full, monkeypatch):
    monkeypatch.setattr(thread_shares, "_ALONE", 1)
    monkeypatch.setattr(thread_shares, "THREADS", 3)
    rng = np.random.default_rng(3)
    dense = (rng.integers(1, 4, (50, 40)) * (rng.random((50, 40)) < full)).astype(char)
    dense[7] = 1  # one row has more than a share
    right, left = (rng.integers(0, 4, shape).astype(char) for shape in ((40, 5), (50,)))
    for y in (dense, dense[:1], dense[:0], dense[10:12] * np.array(0, char)):
        x = tl.SparseTensor.from_dense(y)
        for found, wanted in (
            (x @ right, y @ right), (x @ right[:, 0], y @ right[:, 0]),
            (left[: len(y)] @ x, left[: len(y)] @ y), (right.T @ x.T, right.T @ y.T),
        ):  # fmt: skip
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype
    x = tl.SparseTensor.from_dense(dense)
    if full and char != "e":
        assert len(kept_blocks(x, (0,), (1,))) == 3
        assert len(kept_blocks(x, (0,), (1,), turned=True)) == 2


def test_a_sum_over_rows_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(thread_shares, "_ALONE", 1)
    rng = np.random.default_rng(4)
    dense, left = rng.normal(size=(200, 9)), rng.normal(size=200)
    found = []
    for threads in (2, 3, 16):
        monkeypatch.setattr(thread_shares, "THREADS", threads)
        found.append((left @ tl.SparseTensor.from_dense(dense)).tolist())
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(found[0], left @ dense)


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
