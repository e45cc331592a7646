"""Tensors as matrices of SciPy, and what is computed by them: NumPy is the oracle."""

import numpy as np
import pytest
from reduced import check_canonical
from scipy import sparse

import tensorlake_spark as tl
from tensorlake_spark import thread_shares
from tensorlake_spark.ops import csr_matrix
from tensorlake_spark.ops.csr_matrix import cells_of, run_sums, split_matrix
from tensorlake_spark.ops.reducing import groups

DTYPES = ["float64", "float32", "float16", "int64", "uint8", "bool", "complex64"]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Also small tensors become matrices, whose rows threads share."""
    monkeypatch.setattr(thread_shares, "_ALONE", 1)
    monkeypatch.setattr(thread_shares, "THREADS", 3)
    monkeypatch.setattr(csr_matrix, "_MANY", 0)
    monkeypatch.setattr(csr_matrix, "_AT_ONCE", 3)
    monkeypatch.setattr(groups, "_MANY", 0)


def some(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)
    dense = np.abs(dense) if np.dtype(dtype).kind in "ub" else dense
    dense = dense.astype(dtype)
    if dense.dtype.kind == "f" and dense.size > 2:
        dense.flat[[0, -1]] = np.inf, np.nan
    return dense


def check(found, wanted):
    check_canonical(found)
    np.testing.assert_array_equal(found.todense(), wanted)
    assert found.dtype == wanted.dtype


def test_empty_rows_at_the_end_take_no_time(monkeypatch):
    calls = []
    repeat = np.repeat
    monkeypatch.setattr(np, "repeat", lambda *given: (calls.append(1), repeat(*given))[1])
    dense = np.zeros((900, 4))
    dense[:3] = 1
    cells, values = cells_of(sparse.csr_array(dense))
    assert cells.tolist() == [[0] * 4 + [1] * 4 + [2] * 4, [0, 1, 2, 3] * 3]
    assert values.tolist() == [1] * 12
    assert len(calls) == 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (1, 9), (9, 1), (0, 4)])
def test_matrices_are_turned_added_and_summed_as_numpys(dtype, shape):
    dense, other = some(dtype, shape), some(dtype, shape, 1)
    x, y = map(tl.SparseTensor.from_dense, (dense, other))
    check(x.T, dense.T)
    check(x.T.T, dense)
    check(x + y, dense + other)
    check(np.maximum(x, y), np.maximum(dense, other))
    check(np.less(x, y), np.less(dense, other))
    for axis in (0, 1):
        check(x.sum(axis=axis), dense.sum(axis=axis))
        check(x.sum(axis=axis, keepdims=True), dense.sum(axis=axis, keepdims=True))
    check(np.concatenate([x, y]), np.concatenate([dense, other]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axes", [(1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 1)])
def test_axes_that_change_places_in_groups(dtype, axes):
    dense = some(dtype, (4, 5, 6))
    x = tl.SparseTensor.from_dense(dense)
    check(x.transpose(axes), dense.transpose(axes))
    check(x.sum(axis=(0, 1)), dense.sum(axis=(0, 1)))
    check(x.sum(axis=(1, 2)), dense.sum(axis=(1, 2)))


def test_stored_zeros_do_not_come_back():
    x = tl.SparseTensor([[0, 1, 2], [1, 0, 1]], [0.0, 5.0, -0.0], (3, 2))
    for found in (x.T, x + x, x.sum(axis=0), x.sum(axis=1), np.concatenate([x, x])):
        check_canonical(found)
    small = np.concatenate([x, x], dtype="int8", casting="unsafe")
    check_canonical(small)


def test_sums_that_cancel_are_not_stored():
    dense = np.array([[2.0, -2.0, 0.0], [-2.0, 3.0, 0.0]])
    x = tl.SparseTensor.from_dense(dense)
    check(x.sum(axis=0), dense.sum(axis=0))
    check(x.sum(axis=1), dense.sum(axis=1))
    assert (x + tl.SparseTensor.from_dense(-dense)).nnz == 0


def test_rows_are_counted_a_part_at_a_time():
    dense = some("int64", (40, 3))
    dense[5:17] = 0
    x = tl.SparseTensor.from_dense(dense)
    cells, values = cells_of(split_matrix(x, 1))
    assert np.array_equal(cells, x.coords)
    assert np.array_equal(values, x.values)


def test_no_matrix_is_made_where_it_would_be_mostly_empty():
    x = tl.SparseTensor([[3], [10**9]], [1.0], (10, 10**10))
    assert split_matrix(x, 1) is None
    assert x.T.coords.tolist() == [[10**9], [3]]


def test_sums_of_runs():
    values, starts = np.array([1.0, 2.0, np.inf, 4.0]), np.array([0, 2, 3])
    assert run_sums(values, starts).tolist() == [3.0, np.inf, 4.0]
