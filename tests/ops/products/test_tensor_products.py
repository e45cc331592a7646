"""ttv, ttm, mttkrp and khatri_rao: einsum of NumPy is the oracle."""

import ml_dtypes
import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from operands import SEEDS, array, check_canonical, sparse

import tensorlake_spark as tl
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.products.contraction import dense_of
from tensorlake_spark.ops.products.tensor_products import khatri_rao

SHAPES = st.lists(st.integers(1, 5), min_size=2, max_size=4)
NUMBERS = st.sampled_from(["i4", "f4", "f8", "c16"])


def factors_of(shape, rank, seed, dtype="f8"):
    return [array((n, rank), dtype, seed + k, 0.9) for k, n in enumerate(shape)]


@given(shape=SHAPES, dtype=NUMBERS, rank=st.integers(1, 4), seed=SEEDS, data=st.data())
def test_mttkrp_is_the_sum_of_products_for_any_mode(shape, dtype, rank, seed, data):
    x, factors = array(shape, dtype, seed), factors_of(shape, rank, seed)
    mode = data.draw(st.integers(0, len(shape) - 1))
    letters = "abcd"[: len(shape)]
    others = [k for k in range(len(shape)) if k != mode]
    text = ",".join([letters, *(letters[k] + "r" for k in others)]) + f"->{letters[mode]}r"
    want = np.einsum(text, x, *(factors[k] for k in others))
    got = sparse(x).mttkrp([u if k != mode else None for k, u in enumerate(factors)], mode)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    # What the names say: the unfolding times the Khatri-Rao product.
    unfolded = sparse(x).to_csr(mode)
    np.testing.assert_array_equal(unfolded @ khatri_rao([factors[k] for k in others]), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("of_factors", [None, "i1", "f4", "c8"])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_mttkrp_of_floats_that_scipy_does_not_have(dtype, of_factors, mode):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, factors = array((4, 3, 2), "f8", 1), factors_of((4, 3, 2), 2, 1)
    want = sparse(x).mttkrp(factors, mode)
    factors = [u.astype(of_factors or dtype) for u in factors]
    got = sparse(x.astype(dtype)).mttkrp(factors, mode)
    assert got.dtype == np.result_type(dtype, factors[0].dtype)
    np.testing.assert_array_equal(got.astype("c16"), want)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_mttkrp_of_many_fibres_is_that_of_all(mode, monkeypatch):
    monkeypatch.setattr("tensorlake_spark.ops.products.tensor_products._AT_ONCE", 3)
    x, factors = array((6, 5, 4), "f8", 1), factors_of((6, 5, 4), 2, 1)
    whole = "ijk,jr,kr->ir", "ijk,ir,kr->jr", "ijk,ir,jr->kr"
    others = [u for k, u in enumerate(factors) if k != mode]
    np.testing.assert_array_equal(
        sparse(x).mttkrp(factors, mode), np.einsum(whole[mode], x, *others)
    )


@times(0.5)
@given(shape=SHAPES, dtype=NUMBERS, seed=SEEDS, data=st.data())
def test_ttv_sums_with_weights_over_any_axes(shape, dtype, seed, data):
    x = array(shape, dtype, seed)
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))]
    vectors = [array((shape[k],), "f8", seed + k) for k in axes]
    letters = "abcd"[: len(shape)]
    rest = "".join(n for k, n in enumerate(letters) if k not in axes)
    text = ",".join([letters, *(letters[k] for k in axes)]) + "->" + rest
    want = np.einsum(text, x, *vectors)
    for kinds in (vectors, [sparse(v) for v in vectors], [sparse(vectors[0]), *vectors[1:]]):
        got = sparse(x).ttv(kinds, axes)
        if isinstance(got, Elements):
            check_canonical(got)
            got = dense_of(got)
        np.testing.assert_array_equal(got, want)
    if axes == sorted(axes) == list(range(len(shape))):
        assert sparse(x).ttv(vectors) == want


@times(0.5)
@given(shape=SHAPES, dtype=NUMBERS, seed=SEEDS, data=st.data())
def test_ttm_takes_the_vectors_of_its_axes_to_others(shape, dtype, seed, data):
    x = array(shape, dtype, seed)
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))]
    matrices = [array((data.draw(st.integers(1, 4)), shape[k]), "f8", seed + k) for k in axes]
    want = x
    for k, matrix in zip(axes, matrices):
        want = np.moveaxis(np.tensordot(want, matrix, ([k], [1])), -1, k)
    np.testing.assert_array_equal(sparse(x).ttm(matrices, axes), want)
    turned = [matrix.T for matrix in matrices]
    np.testing.assert_array_equal(sparse(x).ttm(turned, axes, transpose=True), want)
    thin = sparse(x).ttm([sparse(matrix) for matrix in matrices], axes)
    check_canonical(thin)
    np.testing.assert_array_equal(thin.todense(), want)


def test_khatri_rao_is_the_kronecker_product_of_columns():
    a, b, c = array((2, 3), "f8", 1), array((4, 3), "f8", 2), array((3, 3), "f8", 3)
    want = np.stack([np.kron(np.kron(a[:, r], b[:, r]), c[:, r]) for r in range(3)], axis=1)
    np.testing.assert_array_equal(khatri_rao([a, b, c]), want)
    thin = khatri_rao([a, sparse(b), c])
    check_canonical(thin)
    np.testing.assert_array_equal(dense_of(thin), want)


BAD = [
    (lambda x: x.ttv(np.ones(3), 2), IndexError, "out of bounds"),
    (lambda x: x.ttv(np.ones(5), 1), ValueError, "axis 1, of length 4, by a factor of shape"),
    (lambda x: x.ttv([np.ones(3)]), ValueError, "1 factors for 2 axes"),
    (lambda x: x.ttv([np.ones(3)] * 2, (0, 0)), ValueError, "given twice"),
    (lambda x: x.ttm(np.ones((3, 2)), 0), ValueError, "its axis 1 is as long"),
    (lambda x: x.mttkrp([np.ones((3, 2))], 0), ValueError, "1 factors for 2 axes"),
    (lambda x: x.mttkrp([None, np.ones((5, 2))], 0), ValueError, "factor 1 has shape"),
    (lambda x: x.mttkrp([None, None], 3), IndexError, "out of bounds"),
    (lambda x: x.ttv(None), ValueError, "ttv takes a list with a factor for each axis, not None"),
    (lambda x: x.ttm(np.array(1)), ValueError, "ttm takes a list with a factor for each axis"),
    (lambda x: x.mttkrp(5, 0), ValueError, "mttkrp takes a list .* not int"),
    (lambda x: x.tensordot(x, [1]), ValueError, r"or two sequences of them, not \[1\]"),
    (lambda x: x.tensordot(x, ((0, 1), (0,))), ValueError, "2 axes of the first operand and 1 of"),
    (lambda x: x.to_csr(5), IndexError, "out of bounds"),
    (lambda x: khatri_rao([np.ones((2, 3)), np.ones((2, 4))]), ValueError, "equally many columns"),
    (lambda x: khatri_rao([]), ValueError, "equally many columns"),
]


@pytest.mark.parametrize(("wrong", "kind", "said"), BAD)
def test_what_does_not_fit_is_named(wrong, kind, said):
    x = sparse(np.arange(12.0).reshape(3, 4))
    with pytest.raises(kind, match=said):
        wrong(x)


def test_one_axis_has_no_khatri_rao_product():
    with pytest.raises(tl.InvalidTensorError, match="rank 1; it takes 2 axes or more"):
        sparse(np.ones(3)).mttkrp([None], 0)
