"""Where a caller wants a result: memory of his own, of the right shape or flat."""

import array
import mmap

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.reading.output import array_over

SHAPE, DTYPE = (2, 3), np.dtype("<i4")
WANT = np.arange(6, dtype=DTYPE).reshape(SHAPE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros(SHAPE, DTYPE),
        lambda: np.zeros((3, 2), DTYPE).T,
        lambda: np.zeros((4, 6), DTYPE)[::2, ::2],
        lambda: bytearray(24),
        lambda: array.array("i", [0] * 6),
        lambda: mmap.mmap(-1, 24),
        lambda: memoryview(bytearray(24)),
        lambda: memoryview(bytearray(24)).cast("i", SHAPE),
    ],
    ids=[
        "array",
        "transposed",
        "strided",
        "bytearray",
        "array.array",
        "mmap",
        "bytes",
        "of the shape",
    ],
)
def test_the_memory_is_the_callers(make):
    out = make()
    array_over(out, SHAPE, DTYPE)[...] = WANT
    if isinstance(out, np.ndarray):
        np.testing.assert_array_equal(out, WANT)
    else:
        assert bytes(memoryview(out).cast("B")) == WANT.tobytes()


@pytest.mark.parametrize(
    ("out", "says"),
    [
        (
            np.zeros((3, 2), DTYPE),
            r"out has shape \(3, 2\) and dtype int32; the result wants an array of shape \(2, 3\)",
        ),
        (
            np.zeros(SHAPE, "i8"),
            r"dtype int64; the result wants .* and dtype int32, or a flat buffer of 24 bytes",
        ),
        (np.zeros(6, DTYPE), r"out has shape \(6,\)"),
        (bytearray(23), r"out has shape \(23,\) and dtype uint8"),
        (array.array("h", [0] * 12), r"dtype int16"),
        (memoryview(bytearray(48))[::2], r"out has shape \(24,\) and dtype uint8"),
        (memoryview(np.zeros(24, bool)), r"out has shape \(24,\) and dtype bool"),
        (bytes(24), r"out, of type bytes, is read-only; .* that can be written to"),
        ([0] * 6, r"out is of type list, whose memory NumPy cannot use"),
        (None, r"out is of type NoneType"),
    ],
)
def test_what_does_not_fit_is_told(out, says):
    with pytest.raises(tl.InvalidTensorError, match=says):
        array_over(out, SHAPE, DTYPE)


def test_a_scalar_and_an_empty_result_have_a_buffer_too():
    raw = bytearray(4)
    array_over(raw, (), DTYPE)[...] = 7
    assert raw == np.int32(7).tobytes()
    assert array_over(bytearray(), (0, 5), DTYPE).shape == (0, 5)
