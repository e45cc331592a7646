"""Where elements are; NumPy is the oracle."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases, check_like_numpy, sparse_of

import tensorlake_spark as tl
from tensorlake_spark.ops.reducing import groups


@times(4)
@given(st.data(), cases(min_dims=1), st.sampled_from(["argmax", "argmin"]), st.booleans())
def test_the_index_of_an_extreme_is_numpys(data, case, name, is_sorted):
    dense, x = case
    axis = data.draw(st.none() | st.integers(-x.ndim - 1, x.ndim))
    keepdims, function = data.draw(st.booleans()), getattr(np, name)
    with pytest.MonkeyPatch.context() as patch:
        if is_sorted:  # as for a result of too many cells
            patch.setattr(groups, "_SPREAD", -1)
        check_like_numpy(
            lambda: function(x, axis, keepdims=keepdims),
            lambda: function(dense, axis, keepdims=keepdims),
            kind="array",
        )


@given(cases(max_dims=0), st.sampled_from(["argmax", "argmin"]))
def test_a_scalar_has_its_extreme_at_0(case, name):
    assert getattr(case[1], name)() == 0


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_of_dates_not_a_time_comes_first(name, axis):
    dense = np.array([[3, 0, 5], [-1, -2, -3], [1, 2, 4], [1, "NaT", 4]], "M8[s]")
    function = getattr(np, name)
    check_like_numpy(
        lambda: function(sparse_of(dense), axis), lambda: function(dense, axis), kind="array"
    )


CONDITIONS = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    ">": np.greater,
}


@times(2)
@given(st.data(), cases(["int64", "float64", "uint8"]), st.sampled_from(list(CONDITIONS)))
def test_the_first_index_is_where_a_mask_is_first_true(data, case, sign):
    dense, x = case
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    bound, keepdims = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    mask = CONDITIONS[sign](dense, bound)
    length = mask.size if axis is None else mask.shape[axis]
    want = (
        np.where(mask.any(axis, keepdims=keepdims), mask.argmax(axis, keepdims=keepdims), -1)
        if length
        else -1
    )
    shape = np.any(mask, axis, keepdims=keepdims).shape
    for condition in ((sign, bound), lambda values: CONDITIONS[sign](values, bound)):
        got = x.first_index(condition, axis, keepdims=keepdims)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, np.broadcast_to(want, shape))


@pytest.mark.parametrize("condition", [3, ("~", 1), (">",), "isnan", None])
def test_what_is_no_condition_is_refused(condition):
    with pytest.raises(ValueError, match="is not a condition"):
        tl.SparseTensor([[1]], [2.0], (3,)).first_index(condition)


def test_a_condition_answers_for_each_value():
    with pytest.raises(ValueError, match="a bool for each value"):
        tl.SparseTensor([[1]], [2.0], (3,)).first_index(np.sqrt)


@given(cases(min_dims=1))
def test_what_is_not_zero_is_where_numpy_finds_it(case):
    dense, x = case
    for got, want in zip(np.nonzero(x), np.nonzero(dense), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.argwhere(x), np.argwhere(dense))
    np.testing.assert_array_equal(np.flatnonzero(x), np.flatnonzero(dense))
    np.testing.assert_array_equal(x.argwhere(), np.argwhere(dense))


def test_a_tensor_without_axes_has_no_indices():
    x = tl.SparseTensor(np.zeros((0, 1), int), [2.0], ())
    with pytest.raises(ValueError, match="without axes"):
        x.nonzero()
    assert x.argwhere().shape == (1, 0)


def test_the_extreme_of_a_huge_tensor():
    x = tl.SparseTensor([[5, 2**30], [7, 7]], [-1.5, 2.0], (2**31, 2**31))
    assert x.argmax() == 2**61 + 7
    assert x.argmin() == 5 * 2**31 + 7
    assert x.first_index((">=", 0)) == 0


def test_a_scalar_has_one_axis_to_search():
    x = tl.SparseTensor.from_dense(np.array(7))
    assert x.argmax(axis=0) == x.argmin(axis=-1) == 0
    with pytest.raises(tl.AxisError):
        x.argmax(axis=1)
