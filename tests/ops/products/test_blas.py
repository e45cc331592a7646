"""BLAS: SciPy's of dense arrays is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operands import SEEDS, array, check, sparse
from scipy.linalg import blas as dense_blas
from scipy.linalg import get_blas_funcs

import tensorlake_spark as tl
from tensorlake_spark.ops.products import blas
from tensorlake_spark.ops.products.contraction import dense_of
from tensorlake_spark.ops.products.tensor_products import khatri_rao

FLOATS = st.sampled_from("fdFD")


@given(dtype=FLOATS, seed=SEEDS, length=st.integers(1, 6))
def test_level_1(dtype, seed, length):
    x, y = array((length,), dtype, seed), array((length,), dtype, seed + 1)
    norm = {"f": "snrm2", "d": "dnrm2", "F": "scnrm2", "D": "dznrm2"}[dtype]
    total = {"f": "sasum", "d": "dasum", "F": "scasum", "D": "dzasum"}[dtype]
    place = {"f": "isamax", "d": "idamax", "F": "icamax", "D": "izamax"}[dtype]
    np.testing.assert_allclose(blas.nrm2(sparse(x)), getattr(dense_blas, norm)(x), rtol=1e-6)
    assert blas.asum(sparse(x)) == getattr(dense_blas, total)(x)
    assert blas.iamax(sparse(x)) == getattr(dense_blas, place)(x)
    check(blas.dot, np.dot, x, y)
    check(lambda x, y: blas.axpy(x, y, 3), lambda x, y: 3 * x + y, x, y)
    check(lambda x: blas.scal(-2, x), lambda x: -2 * x, x)
    check(lambda x, y: blas.rot(x, y, 2, 3)[0], lambda x, y: 2 * x + 3 * y, x, y)
    check(lambda x, y: blas.rot(x, y, 2, 3)[1], lambda x, y: 2 * y - 3 * x, x, y)


def test_tensors_of_any_rank_are_vectors_in_c_order():
    x = sparse(np.array([[0, 3.0], [-4.0, 0]]))
    assert (blas.nrm2(x), blas.asum(x), blas.iamax(x), blas.dot(x, x)) == (5, 7, 2, 25)


def test_norms_do_not_overflow_and_take_what_is_not_finite():
    assert blas.nrm2(np.array([3e200, 4e200])) == pytest.approx(5e200)
    assert blas.nrm2(np.array([np.inf, 1.0])) == np.inf
    assert np.isnan(blas.nrm2(np.array([np.nan, 1.0])))
    assert blas.nrm2(np.zeros(3)) == 0
    assert blas.nrm2(sparse(np.array([3, 4]))) == 5


def test_the_place_of_the_largest():
    assert blas.iamax(sparse(np.zeros(3))) == 0
    assert blas.iamax(np.array([0, np.nan, 9])) == 1
    with pytest.raises(ValueError, match="without elements"):
        blas.iamax(np.zeros(0))


@given(
    dtype=FLOATS, seed=SEEDS, trans=st.sampled_from([0, 1, 2]), trans_b=st.sampled_from([0, 1, 2]),
    with_y=st.booleans(), real=st.booleans(),
)  # fmt: skip
def test_levels_2_and_3(dtype, seed, trans, trans_b, with_y, real):
    a, b = array((3, 4), dtype, seed), array((2, 4), dtype, seed + 1)
    a = a if not trans else a.T.copy()
    b = b if trans_b else b.T.copy()
    x, y, c = (array(n, dtype, seed + 2) for n in ((4,), (3,), (3, 2)))
    alpha, beta = (2, 3) if real or dtype in "fd" else (2 + 1j, 3)
    extra = {"beta": beta, "y": y} if with_y else {}
    gemv = get_blas_funcs("gemv", dtype=dtype)
    check(
        lambda a, x, *y: blas.gemv(np.dtype(dtype).type(alpha), a, x, beta, *y, trans=trans),
        lambda a, x, *y: gemv(alpha, a, x, trans=trans, **extra),
        *((a, x, y) if with_y else (a, x)),
    )  # fmt: skip
    gemm = get_blas_funcs("gemm", dtype=dtype)
    extra = {"beta": beta, "c": c} if with_y else {}
    check(
        lambda a, b, *c: blas.gemm(np.dtype(dtype).type(alpha), a, b, beta, *c, trans_a=trans, trans_b=trans_b),
        lambda a, b, *c: gemm(alpha, a, b, trans_a=trans, trans_b=trans_b, **extra),
        *((a, b, c) if with_y else (a, b)),
    )  # fmt: skip


def test_sparse_times_dense_has_names_of_its_own():
    a = array((3, 4), "d", 1)
    check(blas.spmv, np.matmul, a, array((4,), "d", 2))
    check(blas.spmm, np.matmul, a, array((4, 2), "d", 3))


@pytest.mark.parametrize("side", [0, 1])
@given(
    dtype=FLOATS,
    seed=SEEDS,
    lower=st.booleans(),
    trans=st.sampled_from([0, 1, 2]),
    diag=st.booleans(),
)
def test_triangular_equations(side, dtype, seed, lower, trans, diag):
    a = array((4, 4), dtype, seed) + 5 * np.eye(4, dtype=dtype)
    b = array((2, 4) if side else (4, 2), dtype, seed + 1)
    trsm = get_blas_funcs("trsm", dtype=dtype)
    want = trsm(2, a, b, side=side, lower=lower, trans_a=trans, diag=diag)
    tolerance = 1e-4 if dtype in "fF" else 1e-12
    scale = np.abs(want).max(initial=1)
    for right in (b, sparse(b)):
        got = blas.trsm(np.dtype(dtype).type(2), sparse(a), right, side, lower, trans, diag)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
    if not side:
        got = blas.trsv(sparse(a), b[:, 0], lower, trans, diag)
        np.testing.assert_allclose(2 * got, want[:, 0], rtol=tolerance, atol=tolerance * scale)


BAD = [
    (lambda x: blas.axpy(x, np.ones(3)), r"axpy of shapes \(2, 3\) and \(3,\)"),
    (lambda x: blas.gemv(1, x, np.ones((3, 1))), "takes rank 1"),
    (lambda x: blas.gemv(1, x, np.ones(2)), "length 3, axis 0 of the second 2"),
    (lambda x: blas.gemv(1, x, np.ones(3), trans=3), "trans=3; it is 0, 1 or 2"),
    (lambda x: blas.gemm(1, x, np.ones(3)), "takes rank 2"),
    (lambda x: blas.gemv(1, x, np.ones(3), 1, np.ones(3)), r"beta \* y of shapes"),
    (lambda x: blas.scal(np.nan, x), "NaN for every zero"),
    (lambda x: blas.trsv(x, np.ones(2)), "must be square"),
]


@pytest.mark.parametrize(("wrong", "said"), BAD)
def test_what_does_not_fit_is_a_value_error_that_names_it(wrong, said):
    with pytest.raises(ValueError, match=said) as caught:
        wrong(sparse(array((2, 3), "d", 0)))
    assert isinstance(caught.value, tl.TensorLakeError)


def test_what_is_swapped_or_turned_is_new():
    x, y = sparse(np.array([0, 1.0])), sparse(np.array([2.0, 0]))
    assert blas.swap(x, y) == (y, x)
    blas.rot(x, y, 0.0, 1.0)
    assert dense_of(x).tolist() == [0, 1]


def test_sparse_results_are_tensors_as_the_operands_are():
    x = sparse(np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 4]]))
    y = x[0]
    results = [
        blas.axpy(y, x[2], 2), blas.scal(2, y), *blas.rot(y, y, 2, 3), blas.gemv(2, x, y), blas.spmv(x, y),
        blas.gemm(1, x, x, 2, x), blas.spmm(x, x), *blas.swap(y, x[1]), khatri_rao([x, x]), khatri_rao([np.eye(3), x]),
    ]  # fmt: skip
    assert {type(found) for found in results} == {tl.SparseTensor}
    assert (results[1] + y).todense().tolist() == [3, 0, 6]
