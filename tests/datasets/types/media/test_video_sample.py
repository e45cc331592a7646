"""A video answers as an array of its frames would: NumPy is the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from videos import decode_all, encode

from tensorlake_spark.datasets.links.fetching import describe_link, range_reader
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.media.video import probe_video
from tensorlake_spark.datasets.types.media.video_sample import VideoSample, whole
from tensorlake_spark.errors import ChangedLinkError, InvalidKeyError, InvalidKeyTypeError

DATA = encode(frames=30, gop=8)
FRAMES = decode_all(DATA)
SAMPLE = VideoSample(*whole(DATA), probe_video(DATA))

BOUND = st.one_of(st.none(), st.integers(-35, 35))


@settings(max_examples=60, deadline=None)
@given(st.builds(slice, BOUND, BOUND, st.one_of(st.none(), st.integers(-9, 9).filter(bool))))
def test_slices(key):
    np.testing.assert_array_equal(SAMPLE[key], FRAMES[key])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-30, 29), max_size=6))
def test_lists_of_frames_in_any_order_and_twice(key):
    np.testing.assert_array_equal(SAMPLE[np.array(key, int)], FRAMES[np.array(key, int)])


@pytest.mark.parametrize(
    "key",
    [
        0, 29, -1, -30, np.int64(3), [3, 1, 3], np.arange(30) % 7 == 0, np.zeros(30, bool), [],
        (5, slice(10, 20), slice(None, None, 2)), (slice(3, 6), 4), (slice(3, 6), ..., 0), (..., 0), ...,
        (slice(2), slice(None), slice(None), [2, 0]), (7, 3, 2, 1), (7, ..., None), ([1, 2], slice(0, 3)),
        (slice(0, 4), None, 5), (),
    ],
)  # fmt: skip
def test_keys_are_those_of_numpy(key):
    expected = FRAMES[np.asarray(key, int) if isinstance(key, list) else key]
    np.testing.assert_array_equal(SAMPLE[key], expected)


@pytest.mark.parametrize(
    "key", [30, -31, [30], [-31], np.ones(29, bool), np.ones((30, 48), bool), (0, 48), (0, 0, 0, 0, 0), None, [[0]], [1.5], "a", True,
            (0, slice(None), slice(None), slice(None), 0), ([0], [0])],
)  # fmt: skip
def test_keys_that_do_not_fit(key):
    with pytest.raises(InvalidKeyError):
        SAMPLE[key]


def test_slices_that_make_no_sense():
    with pytest.raises(InvalidKeyTypeError):
        SAMPLE["a":]
    with pytest.raises(InvalidKeyError, match="zero"):
        SAMPLE[::0]


def test_frames_by_start_stop_and_step():
    np.testing.assert_array_equal(SAMPLE.frames(10, 20), FRAMES[10:20])
    np.testing.assert_array_equal(SAMPLE.frames(25), FRAMES[25:])
    np.testing.assert_array_equal(SAMPLE.frames(2, 29, 9), FRAMES[2:29:9])
    np.testing.assert_array_equal(SAMPLE.frames(-3, None), FRAMES[-3:])
    np.testing.assert_array_equal(SAMPLE.frames(9, 2, -3), FRAMES[9:2:-3])


def test_it_is_like_an_array():
    assert (SAMPLE.shape, SAMPLE.ndim, SAMPLE.dtype, len(SAMPLE)) == (FRAMES.shape, 4, np.uint8, 30)
    assert SAMPLE.fps == 25
    assert SAMPLE.nbytes == len(SAMPLE.read()) == len(DATA)
    np.testing.assert_array_equal(np.asarray(SAMPLE), FRAMES)
    np.testing.assert_array_equal(np.asarray(SAMPLE, "f4"), FRAMES.astype("f4"))
    np.testing.assert_array_equal(np.stack(list(SAMPLE)), FRAMES)
    assert repr(SAMPLE) == f"VideoSample(30 frames of 48 x 64, 25 fps, {len(DATA)} bytes)"


def test_a_video_behind_a_link(web, tmp_path):
    path = tmp_path / "video.mp4"
    path.write_bytes(DATA)
    web.pages["/video.mp4"] = DATA
    rules = LinkRules(allow_http=[web.host])
    for link in (path, web.url("/video.mp4")):
        facts = describe_link(link, rules)
        sample = VideoSample(
            range_reader(facts.url, facts.size, facts.etag, rules, "sample 7"),
            facts.size,
            probe_video(DATA),
        )
        np.testing.assert_array_equal(sample[20:23], FRAMES[20:23])
    web.pages["/video.mp4"] = DATA[::-1]
    with pytest.raises(ChangedLinkError, match=r"^sample 7: "):
        VideoSample(
            range_reader(facts.url, facts.size, facts.etag, rules, "sample 7"),
            facts.size,
            probe_video(DATA),
        )[3]
