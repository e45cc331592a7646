"""Headers of images: Pillow is the oracle."""

import io
import zlib

import PIL.Image
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from sample_files import image_file

from tensorlake_spark.datasets.types.media.image_headers import FACTS, HeaderError, format_of

MODES = {
    "jpeg": ["L", "RGB", "CMYK"],
    "png": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"],
    "webp": ["RGB", "RGBA"],
}
CHANNELS = {"1": 1, "L": 1, "I;16": 1, "LA": 2, "P": 3, "RGB": 3, "CMYK": 3, "RGBA": 4}
SIZES = st.integers(1, 70)
KINDS = [(form, mode) for form, modes in MODES.items() for mode in modes]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [False, True])
@times(0.2)
@given(SIZES, SIZES)
def test_headers_say_what_pillow_says(kind, other, height, width):
    form, mode = kind
    options = {
        "jpeg": {"progressive": True, "comment": b"\xff\xd9" * 40},
        "png": {"optimize": True},
        "webp": {"lossless": True},
    }[form] if other else {}  # fmt: skip
    data = image_file(form, height, width, mode, **options)
    found = PIL.Image.open(io.BytesIO(data))
    facts = FACTS[form](data)
    assert facts[:2] == (found.height, found.width) == (height, width)
    assert facts[2] == CHANNELS[found.mode]
    assert facts[3] == ("uint16" if mode == "I;16" else "uint8")
    assert format_of(data) == form


@pytest.mark.parametrize("kind", KINDS)
@times(0.4)
@given(st.data())
def test_a_file_that_lacks_its_end_is_refused(kind, data):
    whole = image_file(kind[0], 12, 7, kind[1])
    size = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(HeaderError):
        FACTS[kind[0]](whole[:size])


@times(3)
@given(st.sampled_from(sorted(FACTS)), st.binary(max_size=80), st.data())
def test_whatever_the_bytes_it_is_an_error_or_a_size(form, noise, data):
    whole = image_file(form, 12, 7)
    at = data.draw(st.integers(0, min(60, len(whole))))
    for given_bytes in (noise, whole[:at] + noise + whole[at:], whole[:at] + noise + whole[-20:]):
        try:
            height, width, channels, dtype = FACTS[form](given_bytes)
        except HeaderError:
            continue
        assert height > 0
        assert width > 0
        assert channels in (1, 2, 3, 4)
        assert dtype in ("uint8", "uint16")


def test_bytes_behind_the_end_of_a_jpeg_are_allowed_and_an_end_in_a_comment_is_none():
    data = image_file("jpeg", comment=b"\xff\xd9")
    assert FACTS["jpeg"](data + b"of the camera") == FACTS["jpeg"](data)
    with pytest.raises(HeaderError, match="no end marker"):
        FACTS["jpeg"](data[:-2])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"\xff\xc0", b"\xff\xc3", "a kind that is not decoded"),
        (b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c", "12 bits"),
        (b"\xff\xc0\x00\x11\x08\x00\x08", b"\xff\xc0\x00\x11\x08\x00\x00", "0 x 9"),
        (b"\xff\xdb", b"\xff\xda", "without a frame header"),
    ],
)
def test_jpegs_that_nobody_decodes_are_refused(old, new, says):
    data = image_file("jpeg")
    assert old in data
    with pytest.raises(HeaderError, match=says):
        FACTS["jpeg"](data.replace(old, new, 1))


def test_the_header_of_a_png_has_a_checksum():
    data = bytearray(image_file("png"))
    data[18] ^= 1
    with pytest.raises(HeaderError, match="wrong checksum"):
        FACTS["png"](bytes(data))


@pytest.mark.parametrize(("form", "other"), [("jpeg", "png"), ("png", "webp"), ("webp", "jpeg")])
def test_another_format_is_named(form, other):
    with pytest.raises(HeaderError, match=f"^a {other}$"):
        FACTS[form](image_file(other))
    with pytest.raises(HeaderError, match="no bytes"):
        FACTS[form](b"")


def test_a_webp_with_more_than_pixels():
    data = image_file("webp", 5, 70, exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    assert data[12:16] == b"VP8X"
    assert FACTS["webp"](data) == (5, 70, 3, "uint8")
    with pytest.raises(HeaderError, match="first chunk is b'XXXX'"):
        FACTS["webp"](data.replace(b"VP8X", b"XXXX"))


@pytest.mark.parametrize(
    ("at", "byte", "says"),
    [(24, 3, "does not exist"), (25, 1, "does not exist"), (16, 0xFF, "size")],
)
def test_pngs_that_do_not_exist_are_refused(at, byte, says):
    data = bytearray(image_file("png"))
    data[at] = byte
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    with pytest.raises(HeaderError, match=says):
        FACTS["png"](bytes(data))


def test_a_jpeg_may_have_filling_before_a_marker():
    data = image_file("jpeg")
    assert FACTS["jpeg"](data.replace(b"\xff\xdb", b"\xff\xff\xff\xdb", 1)) == (8, 9, 3, "uint8")
    with pytest.raises(HeaderError, match="no marker"):
        FACTS["jpeg"](data[:4] + b"\0\0" + data[6:])
