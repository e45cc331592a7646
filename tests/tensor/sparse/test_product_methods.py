"""Products as methods and operators: they are those of NumPy, and give tensors of the class."""

import numpy as np

import tensorlake_spark as tl

DENSE = np.array([[0, 2, 0], [3, 0, 0], [0, 0, 4]])
X = tl.SparseTensor.from_dense(DENSE)


def test_products_with_sparse_tensors_are_sparse_tensors():
    for found in (X @ X, X.dot(X), X.tensordot(X, 1), np.dot(X, X), np.einsum("ij,jk->ik", X, X)):
        assert isinstance(found, tl.SparseTensor)
        np.testing.assert_array_equal(found.todense(), DENSE @ DENSE)
    assert isinstance(np.kron(X, DENSE), tl.SparseTensor)


def test_products_with_arrays_are_arrays():
    for found in (X @ DENSE, X.dot(DENSE), [[1, 0, 0], [0, 1, 0], [0, 0, 1]] @ X @ DENSE):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, DENSE @ DENSE)


def test_kernels_of_decompositions():
    ones = np.ones((3, 2))
    assert X.ttv([1, 1, 1], 0).tolist() == [3, 2, 4]
    assert X.ttm(ones.T, 0).tolist() == [[3, 2, 4]] * 2
    assert X.mttkrp([None, ones], 0).tolist() == [[2, 2], [3, 3], [4, 4]]
    assert X.to_csr(1).toarray().tolist() == DENSE.T.tolist()
