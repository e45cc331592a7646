"""Arrays of one shape: one copy into the rows of one array."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.arrays import stacked, target
from tensorlake_spark.loader.decoding.payloads import Payloads

KINDS = [pa.binary(), pa.large_binary(), pa.binary_view()]


def arrays(count, shape, dtype, seed=0):
    return (np.random.default_rng(seed).random((count, *shape)) * 200).astype(dtype)


def column(stack, kind=None):
    little = stack.astype(stack.dtype.newbyteorder("<"))
    return pa.array([one.tobytes() for one in little], kind or pa.binary())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (50, 20), (30, 40, 3), (0,), (2, 0)])
def test_rows_are_what_was_stored(kind, dtype, shape):
    stack = arrays(6, shape, dtype)
    found = stacked(column(stack, kind), shape, dtype)
    assert (found.dtype, found.shape) == (stack.dtype, stack.shape)
    np.testing.assert_array_equal(found, stack)
    assert found.flags.writeable
    assert found.flags.c_contiguous


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3,), (60, 70)])
def test_rows_go_to_their_places(kind, shape):
    stack = arrays(9, shape, "f4")
    places = np.random.default_rng(2).permutation(9)
    found = stacked(column(stack, kind), shape, "f4", places)
    np.testing.assert_array_equal(found[places], stack)


@pytest.mark.parametrize("shape", [(5,), (60, 70)])
def test_values_of_several_buffers_and_with_gaps(shape):
    stack = arrays(8, shape, "f4")
    other = pa.concat_arrays(
        [column(stack[:3], pa.binary_view()), column(stack[3:], pa.binary_view())]
    )
    np.testing.assert_array_equal(stacked(other, shape, "f4"), stack)
    # As in a file: the length of four bytes stands before each.
    data = b"".join(len(one.tobytes()).to_bytes(4, "little") + one.tobytes() for one in stack)
    size = stack[0].nbytes
    views = np.zeros(8, [("size", "<i4"), ("prefix", "S4"), ("buffer", "<i4"), ("start", "<i4")])
    views["size"], views["start"] = size, 4 + np.arange(8) * (size + 4)
    for one in views:
        one["prefix"] = data[one["start"] : one["start"] + 4]
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    lying = pa.Array.from_buffers(pa.binary_view(), 8, buffers)
    np.testing.assert_array_equal(stacked(lying, shape, "f4"), stack)
    np.testing.assert_array_equal(stacked(lying[2:3], shape, "f4"), stack[2:3])
    backwards = pa.concat_arrays([lying[n : n + 1] for n in (7, 3, 3, 0)])
    np.testing.assert_array_equal(stacked(backwards, shape, "f4"), stack[[7, 3, 3, 0]])


def test_the_array_that_is_given_is_used():
    stack = arrays(4, (3, 4), "f4")
    out = np.full((9, 3, 4), 7, "f4")
    found = stacked(column(stack), (3, 4), "f4", out=out)
    assert found.base is out
    np.testing.assert_array_equal(out[:4], stack)
    assert (out[4:] == 7).all()
    assert not np.shares_memory(stacked(column(stack), (3, 4), "f4", out=out[:3]), out)


def test_no_values():
    assert stacked(pa.array([], pa.binary()), (3, 4), "f4").shape == (0, 3, 4)
    assert stacked(Payloads(pa.array([], pa.binary_view())), (), "f4").shape == (0,)


@pytest.mark.parametrize("wrong", [b"", b"x" * 15, b"x" * 17, None])
def test_a_value_of_another_size_is_named(wrong):
    values = pa.array([b"x" * 16, b"x" * 16, wrong])
    with pytest.raises(CorruptDataError, match=r"value 2 .* not float32 of shape \(2, 2\)"):
        stacked(values, (2, 2), "f4")


def test_checksums_are_looked_at():
    stack = arrays(3, (2, 2), "f4")
    crcs = np.array([zlib.crc32(one.tobytes()) for one in stack])
    np.testing.assert_array_equal(stacked(column(stack), (2, 2), "f4", crcs=crcs), stack)
    crcs[0] = -1
    crcs[1] ^= 1
    with pytest.raises(CorruptDataError, match=r"value 1 .*\(CRC-32"):
        stacked(column(stack), (2, 2), "f4", crcs=crcs)


def test_a_target_is_taken_if_it_fits():
    out = np.empty((4, 2, 3), "u1")
    assert target(out, (4, 2, 3), "u1").base is out
    for shape, dtype in (((5, 2, 3), "u1"), ((4, 3, 2), "u1"), ((4, 2, 3), "i1")):
        assert not np.shares_memory(target(out, shape, np.dtype(dtype)), out)
    out.flags.writeable = False
    assert not np.shares_memory(target(out, (4, 2, 3), "u1"), out)
