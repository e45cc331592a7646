"""Means, variances and norms over axes; NumPy is the oracle."""

import re
import warnings

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from reduced import axes, cases, check_like_numpy, dense_of, masks

import tensorlake_spark as tl

NUMBERS = ["int8", "int64", "uint8", "float32", "float64", "complex64", "complex128", "bool"]


@times(2)
@given(st.data(), cases(NUMBERS), st.sampled_from(["mean", "nanmean"]))
def test_a_mean_is_numpys(data, case, name):
    dense, x = case
    options = {"axis": data.draw(axes(x.ndim)), "keepdims": data.draw(st.booleans())}
    where, function = data.draw(masks(x.shape)), getattr(np, name)
    if dense.dtype.kind != "c" and data.draw(st.booleans()):
        options["dtype"] = data.draw(st.sampled_from(["float32", "float64", "complex128"]))
    size = float(np.abs(np.nan_to_num(dense, posinf=0, neginf=0).astype(complex)).max(initial=1))
    check_like_numpy(
        lambda: function(x, where=where, **options),
        lambda: function(dense, where=dense_of(where), **options),
        rough=size,
    )


@times(2)
@given(st.data(), cases(NUMBERS), st.sampled_from(["var", "std", "nanvar", "nanstd"]))
def test_a_variance_is_numpys(data, case, name):
    dense, x = case
    if dense.dtype == np.int64:
        dense, x = dense.clip(-9, 9), np.clip(x, -9, 9)
    options = {"axis": data.draw(axes(x.ndim)), "keepdims": data.draw(st.booleans())}
    options[data.draw(st.sampled_from(["ddof", "correction"]))] = data.draw(
        st.sampled_from([0, 1, 1.5, 3])
    )
    where, function = data.draw(masks(x.shape)), getattr(np, name)
    check_like_numpy(
        lambda: function(x, where=where, **options),
        lambda: function(dense, where=dense_of(where), **options),
        rough=1e5,
    )


def test_a_variance_is_precise_far_from_zero():
    dense = np.zeros((3, 1000))
    dense[:2] = 1e8 + np.arange(2000).reshape(2, 1000) % 7
    x = tl.SparseTensor.from_dense(dense)
    np.testing.assert_allclose(x.var(axis=1).todense(), dense.var(axis=1), rtol=1e-12)
    np.testing.assert_allclose(x.var(axis=0).todense(), dense.var(axis=0), rtol=1e-12)


def test_a_mean_of_halves_does_not_overflow():
    dense = np.zeros((400, 3), np.float16)
    dense[:, 1] = 1000
    found = tl.SparseTensor.from_dense(dense).mean(axis=0)
    assert found.dtype == np.float16
    assert found.todense().tolist() == [0, 1000, 0]


def test_times_have_a_mean():
    dense = np.array([[3, 0, 6], [0, 0, 0], ["NaT", 0, 1]], "m8[s]")
    x = tl.SparseTensor.from_dense(dense)
    check_like_numpy(lambda: x.mean(axis=1), lambda: dense.mean(axis=1))
    with pytest.raises(TypeError):
        x.var()


@times(2)
@given(
    st.data(), cases(["int8", "int64", "float32", "float64", "complex128"], min_dims=1, min_side=1)
)
def test_a_norm_is_numpys(data, case):
    dense, x = case
    count = data.draw(st.sampled_from([1, 2]))
    axis = tuple(data.draw(st.permutations(range(-x.ndim, 0)))[:count])
    axis = data.draw(st.sampled_from([None, axis, axis[0]]))
    one = [None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf]
    two = [None, "fro", 1, -1, np.inf, -np.inf]
    is_pair = x.ndim == 2 if axis is None else isinstance(axis, tuple) and len(axis) == 2
    order = data.draw(st.sampled_from(two if is_pair else one))
    keepdims = data.draw(st.booleans())
    check_like_numpy(
        lambda: np.linalg.norm(x, order, axis, keepdims),
        lambda: np.linalg.norm(dense, order, axis, keepdims),
        rough=9,
    )


def test_the_spectral_norm_of_a_matrix_is_found_without_a_dense_one():
    dense = np.where(np.random.default_rng(3).random((40, 30)) < 0.1, 1.5, 0)
    x = tl.SparseTensor.from_dense(dense)
    np.testing.assert_allclose(x.norm(2), np.linalg.norm(dense, 2), rtol=1e-9)
    assert tl.SparseTensor.from_dense(np.zeros((3, 3))).norm(2) == 0
    assert x.norm(2, keepdims=True).shape == (1, 1)


@pytest.mark.parametrize("order", ["nuc", -2])
def test_norms_that_need_every_singular_value_name_the_way_out(order):
    with pytest.raises(TypeError, match=r"x\.todense\(\), \.\.\.\) takes 72 bytes"):
        tl.SparseTensor.from_dense(np.eye(3)).norm(order)


def test_norms_that_are_none_say_so():
    x = tl.SparseTensor([[1], [1], [1]], [2.0], (3, 3, 3))
    for order, axis in ((3, (0, 1)), (2, None), ("fro", 0), ("other", 0)):
        with pytest.raises(ValueError, match="norm"):
            x.norm(order, axis)


def test_a_mean_that_is_given_is_refused():
    with pytest.raises(TypeError, match="mean="):
        np.var(tl.SparseTensor([[1]], [2.0], (3,)), mean=0)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd", "mean", "nanmean"])
@pytest.mark.parametrize("of", ["int16", "uint64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("wanted", ["bool", "int8", "uint8", "int64", "float32", "complex128"])
@pytest.mark.parametrize("axis", [None, 0])
def test_a_dtype_for_sums_is_taken_or_refused_as_by_numpy(name, of, wanted, axis):
    dense = np.array([[4, 3, 0, 1], [2, 5, 3, 5], [0, 1, 0, 4]]).astype(of)
    x, function = tl.SparseTensor.from_dense(dense), getattr(np, name)
    options = {"axis": axis, "dtype": wanted}
    check_like_numpy(lambda: function(x, **options), lambda: function(dense, **options), rough=10)


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_a_scalar_has_no_axis_for_a_mean(name):
    x = tl.SparseTensor.from_dense(np.array(2.0))
    with pytest.raises(tl.AxisError):
        getattr(np, name)(x, axis=0)


def test_more_degrees_of_freedom_than_integers_are_infinite():
    dense = np.array([[5, 0], [-4, 0], [0, 0]])
    with pytest.warns(RuntimeWarning, match="Degrees"):
        found = np.nanvar(tl.SparseTensor.from_dense(dense), axis=0, ddof=3)
    np.testing.assert_array_equal(found.todense(), [np.inf, np.nan])


def test_the_largest_singular_value_of_small_zero_and_half_matrices():
    for dense in (np.zeros((4, 3)), np.array([[0, -3], [4 + 3j, 0], [4, 1j]]), np.eye(2, 9)):
        x = tl.SparseTensor.from_dense(dense)
        np.testing.assert_allclose(x.norm(2), np.linalg.norm(dense, 2), atol=1e-12)
    stored_zeros = tl.SparseTensor([[0, 2], [1, 0]], [0, 0], (4, 3))
    assert stored_zeros.norm(2) == 0
    assert stored_zeros.norm(2, keepdims=True).nnz == 0
    with pytest.raises(
        tl.UnsupportedDtypeError, match=r"np\.linalg\.norm of float16|np\.norm of float16"
    ):
        tl.SparseTensor.from_dense(np.eye(2, dtype=np.float16)).norm(2)


@pytest.mark.parametrize("name", ["mean", "nanmean"])
@pytest.mark.parametrize("dtype", [None, "f4", "f8", "u1"])
def test_a_mean_of_times_stays_one_whatever_dtype_is_asked_for(name, dtype):
    dense, function = np.array([[5, "NaT", 0], [300, 0, 1]], "m8[s]"), getattr(np, name)
    x = tl.SparseTensor.from_dense(dense)
    for axis in (None, 0, 1):
        found = function(x, axis=axis, dtype=dtype)
        found = found.todense() if isinstance(found, tl.SparseTensor) else found
        np.testing.assert_array_equal(found, function(dense, axis=axis, dtype=dtype), strict=True)


@pytest.mark.parametrize("order", [-1, -2, -0.5])
def test_a_norm_of_a_negative_order_is_nan_beside_zeros_that_are_not_stored(order):
    x = np.array([[np.nan, 0, 2], [0, 3, 0], [1, 2, 4.0]])
    with np.errstate(all="ignore"):
        want = np.linalg.norm(x, order, axis=1)
        found = np.linalg.norm(tl.SparseTensor.from_dense(x), order, axis=1)
    np.testing.assert_allclose(np.asarray(found.todense()), want)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(3, 4), (2, 5)])
def test_the_largest_singular_value_of_what_is_not_finite_is_nan(value, shape):
    x = np.zeros(shape)
    x[0, 1], x[1, 2] = value, 3
    found = np.linalg.norm(tl.SparseTensor.from_dense(x), 2)
    assert np.isnan(found)


def test_a_variance_of_as_many_values_as_degrees_of_freedom_is_numpys():
    dense = np.array([[1, 3, np.nan], [0, 0, np.nan], [1, 2, 4]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.nanvar(tl.SparseTensor.from_dense(dense), axis=1, ddof=2)
        want = np.nanvar(dense, axis=1, ddof=2)
    np.testing.assert_array_equal(found.todense(), want)


def test_a_variance_of_large_numbers_that_are_all_stored_is_finite():
    """The square of their distance from zero is not, and no zero takes part."""
    dense = np.full((2, 3), 1e200)
    assert np.var(tl.SparseTensor.from_dense(dense), axis=1).todense().tolist() == [0, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_variances_of_complex_numbers_are_real_without_a_warning(name, axis):
    dense = np.array([[0, 1j, 2], [0, 3, 3 - 1j]])
    found = getattr(np, name)(tl.SparseTensor.from_dense(dense), axis=axis)
    want = getattr(np, name)(dense, axis=axis)
    np.testing.assert_allclose(found if axis is None else found.todense(), want)
    assert found.dtype == want.dtype == np.float64


@pytest.mark.parametrize(
    "given", [{"ddof": "a"}, {"ddof": None}, {"ddof": 1j}, {"ddof": [1]}, {"correction": "a"}]
)
@pytest.mark.parametrize("function", [np.var, np.std])
def test_what_is_taken_off_the_number_of_elements_is_a_number(function, given):
    x = tl.SparseTensor([[1]], [2.0], (3,))
    name, value = next(iter(given.items()))
    with pytest.raises(
        tl.InvalidKeyTypeError, match=re.escape(f"{name}={value!r} is not a number")
    ):
        function(x, **given)
