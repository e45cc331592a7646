"""Values one by one; NumPy is the oracle."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases, check_like_numpy, sparse_of

import tensorlake_spark as tl


@times(2)
@given(cases(min_dims=1), st.integers(-1, 2))
def test_changed_values_are_numpys(case, decimals):
    dense, x = case
    check_like_numpy(lambda: np.round(x, decimals), lambda: np.round(dense, decimals))
    check_like_numpy(lambda: np.real(x), lambda: np.real(dense))
    check_like_numpy(lambda: np.imag(x), lambda: np.imag(dense))
    check_like_numpy(lambda: x.conj(), lambda: dense.conj())
    check_like_numpy(lambda: x.isnan(), lambda: np.isnan(dense))
    check_like_numpy(lambda: np.nan_to_num(x), lambda: np.nan_to_num(dense))


@given(cases(min_dims=1), st.sampled_from(["bool", "int8", "float32", "complex64"]))
def test_converted_values_are_numpys(case, dtype):
    dense, _ = case
    if dense.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        return
    dense = np.nan_to_num(dense, posinf=1, neginf=-1)
    check_like_numpy(lambda: sparse_of(dense).astype(dtype), lambda: dense.astype(dtype))


@given(st.data(), cases(["int16", "float64"], min_dims=1, min_side=1))
def test_clipped_values_are_numpys(data, case):
    dense, x = case
    low, high = (
        data.draw(st.sampled_from([None, -2, 0, -1.5])),
        data.draw(st.sampled_from([None, 2, 0])),
    )
    if data.draw(st.booleans()):
        high = np.full((2, *x.shape), 2)
        high[0] = 1
    if low is high is None:
        return
    check_like_numpy(lambda: np.clip(x, low, high), lambda: np.clip(dense, low, high))


@pytest.mark.parametrize(
    "bounds", [(1, None), (None, -1), (np.array([0, 0, 1]), 3), (np.nan, 3), (None, np.nan)]
)
def test_bounds_without_zero_name_the_way_out(bounds):
    with pytest.raises(tl.DenseResultError, match=r"x\.todense\(\), \.\.\.\) takes 24 bytes"):
        np.clip(tl.SparseTensor([[1]], [2.0], (3,)), *bounds)


def test_what_cannot_be_stored_is_no_dtype():
    with pytest.raises(tl.UnsupportedDtypeError, match="object cannot be stored"):
        tl.SparseTensor([[1]], [2.0], (3,)).astype(object)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_a_conversion_is_refused_where_numpy_refuses_it(casting):
    x = tl.SparseTensor([[1]], [2.5], (3,))
    for dtype in ("f8", ">f8", "f4", "c16", "i8"):
        want = np.can_cast("f8", dtype, casting)
        if want:
            assert x.astype(dtype, casting=casting, copy=False).dtype == np.dtype(dtype)
            continue
        with pytest.raises(tl.UnsupportedDtypeError, match=r"does not let.*casting='unsafe'"):
            x.astype(dtype, casting=casting)
    assert np.astype(x, "i8").values.tolist() == [2]


@pytest.mark.parametrize(
    ("dtype", "function", "named"),
    [
        ("datetime64[D]", lambda x: np.round(x, 1), r"np\.round of datetime64\[D\]"),
        ("bool", lambda x: np.round(x, 1), r"np\.round of bool"),
        ("datetime64[D]", lambda x: np.clip(x, None, 2), r"np\.clip of datetime64\[D\] and int"),
        ("float64", lambda x: x.clip(np.timedelta64(0, "s"), None), r"np\.clip of float64"),
        ("timedelta64[s]", lambda x: x.conj(), r"np\.conjugate of timedelta64\[s\]"),
    ],
)
def test_dtypes_that_numpy_refuses_are_named(dtype, function, named):
    with pytest.raises(tl.UnsupportedDtypeError, match=f"{named}.* is not there: .*astype"):
        function(sparse_of(np.arange(3).astype(dtype)))
