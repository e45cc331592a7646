"""The first rows of JPEGs, beside all of them."""

import io

import numpy as np
import pytest
import simplejpeg
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from resized_images import picture

from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.loader.decoding.jpeg_tops import decode_top
from tensorlake_spark.loader.decoding.jpegs import jpeg_pixels, jpeg_rows
from tensorlake_spark.loader.decoding.region import Region

SUBSAMPLINGS = ["444", "422", "420", "440", "411"]


def encoded(height, width, channels=3, subsampling="420", quality=92):
    pixels = np.ascontiguousarray(picture(height, width, channels)).reshape(height, width, channels)
    color = "RGB" if channels == 3 else "GRAY"
    return simplejpeg.encode_jpeg(pixels, quality, color, subsampling)


def by_pillow(height, width, **options):
    held = io.BytesIO()
    Image.fromarray(picture(height, width, 3)).save(held, "jpeg", **options)
    return held.getvalue()


def whole(data, channels=3):
    return simplejpeg.decode_jpeg(data, "RGB" if channels == 3 else "GRAY")


class Counting:
    """simplejpeg, which remembers how many rows it was asked for."""

    def __init__(self):
        self.rows = []

    def __call__(self, data, color, *rest):
        self.rows.append(len(rest[-1]))
        return simplejpeg.decode_jpeg(data, color, *rest)


@example(height=20, width=1, rows=0, channels=1, subsampling="444", quality=14)
@given(
    height=st.integers(20, 120),
    width=st.integers(1, 70),
    rows=st.integers(0, 100),
    channels=st.sampled_from([1, 3]),
    subsampling=st.sampled_from(SUBSAMPLINGS),
    quality=st.integers(1, 100),
)
def test_rows_are_those_of_the_whole_image(height, width, rows, channels, subsampling, quality):
    rows = min(rows, height)
    data = encoded(height, width, channels, subsampling if channels == 3 else "Gray", quality)
    out = np.zeros((height, width, channels), np.uint8)
    decode = Counting()
    found = decode_top(decode, data, rows, channels, out)
    # A quantisation table may look like a marker of restarts, as that of quality 14 does.
    assert found == (height - rows >= 20 and b"\xff\xdd" not in data)
    assert decode.rows == ([rows + 4] if found else [])
    if found:
        np.testing.assert_array_equal(out[:rows], whole(data, channels)[:rows])
        assert not out[rows + 4 :].any()
    out[...] = 0
    assert jpeg_pixels(data, height, width, channels, 1, out, rows) is out
    np.testing.assert_array_equal(out[:rows], whole(data, channels)[:rows])


@pytest.mark.parametrize(
    "options",
    [{"progressive": True}, {"restart_marker_rows": 1}, {"restart_marker_blocks": 3}],
    ids=str,
)
def test_files_of_another_kind_are_decoded_whole(options):
    data = by_pillow(100, 90, **options)
    decode, out = Counting(), np.zeros((100, 90, 3), np.uint8)
    assert not decode_top(decode, data, 20, 3, out)
    assert decode.rows == []
    np.testing.assert_array_equal(jpeg_pixels(data, 100, 90, 3, rows=20), whole(data))


def test_files_with_comments_and_small_images_in_front():
    small = Image.fromarray(picture(100, 90, 3))
    exif = Image.Exif()
    exif[0x010E] = "a picture"
    data = by_pillow(100, 90, exif=exif, optimize=True, comment=b"\xff\xc0" * 9)
    out = np.zeros((100, 90, 3), np.uint8)
    assert decode_top(simplejpeg.decode_jpeg, data, 40, 3, out)
    np.testing.assert_array_equal(out[:40], whole(data)[:40])
    # An image of the same size in a comment: its header is found first, and the decoder says that all of it comes.
    held = io.BytesIO()
    small.save(held, "jpeg", quality=5)
    inside = by_pillow(100, 90, comment=held.getvalue())
    assert not decode_top(simplejpeg.decode_jpeg, inside, 40, 3, out)
    np.testing.assert_array_equal(jpeg_pixels(inside, 100, 90, 3, rows=40), whole(inside))


def test_damage_in_the_rows_and_a_missing_end_are_found():
    good = encoded(160, 120)
    out = np.zeros((160, 120, 3), np.uint8)
    start = good.index(b"\xff\xda") + 14
    marker = good[: start + 40] + b"\xff\xd9" + good[start + 40 :]
    early = good[: start + 40] + b"\xff\xe5\x00\x04ab" + good[start + 44 :]
    for bad in (good[:-2], good[:-200], good[: start + 100], marker, early, good[: start + 1]):
        assert not decode_top(simplejpeg.decode_jpeg, bad, 64, 3, out)
    assert decode_top(simplejpeg.decode_jpeg, good, 64, 3, out)


@given(st.data())
def test_bytes_that_are_changed_never_give_other_rows_than_a_decoder_that_warns_of_nothing(data):
    good = encoded(96, 64)
    start = good.index(b"\xff\xda") + 14
    place = data.draw(st.integers(start, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    out = np.zeros((96, 64, 3), np.uint8)
    if decode_top(simplejpeg.decode_jpeg, bytes(bad), 32, 3, out):
        loose = simplejpeg.decode_jpeg(bytes(bad), strict=False)
        np.testing.assert_array_equal(out[:32], loose[:32])


def test_rows_of_a_batch():
    files = [encoded(60, 40) for _ in range(3)] + [by_pillow(60, 40, progressive=True)]
    out = np.zeros((4, 60, 40, 3), np.uint8)
    assert [*jpeg_rows(files, out, [10, 60, 30, 10])] == []
    for number, rows in enumerate([10, 60, 30, 60]):
        np.testing.assert_array_equal(out[number, :rows], whole(files[number])[:rows])
    assert not out[0, 14:].any()
    assert not out[2, 34:].any()


@pytest.mark.parametrize(
    "region",
    [Region((5, 7, 20, 11)), Region((5, 7, 20, 11), (9, 30)), Region((0, 0, 30, 90), (15, 45), flip=True), Region((40, 0, 20, 90), (40, 80))],
    ids=str,
)  # fmt: skip
def test_a_crop_is_that_of_the_whole_image(region):
    files = [encoded(100, 90, subsampling=s) for s in SUBSAMPLINGS]
    sizes = np.array([[100] * 5, [90] * 5, [3] * 5])
    found = decode_images(files, ImageFacts("jpeg", *sizes), [region] * 5)
    pixels = np.stack([whole(data) for data in files])
    want = decode_images(
        [p.tobytes() for p in pixels], ImageFacts("raw", *sizes), [region._replace(exact=True)] * 5
    )
    if region.size == (15, 45):  # decoded at a half
        assert np.abs(found.astype(int) - want).mean() < 6
    else:
        np.testing.assert_array_equal(found, want)
