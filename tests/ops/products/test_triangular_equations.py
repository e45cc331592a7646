"""Triangular equations: solutions that solve, and triangles that do not."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from operands import SEEDS, array, sparse

import tensorlake_spark as tl
from tensorlake_spark.ops.products.triangular_equations import SingularMatrixError, solve


@given(
    dtype=st.sampled_from(["i4", "f2", "f4", "f8", "c16"]), seed=SEEDS, size=st.integers(1, 8),
    lower=st.booleans(), trans=st.sampled_from([0, 1, 2]), diag=st.booleans(), columns=st.integers(0, 3),
)  # fmt: skip
def test_a_triangle_is_solved_as_the_dense_one_is(dtype, seed, size, lower, trans, diag, columns):
    a = array((size, size), dtype, seed, 0.4) + np.eye(size, dtype=dtype) * np.array(5, dtype)
    b = array((size, columns)[: 1 + bool(columns)], dtype, seed + 1)
    worked = np.result_type(dtype, np.float32) if dtype != "i4" else np.float64
    want = scipy.linalg.solve_triangular(
        a.astype(worked), b.astype(worked), lower=lower, trans=trans, unit_diagonal=diag
    )
    got = solve(sparse(a), b, lower, trans, diag)
    assert got.dtype == (np.float64 if dtype == "i4" else np.dtype(dtype))
    tolerance = {"f2": 1e-2, "f4": 1e-4}.get(dtype, 1e-11)
    np.testing.assert_allclose(
        got, want, rtol=tolerance, atol=tolerance * np.abs(want).max(initial=1)
    )


def test_a_zero_on_the_diagonal_is_numpys_error_and_names_the_row():
    x = tl.SparseTensor([[0, 1], [0, 0]], [1.0, 2.0], (3, 3))
    with pytest.raises(
        np.linalg.LinAlgError, match=r"2 zeros on its diagonal, the first in row 1"
    ) as caught:
        solve(x, np.ones(3), lower=1)
    assert isinstance(caught.value, (tl.TensorLakeError, SingularMatrixError))
    assert solve(x, np.ones(3), lower=1, diag=1).tolist() == [1, -1, 1]


def test_a_triangle_is_kept():
    x = sparse(np.tri(4))
    solve(x, np.ones(4), lower=1)
    kept = dict(x._cached)
    solve(x, np.ones(4), lower=1)
    assert all(x._cached[key] is value for key, value in kept.items())


@pytest.mark.parametrize("option", ["lower", "trans", "diag"])
def test_options_that_are_not_there_are_named(option):
    with pytest.raises(tl.InvalidOptionError, match=f"{option}=7"):
        solve(np.eye(2), np.ones(2), **{option: 7})
