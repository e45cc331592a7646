"""The array API of sparse tensors."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.tensor.sparse.array_namespace import (
    CONSTANTS,
    DTYPES,
    ELEMENTWISE,
    OTHERS,
    VERSION,
)

X = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
XP = X.__array_namespace__()


def test_a_version_that_is_not_there_is_refused():
    assert X.__array_namespace__(api_version=VERSION) is XP
    with pytest.raises(ValueError, match=r"2019\.12"):
        X.__array_namespace__(api_version="2019.12")
    assert XP.__array_api_version__ == VERSION


def test_every_name_is_there():
    for name in (*DTYPES, *CONSTANTS, *ELEMENTWISE, *OTHERS):
        assert getattr(XP, name) is getattr(np, name)
    assert XP.__array_namespace_info__().dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert XP.__array_namespace_info__().default_dtypes()["integral"] == np.int64
    assert XP.__array_namespace_info__().devices() == [X.device]
    assert XP.__array_namespace_info__().capabilities()["boolean indexing"]


def test_what_makes_arrays_makes_sparse_tensors():
    for x in (
        XP.asarray(np.eye(3), dtype=XP.float32),
        XP.astype(XP.asarray(X), XP.float32),
        XP.zeros((2, 3), dtype=XP.float32),
        XP.empty(3, dtype=XP.float32),
        XP.eye(3, dtype=XP.float32),
        XP.zeros_like(X, dtype=XP.float32),
    ):
        assert isinstance(x, tl.SparseTensor)
        assert x.dtype == np.float32
    assert XP.asarray([[0, 5.0], [-7.0, 0]]).equals(X)
    assert XP.asarray(X.to_scipy()).equals(X)


@pytest.mark.parametrize("shape", [(3,), (3, 5), (5, 3), (0, 2)])
@pytest.mark.parametrize("k", [-4, -1, 0, 2, 9])
def test_ones_in_a_diagonal_are_numpys(shape, k):
    np.testing.assert_array_equal(XP.eye(*shape, k=k).todense(), np.eye(*shape, k=k), strict=True)


def test_functions_of_the_namespace_are_those_of_sparse_tensors():
    assert XP.sum(X) == -2
    assert isinstance(XP.permute_dims(X, (1, 0)), tl.SparseTensor)
    assert isinstance(XP.concat([X, X]), tl.SparseTensor)
    assert isinstance(XP.abs(X), tl.SparseTensor)
    assert XP.take(X, [1, 1], axis=0).todense().tolist() == [[-7, 0], [-7, 0]]
    assert float(XP.std(X, correction=1)) == pytest.approx(np.std(X.todense(), ddof=1))
    with pytest.raises(ValueError, match="needs an axis"):
        XP.take(X, [1])
    assert XP.take(X, [0], axis=-1).todense().tolist() == [[0], [-7]]
    for axis in (2, 5, -3):
        with pytest.raises(IndexError, match=f"axis {axis} is out of bounds"):
            XP.take(X, [1], axis=axis)


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("dtypes", [("c16", "f4"), ("i1", "i1"), ("f8", "c8")])
def test_dot_products_of_vectors_are_numpys(dtypes, axis):
    first, second = (X.todense() * (1j if d[0] == "c" else 1) for d in dtypes)
    first, second = first.astype(dtypes[0]), second[:1].astype(dtypes[1])
    wanted = np.vecdot(*np.broadcast_arrays(first, second), axis=axis)
    found = XP.vecdot(XP.asarray(first), XP.asarray(second), axis=axis)
    np.testing.assert_array_equal(found.todense(), wanted, strict=True)


def test_a_name_that_is_not_there_says_what_has_it():
    with pytest.raises(AttributeError, match=r"no 'sort'.*x\.todense\(\)"):
        XP.sort
    with pytest.raises(AttributeError, match="did you mean 'reshape'"):
        XP.reshap


def test_there_is_one_device():
    assert X.to_device("cpu") is X
    for call in (lambda: X.to_device("cuda"), lambda: XP.zeros(3, device="cuda")):
        with pytest.raises(ValueError, match="no device 'cuda'"):
            call()
