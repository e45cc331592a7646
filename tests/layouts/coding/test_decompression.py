"""Decompression takes what a payload says that it holds, and no other number of bytes."""

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.decompression import (
    content_size,
    inflate,
    inflate_joined,
    inflate_many,
)

ZSTD = pa.Codec("zstd")


def packed(data):
    return ZSTD.compress(data, asbytes=True)


@given(st.lists(st.tuples(st.binary(max_size=3000), st.booleans()), max_size=6))
def test_many_payloads_are_as_each_of_them(bodies):
    frames = [(packed(data) if small else data, small) for data, small in bodies]
    sizes = [len(data) for data, _ in bodies]
    many = inflate_many(frames, sizes)
    assert [flat.tobytes() for flat in many] == [data for data, _ in bodies]
    joined = inflate_joined(frames, sizes)
    assert joined.tobytes() == b"".join(data for data, _ in bodies)
    assert joined.flags.writeable
    assert [inflate(*f, n).tobytes() for f, n in zip(frames, sizes)] == [d for d, _ in bodies]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65535, 65536, 65792, 1 << 20])
def test_a_frame_says_how_many_bytes_it_holds(size):
    assert content_size(packed(b"a" * size)) == size


@given(st.binary(max_size=40))
def test_no_bytes_make_it_fail(data):
    content_size(data)
    content_size(b"\x28\xb5\x2f\xfd" + data)


@pytest.mark.parametrize("asked", [99, 101, 1 << 21, 1 << 40])
def test_another_number_of_bytes_is_an_error_and_takes_no_memory(asked):
    frame = packed(b"a" * 100)
    for call in (
        lambda: inflate(frame, True, asked),
        lambda: inflate(b"a" * 100, False, asked),
        lambda: inflate_many([(frame, True), (frame, True)], [100, asked]),
        lambda: inflate_joined([(frame, True), (frame, True)], [100, asked]),
    ):
        with pytest.raises(CorruptDataError, match=r"holds 100 bytes|does not decompress"):
            call()


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_frame_is_an_error_or_has_the_size(place, change):
    frame = bytearray(packed(bytes(range(200)) * 2))
    frame[place % len(frame)] ^= change
    with suppress(CorruptDataError):
        assert inflate(bytes(frame), True, 400).nbytes == 400


def test_many_frames_that_hold_less_than_their_rows_say_take_no_memory():
    frame = pa.Codec("zstd").compress(b"a" * 1000, asbytes=True)
    with pytest.raises(CorruptDataError, match="holds 1000 bytes where 10000000 are needed"):
        inflate_many([(frame, True)] * 3, [1000, 10_000_000, 1000])
    with pytest.raises(CorruptDataError):
        inflate_many([(frame, True)] * 3, [1000, 999, 1000])
