"""Decoders of images agree."""

import sys

import numpy as np
import pytest
from sample_files import image_file, pixels

import tensorlake_spark as tl
from tensorlake_spark.datasets.types.media import image_codecs


def test_simplejpeg_and_pillow_give_the_same_pixels():
    for mode in ("L", "RGB"):
        data = image_file("jpeg", 33, 47, mode)
        pillow = np.asarray(image_codecs.opened(data, "jpeg"))
        assert np.abs(image_codecs.decoded(data, "jpeg").astype(int) - pillow).max() <= 4


def test_a_large_image_gives_no_warning_of_pillow():
    """Its bound is lower than ours, and belongs to the whole process."""
    data = image_codecs.encoded(np.zeros((10_000, 9_500), bool), "png", 0)
    assert image_codecs.decoded(data, "png").shape == (10_000, 9_500)


@pytest.mark.parametrize("form", ["jpeg", "png"])  # a decoder of WebP shows what it can
def test_what_is_broken_inside_is_corrupt(form):
    data = image_file(form, 40, 40)
    broken = data[:40] + bytes(80) + data[120:]
    with pytest.raises(tl.CorruptDataError):
        image_codecs.decoded(broken, form)


@pytest.mark.parametrize("form", ["jpeg", "png", "webp"])
def test_pixels_can_be_changed(form):
    for mode in ("L", "RGB"):
        array = image_codecs.decoded(image_file(form, 9, 11, mode), form)
        array[0] = 3
        assert (array[0] == 3).all()
    mask = image_codecs.indices_of(image_file("png", 9, 11, "L"))
    mask[:] = 1


def test_a_palette_becomes_its_colours():
    import PIL.Image

    image = PIL.Image.fromarray(pixels()).convert("P")
    np.testing.assert_array_equal(image_codecs.array_of(image), np.asarray(image.convert("RGB")))


@pytest.fixture
def fresh():
    """Which packages are there is asked again, in the test and after it."""
    kept = [image_codecs.pillow, image_codecs.simplejpeg]
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


def test_without_simplejpeg_pillow_decodes(fresh, monkeypatch):
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    assert image_codecs.simplejpeg() is None
    data = image_file("jpeg")
    pillow = np.asarray(image_codecs.opened(data, "jpeg"))
    np.testing.assert_array_equal(image_codecs.decoded(data, "jpeg"), pillow)


def test_without_pillow_the_package_is_named(fresh, monkeypatch):
    data = image_file("png")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(tl.MissingDependencyError, match=r"tensorlake-spark\[images\]"):
        image_codecs.decoded(data, "png")


def test_a_bomb_that_others_wrote_is_not_decoded(monkeypatch):
    """A plain writer of the table has no door of ours."""
    jpeg, png = image_file("jpeg"), image_file("png", mode="L")
    monkeypatch.setenv("TENSORLAKE_MAX_PIXELS", "71")
    for decode in (
        lambda: image_codecs.decoded(jpeg, "jpeg"),
        lambda: image_codecs.indices_of(png),
    ):
        with pytest.raises(tl.CorruptDataError, match="pixels"):
            decode()
    with pytest.raises(tl.CorruptDataError, match="truncated"):
        image_codecs.indices_of(png[:-3])


def test_a_webp_that_pillow_takes_for_a_bomb_is_an_error_of_ours():
    """Pillow asks its own bound for this format, after the class of the format has opened it."""
    data = bytearray(image_file("webp"))
    data[26:30] = bytes([0xFF, 0x3F, 0xFF, 0x3F])
    with pytest.raises(tl.CorruptDataError):
        image_codecs.decoded(bytes(data), "webp")
