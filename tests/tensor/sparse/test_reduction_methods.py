"""Reductions as methods are the functions of NumPy."""

import numpy as np
import pytest
from reduced import NAMES, arguments_of, check_like_numpy, check_odd_axes, numpy_of

import tensorlake_spark as tl

DENSE = np.array([[[0, 2.5, 0], [0, 0, -1]], [[4, 0, 0], [0, 0, 3]]])
X = tl.SparseTensor.from_dense(DENSE)

REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "min",
    "max",
    "any",
    "all",
    "count_nonzero",
    "nansum",
    "nanmin",
    "nanmax",
    "norm",
]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_a_method_is_numpys(name, axis):
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    if name == "norm" and axis is None:
        axis = (0, 1)
    got, want = (
        getattr(X, name)(axis=axis, keepdims=True),
        function(DENSE, axis=axis, keepdims=True),
    )
    assert isinstance(got, tl.SparseTensor)
    np.testing.assert_allclose(got.todense(), want)
    assert got.dtype == want.dtype


def test_without_axes_left_it_is_a_scalar_and_else_sparse():
    for name in REDUCTIONS:
        assert isinstance(getattr(X, name)(), np.generic)
        assert isinstance(getattr(X, name)(axis=0), tl.SparseTensor)
    assert isinstance(np.sum(X), np.float64)
    # Also where every cell is stored, for the type does not depend on values or on lengths.
    ones = X[:, :0].prod(axis=1)
    assert isinstance(ones, tl.SparseTensor)
    assert ones.nnz == ones.size == 6


def test_masks_and_first_values_are_taken():
    mask = np.array([True, False, True])
    assert X.sum(where=mask, initial=10) == DENSE.sum(where=mask, initial=10)
    assert X.mean(where=mask) == DENSE.mean(where=mask)
    assert X.max(where=mask, initial=-5) == DENSE.max(where=mask, initial=-5)
    assert X.var(where=X > 0, ddof=1) == DENSE.var(where=DENSE > 0, ddof=1)


def test_indices_are_arrays():
    np.testing.assert_array_equal(X.argmax(axis=2), DENSE.argmax(axis=2), strict=True)
    np.testing.assert_array_equal(X.argmin(axis=0, keepdims=True), DENSE.argmin(0, keepdims=True))
    np.testing.assert_array_equal(X.argwhere(), np.argwhere(DENSE))
    assert X.first_index((">", 2)) == 1
    assert [row.tolist() for row in X.nonzero()] == [row.tolist() for row in DENSE.nonzero()]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_numpys_in_numpys_order(name):
    assert arguments_of(getattr(tl.SparseTensor, name)) == arguments_of(numpy_of(name))
    check_odd_axes(name, X[0], DENSE[0])
    if "out" in dict(arguments_of(numpy_of(name))):
        with pytest.raises(tl.UnsupportedFunctionError, match=r"out= is not there.*use what"):
            getattr(X, name)(out=np.zeros(()))


def test_an_index_is_along_one_axis():
    for call in (X.argmax, X.argmin, lambda axis: X.first_index((">", 0), axis)):
        with pytest.raises(TypeError, match=r"along one axis.*None.*not along"):
            call((0, 1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [None, 0, -1, 1, (), (0,)])
def test_axes_of_a_scalar_are_numpys(name, axis):
    x, array = tl.SparseTensor(np.zeros((0, 1), int), [3.0], ()), np.array(3.0)
    check_like_numpy(
        lambda: getattr(x, name)(axis=axis), lambda: numpy_of(name)(array, axis=axis), kind="array"
    )


@pytest.mark.parametrize("asked", ["no_such", "U3", "datetime64[s]"])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "nansum"])
def test_a_dtype_that_numpy_refuses_is_named(name, asked):
    with pytest.raises(tl.UnsupportedDtypeError, match=rf"of float64 with dtype='{asked[:8]}"):
        getattr(X, name)(dtype=asked)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_in_finds_elements_as_in_numpy():
    full = tl.SparseTensor.from_dense(np.array([[1.0, np.nan], [2.0, 3.0]]))
    for value in (0, 1, 2.0, 99, np.nan):
        assert (value in X) == (value in DENSE)
        assert (value in X.builder()) == (value in X.builder().view[:]) == (value in DENSE)
        assert (value in full) == (value in full.todense())
    with pytest.raises(ValueError, match="one scalar, not with an array"):
        X[0] in X  # noqa: B015
    with pytest.raises(TypeError, match="float64 and str"):
        "a" in X  # noqa: B015
