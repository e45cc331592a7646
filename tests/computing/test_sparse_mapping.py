"""Elementwise operations on sparse stored tensors: sparse where zeros stay zeros, never made dense."""

import ml_dtypes
import numpy as np
import pytest
from computed import array_of, equal, put

import tensorlake_spark as tl
from tensorlake_spark.errors import DenseResultError


@pytest.mark.parametrize("layout", ["bsgs", "coo"])
def test_what_keeps_zeros_is_sparse(lake, layout):
    array = array_of("i8", (6, 5), 1)
    view, x = put(lake, array, layout).view[1:, ::-1], array[1:, ::-1]
    for found, wanted in (
        (view * 2, x * 2), (view > 1, x > 1), (view + view, x + x), (abs(view), abs(x)),
        (view * np.arange(5), x * np.arange(5)), (view * view.view[:1], x * x[:1]),
    ):  # fmt: skip
        assert isinstance(found, tl.SparseTensor)
        equal(found, wanted)
    assert isinstance(view + np.ones(5), np.ndarray)


def test_a_huge_one_goes_from_the_lake_to_the_lake(lake):
    huge = tl.SparseTensor([[5], [10**6 - 1]], [2.0], (10**6, 10**6))
    ref = lake.write("x", huge, layout="coo")
    assert ref.map(np.multiply, 3, into="y")[5, -1] == 6
    for call in (lambda: np.exp(ref), lambda: ref.view + 1):
        with pytest.raises(DenseResultError, match="8000000000000 bytes"):
            call()


@pytest.mark.parametrize("layout", ["bsgs", "coo", "csr"])
def test_one_element_is_a_scalar_as_numpys_is(lake, layout):
    array = array_of("i8", (3, 5), 2)
    ref = put(lake, array, layout)
    for at in np.ndindex(3, 5):
        view, x = ref.view[at], array[at]
        for found, wanted in (
            (view * 2, x * 2), (view + 1, x + 1), (np.sqrt(abs(view)), np.sqrt(abs(x))), (view > 1, x > 1),
            (view * np.arange(4), x * np.arange(4)), (view + view, x + x), (np.exp(view), np.exp(x)),
        ):  # fmt: skip
            equal(found, wanted)
            assert type(found) is type(wanted)
    assert ref.view[0, 0].map(np.cos, into="cos")[()] == np.cos(array[0, 0])


@pytest.mark.parametrize("layout", ["bsgs", "coo"])
def test_zeros_that_an_array_makes_non_zero(lake, layout):
    array, other = array_of("i8", (6, 5), 1), np.arange(5) - 2
    ref = put(lake, array, layout)
    equal(ref > other, array > other)
    ref.map(np.greater, other, into="greater")
    equal(lake["greater"][...], array > other)


@pytest.mark.parametrize("dtype", ["i4", "c8", "bfloat16"])
def test_one_without_axes_is_a_scalar(lake, dtype):
    value = np.array(4, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    ref = lake.write("x", tl.SparseTensor.from_dense(value), layout="coo")
    for x in (ref, ref.view):
        for ufunc in (np.sqrt, np.exp, np.negative):
            found, wanted = ufunc(x), ufunc(value)
            assert type(found) is type(wanted)
            assert found == wanted
        assert x * 2 == 8
