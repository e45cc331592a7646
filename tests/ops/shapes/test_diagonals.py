"""Diagonals and triangles; NumPy is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases, check_like_numpy

import tensorlake_spark as tl


@given(st.data(), cases(["int32", "float64"]), st.integers(-5, 5))
def test_diagonals_are_numpys(data, case, k):
    dense, x = case
    one, other = data.draw(st.tuples(st.integers(-4, 3), st.integers(-4, 3)))
    check_like_numpy(
        lambda: np.diagonal(x, k, one, other), lambda: np.diagonal(dense, k, one, other)
    )
    check_like_numpy(lambda: np.trace(x, k, one, other), lambda: np.trace(dense, k, one, other))
    check_like_numpy(lambda: np.diag(x, k), lambda: np.diag(dense, k))


@given(cases(["int32", "float64"]), st.integers(-5, 5))
def test_triangles_are_numpys(case, k):
    dense, x = case
    check_like_numpy(lambda: np.tril(x, k), lambda: np.tril(dense, k))
    check_like_numpy(lambda: np.triu(x, k), lambda: np.triu(dense, k))


def test_a_diagonal_of_one_axis_is_refused():
    with pytest.raises(ValueError, match="needs two axes, this tensor has 1"):
        tl.SparseTensor([[1]], [2.0], (3,)).diagonal()
