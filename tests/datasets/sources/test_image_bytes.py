"""Formats of images, beside Pillow."""

import io

import numpy as np
import pytest
from PIL import Image

import tensorlake_spark as tl
from tensorlake_spark.datasets.sources import image_bytes
from tensorlake_spark.datasets.sources.image_bytes import (
    column_format,
    format_of,
    image_value,
    pixels_of,
    suffix_format,
)
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
def test_formats_and_pixels_are_those_of_pillow(make_picture, form):
    data = make_picture(1, form)
    assert format_of(data) == suffix_format(f"x.{form}") == form.lower()
    with Image.open(io.BytesIO(data)) as image:
        expected = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(pixels_of(data, "x"), expected)


def test_other_formats_are_converted_only_if_that_is_wanted(make_picture):
    data = make_picture(0, "BMP")
    with pytest.raises(InvalidSampleError, match="the image is bmp, and the column takes png"):
        image_value(data, tl.types.Image("png"), "x")
    made = image_value(data, tl.types.Image("png"), "x", convert=True)
    assert format_of(made) == "png"
    np.testing.assert_array_equal(pixels_of(made, "x"), pixels_of(data, "x"))
    raw = image_value(data, tl.types.Image("raw"), "x", convert=True)
    np.testing.assert_array_equal(raw, pixels_of(data, "x"))
    assert image_value(made, tl.types.Image("png"), "x") is made


def test_an_image_that_does_not_fit_is_named_by_its_file(make_picture, monkeypatch):
    for form in ("jpeg", "png", "webp"):
        data = make_picture(1, form.upper())
        with pytest.raises(
            InvalidSampleError, match=r"^a/1\.x: expected .*truncated.*; read the file again"
        ):
            image_value(data[:-20], tl.types.Image(form), "a/1.x")
    clear = io.BytesIO()
    Image.new("RGBA", (3, 2)).save(clear, "PNG")
    with pytest.raises(
        InvalidSampleError, match=r"^a/1\.png: expected .*got 4 channels; give image_format='png'"
    ):
        image_value(clear.getvalue(), tl.types.Image("jpeg"), "a/1.png", convert=True)
    with pytest.raises(
        InvalidSampleError, match=r"^a/1\.png: expected .*got a png with 4 channels"
    ):
        image_value(clear.getvalue(), tl.types.Image("png", channels=3), "a/1.png")
    monkeypatch.setenv("TENSORLAKE_MAX_PIXELS", "5")
    with pytest.raises(
        InvalidSampleError, match=r"^a/1\.png: expected at most 5 pixels, got 2 x 3; if you trust"
    ):
        image_value(clear.getvalue(), tl.types.Image("png"), "a/1.png")


def test_an_image_stands_upright():
    image = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4))
    exif = Image.Exif()
    exif[0x0112] = 6
    stream = io.BytesIO()
    image.save(stream, "PNG", exif=exif)
    np.testing.assert_array_equal(
        pixels_of(stream.getvalue(), "x"), np.rot90(np.asarray(image), -1)
    )


@pytest.mark.parametrize("mode", ["1", "P", "CMYK", "LA", "RGBA", "I;16"])
def test_modes_become_channels(mode):
    image = (
        Image.new("I;16", (3, 2), 70)
        if mode == "I;16"
        else Image.new("RGB", (3, 2), "red").convert(mode)
    )
    stream = io.BytesIO()
    image.save(stream, "TIFF")
    pixels = pixels_of(stream.getvalue(), "x")
    assert pixels.shape[:2] == (2, 3)
    assert pixels.dtype == (np.uint16 if mode == "I;16" else np.uint8)


def test_bombs_and_junk_are_refused(make_picture, monkeypatch):
    with pytest.raises(InvalidSampleError, match="cannot be decoded"):
        pixels_of(make_picture(0, "PNG")[:60], "x")
    with pytest.raises(InvalidSampleError, match="not an image of a known format"):
        image_value(b"%!PS-Adobe", tl.types.Image("png"), "x", convert=True)
    monkeypatch.setattr(image_bytes, "MAX_PIXELS", 29)
    with pytest.raises(InvalidSampleError, match="6 x 5 pixels, more than 29"):
        pixels_of(make_picture(), "x")


def test_a_column_has_one_format():
    assert column_format(["jpeg"] * 3, None, "x") == "jpeg"
    assert column_format(["bmp", "gif"], "png", "x") == "png"
    for formats in (["jpeg", "png"], ["tiff"], []):
        with pytest.raises(InvalidOptionError, match="a column of images has one format"):
            column_format(formats, None, "x")
    with pytest.raises(InvalidOptionError, match="image_format='tiff' is not one of"):
        column_format(["tiff"], "tiff", "x")
