"""Videos in a dataset: frames are read by ranges of the row."""

import io
import pickle

import av
import numpy as np
import pytest

import tensorlake_spark as tl


@pytest.fixture(scope="module")
def video():
    """A video of sixty frames, each of a grey of its own."""
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 64, 48, "yuv420p", 12
        for number in range(60):
            pixels = np.full((48, 64, 3), number * 4, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        container.mux(stream.encode())
    return out.getvalue()


@pytest.mark.parametrize("apart", [False, True])
def test_frames_of_a_stored_video(tmp_path, video, apart):
    ds = tl.dataset(tmp_path, {"v": tl.types.Video(apart=apart), "g/n": "int32"})
    ds.extend({"v": [video, None, video], "g/n": [0, 1, 2]})
    found = ds["v"][2]
    assert found.shape == (60, 48, 64, 3)
    frames = found.frames(20, 25)
    assert frames.shape == (5, 48, 64, 3)
    np.testing.assert_allclose(frames.mean(axis=(1, 2, 3)), np.arange(20, 25) * 4, atol=4)
    np.testing.assert_array_equal(ds["v"][0, 20:25], frames)
    assert ds["v"][1] is None
    assert ds[1]["v"] is None
    assert [None if one is None else len(one) for one in ds["v"][:]] == [60, None, 60]
    assert ds["v"].encoded(0) == video


def test_videos_in_lists_and_behind_links_have_frames(tmp_path, video):
    # They were read as the bytes of their files.
    (tmp_path / "clip.mp4").write_bytes(video)
    clip = str(tmp_path / "clip.mp4")
    link = tl.types.Link(tl.types.Video())
    schema = {
        "clips": tl.types.Sequence(tl.types.Video()),
        "link": link,
        "links": tl.types.Sequence(link),
    }
    ds = tl.dataset(tmp_path / "ds", schema)
    ds.extend([{"clips": [video, None], "link": clip, "links": [clip]}, {}])
    (batch,) = ds.loader(2)
    wanted = ds["link"][0].frames(20, 25)
    np.testing.assert_allclose(wanted.mean(axis=(1, 2, 3)), np.arange(20, 25) * 4, atol=4)
    for found in (ds["clips"][0][0], ds["links"][0][0], ds[0]["link"], batch["clips"][0][0]):
        assert pickle.loads(pickle.dumps(found)).shape == (60, 48, 64, 3)
        np.testing.assert_array_equal(found[20:25], wanted)
    np.testing.assert_array_equal(ds["link"][0, 20:25], wanted)
    assert ds["clips"][0][1] is None
    assert ds["link"][1] is None
    ds.append({"clips": ds["clips"][0]})
    assert ds["clips"][2][0].read() == video
