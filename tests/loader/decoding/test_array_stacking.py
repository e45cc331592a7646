"""Arrays of one shape: one copy into the rows of one array."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.array_stacking import stacked, target


def arrays(count, shape, dtype):
    return (np.random.default_rng(0).random((count, *shape)) * 200).astype(dtype)


def stored(stack):
    return [one.astype(one.dtype.newbyteorder("<")).tobytes() for one in stack]


@pytest.mark.parametrize("kind", [bytes, memoryview, bytearray, pa.py_buffer])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", ">f4", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (30, 40, 3), (0,), (2, 0)])
def test_rows_are_what_was_stored(kind, dtype, shape):
    stack = arrays(6, shape, dtype)
    found = stacked([*map(kind, stored(stack))], shape, dtype)
    assert (found.dtype, found.shape) == (stack.dtype, stack.shape)
    np.testing.assert_array_equal(found, stack)
    assert found.flags.writeable
    assert found.flags.c_contiguous


def test_the_array_that_is_given_is_used():
    stack = arrays(4, (3, 4), "f4")
    out = np.full((9, 3, 4), 7, "f4")
    found = stacked(stored(stack), (3, 4), "f4", out)
    assert found.base is out
    np.testing.assert_array_equal(out[:4], stack)
    assert (out[4:] == 7).all()
    assert not np.shares_memory(stacked(stored(stack), (3, 4), "f4", out[:3]), out)


def test_no_values():
    assert stacked([], (3, 4), "f4").shape == (0, 3, 4)


@pytest.mark.parametrize("wrong", [b"", b"x" * 15, b"x" * 17, None])
def test_a_value_of_another_size_is_named(wrong):
    with pytest.raises(CorruptDataError, match=r"value 2 .* not float32 of shape \(2, 2\)"):
        stacked([b"x" * 16, b"x" * 16, wrong], (2, 2), "f4")


def test_checksums_are_looked_at():
    stack = arrays(3, (2, 2), "f4")
    crcs = np.array([*map(zlib.crc32, stored(stack))])
    np.testing.assert_array_equal(stacked(stored(stack), (2, 2), "f4", crcs=crcs), stack)
    crcs[0] = -1
    crcs[1] ^= 1
    with pytest.raises(CorruptDataError, match=r"value 1 .*\(CRC-32"):
        stacked(stored(stack), (2, 2), "f4", crcs=crcs)


def test_a_target_is_taken_if_it_fits():
    out = np.empty((4, 2, 3), "u1")
    assert target(out, (4, 2, 3), "u1").base is out
    for shape, dtype in (((5, 2, 3), "u1"), ((4, 3, 2), "u1"), ((4, 2, 3), "i1")):
        assert not np.shares_memory(target(out, shape, np.dtype(dtype)), out)
    out.flags.writeable = False
    assert not np.shares_memory(target(out, (4, 2, 3), "u1"), out)
