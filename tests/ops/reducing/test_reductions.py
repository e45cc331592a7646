"""Reductions over axes; NumPy is the oracle."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from reduced import axes, cases, check_like_numpy, dense_of, masks, sparse_of

import tensorlake_spark as tl
from tensorlake_spark.ops.reducing import groups
from tensorlake_spark.tensor.spec import dtype_of

MASKED = ["sum", "prod", "min", "max", "any", "all", "nansum", "nanprod", "nanmin", "nanmax"]
TYPED = {"sum", "prod", "nansum", "nanprod"}
STARTED = {*MASKED} - {"any", "all"}


@times(4)
@given(st.data(), cases(), st.sampled_from(MASKED))
def test_a_reduction_is_numpys(data, case, name):
    dense, x = case
    options = {"axis": data.draw(axes(x.ndim)), "keepdims": data.draw(st.booleans())}
    where = data.draw(masks(x.shape))
    if name in STARTED and data.draw(st.booleans()):
        options["initial"] = data.draw(st.sampled_from([0, 1, 3]))
    if name in TYPED and data.draw(st.booleans()):
        options["dtype"] = data.draw(st.sampled_from(["float64", "complex128"]))
    check_like_numpy(
        lambda: getattr(np, name)(x, where=where, **options),
        lambda: getattr(np, name)(dense, where=dense_of(where), **options),
        rough=9 if "prod" in name else None,
    )


@given(st.data(), cases(), st.sampled_from(["count_nonzero", "ptp"]))
def test_counts_and_ranges_are_numpys(data, case, name):
    dense, x = case
    if name == "ptp" and dense.dtype == bool:
        return
    options = {"axis": data.draw(axes(x.ndim)), "keepdims": data.draw(st.booleans())}
    function = getattr(np, name)
    check_like_numpy(lambda: function(x, **options), lambda: function(dense, **options))


@given(st.data(), cases(dtypes=["int32", "float64"], min_dims=2), st.sampled_from(MASKED))
def test_a_result_of_too_many_cells_is_sorted_for(data, case, name):
    dense, x = case
    axis = data.draw(axes(x.ndim))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "_SPREAD", -1)
        function = getattr(np, name)
        check_like_numpy(lambda: function(x, axis), lambda: function(dense, axis))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "min", "max", "any", "all", "prod"])
@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ms]"])
def test_times_are_reduced_as_numpy_does(name, dtype, axis):
    dense = np.array([[3, 0, 5], [0, 0, 0], [1, 2, 4], [1, "NaT", 4]], dtype)
    function = getattr(np, name)
    check_like_numpy(lambda: function(sparse_of(dense, 1), axis), lambda: function(dense, axis))


def test_integers_wrap_around():
    dense = np.array([[2**63 - 1, 0, 1], [3, 0, 0]])
    x = tl.SparseTensor.from_dense(dense)
    assert np.sum(x, axis=1).todense().tolist() == [-(2**63), 3]
    assert np.sum(x, axis=0, dtype="int8").todense().tolist() == [2, 0, 1]


def test_a_large_float32_column_is_summed_precisely():
    dense = np.zeros((100_000, 2), np.float32)
    dense[:, 1] = 0.1
    found = tl.SparseTensor.from_dense(dense).sum(axis=0)
    np.testing.assert_allclose(found.todense(), [0, 10_000], rtol=1e-6)


def test_a_huge_tensor_is_reduced():
    x = tl.SparseTensor([[5, 2**30], [7, 7], [2**20, 0]], [1.5, 2.0], (2**31, 2**8, 2**22))
    assert x.sum() == 3.5
    assert x.sum(axis=2).coords.tolist() == [[5, 2**30], [7, 7]]
    assert x.max(axis=(0, 2)).values.tolist() == [2.0]
    assert x.sum(axis=0, keepdims=True).shape == (1, 2**8, 2**22)


def test_what_cannot_be_given_says_so():
    x = tl.SparseTensor([[1]], [2.0], (3,))
    with pytest.raises(tl.AxisError, match="axis 1 is out of bounds for a tensor of 1 axes"):
        x.sum(axis=1)
    with pytest.raises(tl.AxisError, match="axis 0 is given twice"):
        x.sum(axis=(0, -1))
    with pytest.raises(TypeError, match=r"an integer, not 1\.5"):
        x.sum(axis=1.5)
    with pytest.raises(TypeError, match="out="):
        np.sum(x, out=np.zeros(()))
    with pytest.raises(TypeError, match="bools, not of int64"):
        x.sum(where=[1, 0, 1])
    with pytest.raises(ValueError, match=r"\(2,\) does not broadcast to \(3,\)"):
        x.sum(where=[True, False])
    with pytest.raises(TypeError, match=r"np.cumsum of a sparse tensor"):
        np.cumsum(x)


def test_nan_alone_is_warned_about():
    x = tl.SparseTensor([[0, 1]], [np.nan, np.nan], (2,))
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(np.nanmin(x))


def test_numbers_become_halves_before_they_are_added_up():
    dense = np.array([[10**9, -(10**9)], [3, 4]])
    x = tl.SparseTensor.from_dense(dense)
    with np.errstate(all="ignore"):
        wanted = dense.sum(axis=1, dtype=np.float16)
        np.testing.assert_array_equal(x.sum(axis=1, dtype=np.float16).todense(), wanted)


@pytest.mark.parametrize("values", [[np.inf], [np.inf, 1], [2, np.inf, 3], [-np.inf]])
def test_a_product_of_a_complex_infinity_begins_with_one_as_numpys_does(values):
    x = np.array(values, complex)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(np.prod(tl.SparseTensor.from_dense(x)), np.prod(x), equal_nan=True)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_product_of_short_floats_keeps_nan_beside_zeros(name):
    dense = np.array([[np.nan, 0, 2], [1, 2, 0], [1, 2, 0.5]]).astype(dtype_of(name))
    x = sparse_of(dense)
    assert np.isnan(np.prod(x))
    assert np.prod(x, axis=1).todense().astype(float).tolist()[1:] == [0, 1]
    assert np.isnan(np.prod(x, axis=1)[0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_extremes_beside_nan_give_no_warning(name, axis):
    dense = np.array([[[0, 2.5], [3, np.nan]], [[np.nan, np.nan], [np.inf, 0]]])
    found = getattr(tl.SparseTensor.from_dense(dense), name)(axis=axis)
    want = getattr(dense, name)(axis=axis)
    np.testing.assert_array_equal(found if axis is None else found.todense(), want)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_factor_that_the_dtype_of_a_product_does_not_hold_is_infinite_beside_zero():
    dense = np.array([[0, 10**6], [3, 10**6], [0, 5]])
    found = tl.SparseTensor.from_dense(dense).prod(axis=1, dtype="f2")
    np.testing.assert_array_equal(found.todense(), dense.prod(axis=1, dtype="f2"))
