"""Decompression takes what a payload says that it holds, and no other number of bytes."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.decompression import (
    RAW,
    SAME,
    ZSTD,
    content_size,
    content_sizes,
    inflate,
    inflate_joined,
    inflate_many,
)


def packed(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


@given(
    st.lists(st.tuples(st.binary(max_size=3000), st.sampled_from((RAW, ZSTD, SAME))), max_size=40)
)
def test_many_payloads_are_as_each_of_them(bodies):
    stored = {ZSTD: packed, RAW: bytes, SAME: lambda data: data[:1]}
    bodies = [
        (data[:1] * len(data) if form == SAME else data, form) for data, form in bodies if data
    ]
    frames, forms = [stored[form](data) for data, form in bodies], [form for _, form in bodies]
    wanted = [data for data, _ in bodies]
    sizes = [len(data) for data in wanted]
    many = inflate_many(frames, forms, sizes)
    assert [flat.tobytes() for flat in many] == wanted
    joined = inflate_joined(frames, forms, sizes)
    assert joined.tobytes() == b"".join(wanted)
    assert joined.flags.writeable
    for frame, form, data in zip(frames, forms, wanted):
        if form != SAME:
            assert inflate(frame, form == ZSTD, len(data)).tobytes() == data


@pytest.mark.parametrize("size", [128 << 10, (128 << 10) + 1, 300_000, 1])
def test_long_payloads_that_are_not_compressed_go_into_the_stream(size):
    data = np.random.default_rng(1).bytes(size)
    some, forms = [packed(b"ab" * 50), data, b"\7", b""], [ZSTD, RAW, SAME, RAW]
    found = inflate_joined(some, forms, [100, size, size, 0])
    assert found.tobytes() == b"ab" * 50 + data + b"\7" * size


def test_frames_of_every_size_say_it_together_too():
    sizes = [0, 1, 255, 256, 257, 65535, 65536, 65792, 1 << 20] * 3
    frames = [packed(b"a" * size) for size in sizes] + [b"no frame at all"]
    assert content_sizes(frames) == [*sizes, None]
    assert content_sizes([*frames, b"short"]) == [*sizes, None, None]
    assert content_sizes([]) == []


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
        lambda: inflate_many([frame, frame], [ZSTD, ZSTD], [100, asked]),
        lambda: inflate_joined([frame, frame], [ZSTD, ZSTD], [100, asked]),
        lambda: inflate_joined([frame, b"a" * 100], [ZSTD, RAW], [100, asked]),
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
        inflate_many([frame] * 3, [ZSTD] * 3, [1000, 10_000_000, 1000])
    with pytest.raises(CorruptDataError):
        inflate_many([frame] * 3, [ZSTD] * 3, [1000, 999, 1000])
    with pytest.raises(CorruptDataError, match="holds 2 bytes where 1 are needed"):
        inflate_joined([frame, b"ab"], [ZSTD, SAME], [1000, 7])
