"""JPEG at its size and at parts of it, with simplejpeg and without."""

import sys

import numpy as np
import pytest
from resized_images import picture, resized

from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.jpegs import jpeg_pixels, jpeg_rows, scale_for
from tensorlake_spark.loader.decoding.region import Region


@pytest.fixture(params=["simplejpeg", "pillow"])
def codec(request, monkeypatch):
    """Both libraries."""
    if request.param == "pillow":
        monkeypatch.setitem(sys.modules, "simplejpeg", None)
        image_codecs.simplejpeg.cache_clear()
    yield request.param
    monkeypatch.undo()
    image_codecs.simplejpeg.cache_clear()


def encoded(height, width, channels=3):
    return image_codecs.encoded(picture(height, width, channels), "jpeg", 92)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("size", "scale"),
    [
        (size, scale)
        for size in [(48, 64), (47, 65), (1, 1), (8, 9), (3, 100), (15, 15)]
        for scale in (1, 2, 4, 8)
        if scale <= min(size)
    ],
)
def test_a_part_of_its_size(codec, channels, size, scale):
    data = encoded(*size, channels)
    found = jpeg_pixels(data, *size, channels, scale)
    height, width = -(-size[0] // scale), -(-size[1] // scale)
    assert found.shape == ((height, width) if channels == 1 else (height, width, channels))
    whole = image_codecs.decoded(data, "jpeg")
    if scale == 1:
        np.testing.assert_array_equal(found, whole)
    else:  # the mean of the pixels that become one
        assert abs(found.mean() - whole.mean()) < 6
    out = np.zeros_like(found)
    assert jpeg_pixels(memoryview(data), *size, channels, scale, out) is out
    np.testing.assert_array_equal(out, found)


@pytest.mark.parametrize("size", [(400, 600), (512, 512)])
@pytest.mark.parametrize("wanted", [(224, 224), (100, 120), (50, 50), (30, 40)])
def test_a_part_of_its_size_looks_the_same_when_it_is_resized(codec, size, wanted):
    data = encoded(*size)
    scale = scale_for(Region(size=wanted), *size)
    smaller = jpeg_pixels(data, *size, 3, scale)
    want = resized(image_codecs.decoded(data, "jpeg"), wanted).astype(int)
    apart = np.abs(resized(smaller, wanted) - want)
    # Measured: at most 4.3 in the mean, where 16 pixels along a wave of 40 become one.
    assert apart.mean() < 6
    assert apart.max() < 60


@pytest.mark.parametrize(
    ("region", "scale"),
    [
        (Region(), 1), (Region(size=(100, 100)), 4), (Region(size=(101, 100)), 2), (Region(size=(100, 100), exact=True), 1),
        (Region(size=(1, 1)), 8), (Region(size=(401, 1)), 1), (Region((0, 0, 200, 200), (100, 100)), 2),
        (Region((0, 0, 199, 200), (100, 100)), 1), (Region((0, 0, 200, 200)), 1),
    ],
)  # fmt: skip
def test_it_is_decoded_no_smaller_than_it_is_wanted(region, scale):
    assert scale_for(region, 400, 600) == scale


def test_rows_that_simplejpeg_does_not_decode_are_said(codec):
    files = [encoded(8, 9), encoded(9, 8), b"", encoded(8, 9, 1), encoded(8, 9)]
    out = np.zeros((5, 8, 9, 3), np.uint8)
    rest = [*jpeg_rows(files, out)]
    assert rest == ([0, 1, 2, 3, 4] if codec == "pillow" else [1, 2, 3])
    for number in {*range(5)} - {*rest}:
        np.testing.assert_array_equal(out[number], image_codecs.decoded(files[number], "jpeg"))


@pytest.mark.parametrize("scale", [1, 2])
def test_an_image_of_another_shape_is_refused(codec, scale):
    data = encoded(48, 64)
    for facts in ((47, 64, 3), (48, 65, 3), (480, 640, 3), (48, 64, 1), (48, 64, 2)):
        with pytest.raises(CorruptDataError, match="is a JPEG of"):
            jpeg_pixels(data, *facts, scale)


def test_what_is_no_jpeg_is_refused(codec):
    for data in (b"", b"\xff", b"\xff\xd8\xff", encoded(48, 64)[:200], b"\x89PNG\r\n\x1a\n"):
        with pytest.raises(CorruptDataError):
            jpeg_pixels(data, 48, 64, 3)
