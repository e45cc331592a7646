"""Arrays of bytes and lists, beside NumPy."""

import io

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.datasets.sources.array_bytes import array_of, array_of_lists
from tensorlake_spark.errors import InvalidSampleError


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.float32(3),
        np.zeros((0, 2)),
    ],
)
def test_arrays_are_those_that_were_saved(array):
    np.testing.assert_array_equal(array_of(npy(array), "x"), array)


def test_what_is_no_array_is_told():
    good = npy(np.arange(3))
    for junk in (
        b"",
        b"junk",
        good[:20],
        good[:-1],
        good + b"1",
        b"\x93NUMPY\x01\x00\x10\x00{'descr': oops}\n",
    ):
        with pytest.raises(InvalidSampleError, match=r"not an array|bytes follow"):
            array_of(junk, "x")
    with pytest.raises(InvalidSampleError, match="pickle, which is not read"):
        array_of(npy(np.array([{}], object), allow_pickle=True), "x")


def test_a_header_of_impossible_size_takes_no_memory():
    data = npy(np.zeros(3)).replace(b"(3,), }       ", b"(1 << 60,), } ")
    huge = npy(np.zeros(3)).replace(b"(3,), }          ", b"(99999999999,), }")
    for one in (data, huge):
        with pytest.raises(InvalidSampleError, match=r"not an array|bytes follow"):
            array_of(one, "x")


@pytest.mark.parametrize("value", [[[1, 2], [3, 4]], [[[1], [2]]], [5, 6], []])
def test_lists_are_arrays_of_numpy(value):
    kind = pa.array([value]).type.value_type if value else pa.int64()
    found = array_of_lists(pa.array(value, kind), "int16", "x")
    np.testing.assert_array_equal(found, np.array(value, np.int16))
    assert found.dtype == np.int16


def test_lists_of_a_fixed_length_and_slices():
    items = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2))
    np.testing.assert_array_equal(array_of_lists(items[1:], "int8", "x"), [[3, 4], [5, 6]])


@pytest.mark.parametrize("value", [[[1], [2, 3]], [[1], None], [[None]]])
def test_lists_that_are_no_array_are_told(value):
    with pytest.raises(InvalidSampleError, match=r"not an array|null among"):
        array_of_lists(pa.array(value, pa.list_(pa.int64())), "int64", "x")
