"""What is kept of a video comes back, is small, and is not believed when it is damaged."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.datasets.types.media.video_facts import FrameIndex, VideoFacts
from tensorlake_spark.errors import CorruptDataError, InvalidSampleError


def example(packets=100, gop=10):
    times = np.arange(packets) * 512 - 1024
    times[1:-1:3], times[2::3] = times[2::3].copy(), times[1:-1:3].copy()
    keys = np.arange(0, packets, gop)
    return FrameIndex(3, times, np.zeros(packets, bool), keys, keys * 1000 + 48, False)


@given(
    st.lists(st.integers(-(2**62), 2**62), unique=True, min_size=1, max_size=30),
    st.integers(0, 65535),
    st.data(),
)
def test_an_index_comes_back(times, stream, chosen):
    count = len(times)
    keys = sorted(chosen.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    hidden = chosen.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    places = chosen.draw(st.lists(st.integers(-1, 2**62), min_size=len(keys), max_size=len(keys)))
    index = FrameIndex(
        stream, np.array(times), np.array(hidden), np.array(keys), np.array(places), False
    )
    again = FrameIndex.from_bytes(index.to_bytes(), count - sum(hidden))
    assert (again.stream, again.sequential) == (stream, False)
    for name in ("times", "hidden", "keys", "places"):
        np.testing.assert_array_equal(getattr(again, name), getattr(index, name))
    assert again.shown_times.tolist() == sorted(t for t, h in zip(times, hidden) if not h)


def test_it_is_small():
    assert len(example(100_000, 250).to_bytes()) < 0.1 * 100_000


def test_damage_is_found():
    data = example().to_bytes()
    for k in range(len(data)):
        for wrong in (data[:k], data[:k] + bytes([data[k] ^ 0x11]) + data[k + 1 :]):
            try:
                again = FrameIndex.from_bytes(wrong, 100)
            except CorruptDataError:
                continue
            assert 4 <= k < 6, "all but the number of the stream"
            assert again.stream != 3


@pytest.mark.parametrize("frames", [99, 101, 0])
def test_it_fits_the_row(frames):
    with pytest.raises(CorruptDataError, match=f"{frames} frames"):
        FrameIndex.from_bytes(example().to_bytes(), frames)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keys", [5, 5]), ("keys", [7, 2]), ("keys", [-1, 2]), ("keys", [0, 100]), ("keys", []), ("times", [7] * 100),
    ],
)  # fmt: skip
def test_what_makes_no_sense(name, value):
    good = example()
    arrays = {"times": good.times, "keys": np.array([0, 1]), name: np.array(value, "i8")}
    bad = FrameIndex(0, arrays["times"], good.hidden, arrays["keys"], arrays["keys"] * 0, False)
    with pytest.raises(CorruptDataError):
        FrameIndex.from_bytes(bad.to_bytes(), 100)


def test_a_bomb_takes_no_memory():
    bomb = zlib.compress(bytes(200 << 20))
    for packets in (10, 1 << 24, (1 << 32) - 1):
        with pytest.raises(CorruptDataError):
            FrameIndex.from_bytes(
                struct.pack("<4sHIIB", b"tlv1", 0, packets, 1, 0) + bomb[:1000], 10
            )
    with pytest.raises(CorruptDataError):
        FrameIndex.from_bytes(struct.pack("<4sHIIB", b"tlv1", 0, 10, 1, 0) + bomb, 10)


@pytest.mark.parametrize("shape", [(0, 4, 4), (-1, 4, 4), (4, 0, 4), (4, 4, -1), (1 << 40, 4, 4)])
def test_facts_that_make_no_sense(shape):
    frames, height, width = shape
    with pytest.raises(InvalidSampleError):
        VideoFacts(frames, 25.0, height, width, b"")
