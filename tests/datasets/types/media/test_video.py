"""Frames by ranges: read_frames(a, b) == decode_all()[a:b], whatever the codec, the container and the times."""

import functools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from videos import decode_all, encode

from tensorlake_spark.datasets.types.media import video
from tensorlake_spark.datasets.types.media.video import (
    probe_video,
    read_frames,
    read_numbers,
)
from tensorlake_spark.datasets.types.media.video_facts import FrameIndex, VideoFacts
from tensorlake_spark.errors import (
    ChangedLinkError,
    CorruptDataError,
    InvalidKeyError,
    InvalidSampleError,
    MissingDependencyError,
)

VIDEOS = {
    "h264": {},
    "h264, no B-frames": {"b_frames": 0},
    "h264, many B-frames": {"b_frames": 5, "gop": 17, "codec_options": {"b-pyramid": "normal", "b_strategy": "0"}},
    "h264, open groups": {"b_frames": 3, "codec_options": {"x264-params": "open-gop=1:scenecut=0"}},
    "h264, headers first": {"options": {"movflags": "faststart"}},
    "h264, fragments": {"options": {"movflags": "frag_keyframe+empty_moov+default_base_moof"}},
    "h264, uneven": {"uneven": True},
    "h264, one group": {"gop": 1000},
    "h264, sound": {"audio": True},
    "h264, edit list": {"first": -230, "options": {"avoid_negative_ts": "disabled"}},
    "h264, begins late": {"first": 500},
    "h264, matroska": {"container": "matroska"},
    "h264, matroska, uneven": {"container": "matroska", "uneven": True, "b_frames": 3},
    "h264, matroska, sound": {"container": "matroska", "audio": True},
    "h264, matroska, no index": {"container": "matroska", "options": {"live": "1"}},
    "hevc": {"codec": "libx265", "codec_options": {"x265-params": "log-level=-1:open-gop=1:bframes=4"}},
    "mpeg4": {"codec": "mpeg4"},
    "mpeg4, uneven": {"codec": "mpeg4", "uneven": True},
    "mpeg4, avi": {"codec": "mpeg4", "container": "avi"},
    "mjpeg": {"codec": "mjpeg", "container": "matroska"},
    "vp9": {"codec": "libvpx-vp9", "container": "webm"},
    "vp9, mp4": {"codec": "libvpx-vp9"},
    "vp9, hidden frames": {
        "codec": "libvpx-vp9", "container": "webm", "gop": 16,
        "codec_options": {"auto-alt-ref": "1", "lag-in-frames": "12"},
    },
    "vp8": {
        "codec": "libvpx", "container": "webm", "gop": 16,
        "codec_options": {"auto-alt-ref": "1", "lag-in-frames": "12"},
    },
    "one frame": {"frames": 1},
}  # fmt: skip


@functools.cache
def example(name):
    """Return a video, its facts, and all of its frames by the oracle."""
    data = encode(**VIDEOS[name])
    return data, probe_video(data), decode_all(data)


class Ranges:
    """A reader of ranges that notes them."""

    def __init__(self, data):
        self.data, self.asked = data, []

    def __call__(self, start, stop):
        assert 0 <= start < stop <= len(self.data)
        self.asked.append((start, stop))
        return self.data[start:stop]

    @property
    def nbytes(self):
        return sum(stop - start for start, stop in self.asked)


@pytest.mark.parametrize("name", VIDEOS)
def test_what_is_found_at_the_door(name):
    _, facts, frames = example(name)
    assert (facts.frames, facts.height, facts.width) == frames.shape[:3]
    assert facts.fps > 0
    assert VideoFacts(facts.frames, facts.fps, facts.height, facts.width, facts.index) == facts


@pytest.mark.parametrize("name", VIDEOS)
def test_every_frame_alone_and_all_together(name):
    data, facts, frames = example(name)
    read = Ranges(data)
    np.testing.assert_array_equal(read_frames(read, len(data), facts, 0, facts.frames), frames)
    for k in range(facts.frames):
        np.testing.assert_array_equal(
            read_frames(read, len(data), facts, k, k + 1), frames[k : k + 1], f"frame {k}"
        )
    assert read_frames(read, len(data), facts, 1, 1).shape == (0, *frames.shape[1:])


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from([*VIDEOS]), chosen=st.data())
def test_any_frames_are_those_of_the_whole(name, chosen):
    data, facts, frames = example(name)
    first = chosen.draw(st.integers(0, facts.frames))
    last = chosen.draw(st.integers(first, facts.frames))
    np.testing.assert_array_equal(
        read_frames(Ranges(data), len(data), facts, first, last), frames[first:last]
    )
    numbers = sorted(chosen.draw(st.sets(st.integers(0, facts.frames - 1), max_size=8)))
    np.testing.assert_array_equal(
        read_numbers(Ranges(data), len(data), facts, numbers), frames[numbers]
    )


@pytest.mark.parametrize("name", ["mpeg4, avi"])
def test_where_times_do_not_tell_frames_are_counted(name):
    assert example(name)[1].frame_index.sequential


@pytest.mark.parametrize("name", [name for name in VIDEOS if "avi" not in name])
def test_elsewhere_times_do(name):
    assert not example(name)[1].frame_index.sequential


def test_hidden_frames_are_none():
    assert example("h264, edit list")[1].frame_index.hidden.sum() > 0


@pytest.mark.parametrize("change", [
    {}, {"options": {"movflags": "faststart"}}, {"container": "matroska"},
    {"codec": "mpeg4", "codec_options": {"b": "8M"}},
    {"codec": "libvpx-vp9", "container": "webm", "codec_options": {"b": "4M", "deadline": "realtime", "cpu-used": "8"}},
])  # fmt: skip
def test_only_what_is_needed_is_read(change):
    noise = {"codec_options": {"crf": "4", "preset": "ultrafast"}} if "codec" not in change else {}
    data = encode(frames=160, gop=16, size=(240, 320), **{**noise, **change})
    facts = probe_video(data)
    assert len(data) > 1_000_000
    read, kept = Ranges(data), {}
    read_frames(read, len(data), facts, 100, 104, kept)
    assert read.nbytes < 0.3 * len(data)
    assert len(read.asked) <= 8
    again = Ranges(data)
    read_frames(again, len(data), facts, 140, 144, kept)
    assert again.nbytes < 0.18 * len(data), "the headers are there already"
    assert len(again.asked) <= 4


def test_the_index_is_small():
    data = encode(frames=1000, gop=25, size=(16, 16))
    assert len(probe_video(data).index) < 1000
    data = encode(frames=1000, gop=25, size=(16, 16), uneven=True)
    assert len(probe_video(data).index) < 4000


@pytest.mark.parametrize("data", [
    b"", b"short", b"\xff\xd8\xff\xe0" + bytes(100), b"#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:1,\nfile:///etc/passwd\n",
    b"ffconcat version 1.0\nfile /etc/passwd\n", bytes(4) + b"ftypisom" + bytes(100), b"\x1aE\xdf\xa3" + bytes(100),
    b"RIFF\x00\x00\x00\x00AVI " + bytes(100),
])  # fmt: skip
def test_what_is_no_video(data):
    with pytest.raises(InvalidSampleError):
        probe_video(data)


def test_a_file_that_is_cut_off():
    data, _, frames = example("h264, headers first")
    for size in (100, 1000, len(data) // 2):
        try:
            facts = probe_video(data[:size])
        except InvalidSampleError:
            continue
        assert facts.frames <= len(frames)
    with pytest.raises(InvalidSampleError):
        probe_video(example("h264")[0][:-2000])  # its headers are at the end


@pytest.mark.parametrize("name", ["h264", "h264, headers first", "h264, matroska", "vp9"])
def test_another_file_than_the_one_that_was_stored(name):
    data, facts, frames = example(name)
    for other in (
        encode(**{**VIDEOS[name], "frames": 20}),
        encode(**{**VIDEOS[name], "gop": 7}),
        data[: len(data) // 2],
    ):
        try:
            found = read_frames(Ranges(other), len(other), facts, 10, 30)
        except CorruptDataError:
            continue
        assert found.shape == frames[10:30].shape
    other = encode(**{**VIDEOS[name], "size": (32, 32)})
    with pytest.raises(CorruptDataError):
        read_frames(Ranges(other), len(other), facts, 10, 30)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(["h264", "h264, matroska", "vp9", "mpeg4"]), chosen=st.data())
def test_damage_is_an_error_or_does_not_show(name, chosen):
    data, facts, frames = example(name)
    broken = bytearray(data)
    for _ in range(chosen.draw(st.integers(1, 4))):
        broken[chosen.draw(st.integers(0, len(data) - 1))] ^= chosen.draw(st.integers(1, 255))
    try:
        found = read_frames(Ranges(bytes(broken)), len(broken), facts, 5, 15)
    except (CorruptDataError, InvalidSampleError):
        return
    assert found.shape == frames[5:15].shape, (
        "pixels are guarded by the checksum of the bytes, not here"
    )


def test_a_range_that_is_too_short_and_an_error_of_the_reader():
    data, facts, _ = example("h264")
    with pytest.raises(CorruptDataError, match="the store returned"):
        read_frames(lambda start, stop: data[start : stop - 1], len(data), facts, 0, 2)

    def changed(start, stop):
        raise ChangedLinkError("sample 7: changed")

    with pytest.raises(ChangedLinkError, match="sample 7"):
        read_frames(changed, len(data), facts, 0, 2)

    def changed_later(start, stop, calls=[]):  # noqa: B006
        calls.append(start)
        return data[start:stop] if len(calls) < 2 else changed(start, stop)

    large = encode(frames=100, size=(240, 320), codec_options={"crf": "4"})
    data, facts = large, probe_video(large)
    with pytest.raises(ChangedLinkError, match="sample 7"):
        read_frames(changed_later, len(data), facts, 50, 52)


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (0, 41), (5, 3)])
def test_frames_that_are_not_there(first, last):
    data, facts, _ = example("h264")
    with pytest.raises(InvalidKeyError, match="40"):
        read_frames(Ranges(data), len(data), facts, first, last)


def test_bombs_are_refused(monkeypatch):
    data, facts, _ = example("h264")
    with pytest.raises(InvalidKeyError, match="memory"):
        large = VideoFacts(facts.frames, facts.fps, 1 << 24, 1 << 24, facts.index)
        read_frames(Ranges(data), len(data), large, 0, 40)
    with pytest.raises(CorruptDataError):  # the decoder is not let to take more than the row says
        read_frames(Ranges(data), len(data), VideoFacts(40, 25, 8, 8, facts.index), 0, 40)
    monkeypatch.setattr(video, "MOST_PIXELS", 48 * 64 - 1)
    with pytest.raises(InvalidSampleError):
        probe_video(data)
    monkeypatch.undo()
    monkeypatch.setattr(video, "MOST_PACKETS", 39)
    with pytest.raises(InvalidSampleError, match="39 packets"):
        probe_video(data)


def test_without_the_package(monkeypatch):
    data, facts, _ = example("h264")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"tensorlake-spark\[video\]"):
        probe_video(data)
    with pytest.raises(MissingDependencyError):
        read_frames(Ranges(data), len(data), facts, 0, 1)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(["h264", "h264, matroska", "vp9"]), chosen=st.data())
def test_a_forged_index_does_no_harm(name, chosen):
    """Somebody else may have written it: what comes is an error, or frames of the right shape."""
    data, facts, _ = example(name)
    good = facts.frame_index
    count = len(good.keys)
    numbers = st.integers(-(2**63), 2**63 - 1)
    times = good.times.copy()
    for _ in range(chosen.draw(st.integers(0, 3))):
        times[chosen.draw(st.integers(0, len(times) - 1))] = chosen.draw(numbers)
    keys = chosen.draw(st.one_of(
        st.just(good.keys.tolist()),
        st.sets(st.integers(0, len(times) - 1), min_size=count, max_size=count).map(sorted),
    ))  # fmt: skip
    places = chosen.draw(st.one_of(
        st.just(good.places.tolist()), st.lists(numbers, min_size=count, max_size=count)
    ))  # fmt: skip
    stream = chosen.draw(st.sampled_from([good.stream, 1, 65535]))
    forged = FrameIndex(stream, times, good.hidden, np.array(keys), np.array(places), False)
    other = VideoFacts(facts.frames, 25.0, facts.height, facts.width, forged.to_bytes())
    try:
        found = read_frames(Ranges(data), len(data), other, 5, 15)
    except CorruptDataError:
        return
    assert found.shape == (10, facts.height, facts.width, 3)
