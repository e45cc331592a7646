"""What a file says of itself is bounded before anything of it is unpacked."""

import io
import zipfile

import PIL.Image
import pytest

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.spark.ingest import limits


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setenv(limits.MAX_BYTES, "1000")
    monkeypatch.setenv(limits.MAX_PIXELS, "100")


def test_bytes_and_pixels_up_to_the_limit_are_taken(small):
    limits.check_bytes(1000, "x")
    limits.check_pixels(100)
    with pytest.raises(
        InvalidTensorError, match=r"x has 1001 bytes unpacked, more than 1000.*TENSORLAKE_MAX_BYTES"
    ):
        limits.check_bytes(1001, "x")
    with pytest.raises(InvalidTensorError, match=r"more than 100 pixels.*TENSORLAKE_MAX_PIXELS"):
        limits.check_pixels(101)


@pytest.mark.parametrize("text", ["0", "-1", "1e3", "", "much"])
def test_a_limit_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv(limits.MAX_BYTES, text)
    with pytest.raises(InvalidOptionError, match="is not a number above 0"):
        limits.check_bytes(1, "x")


def test_a_member_of_an_archive_that_unpacks_to_more_is_refused(small):
    for size in (1000, 1001):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", b"0" * size)
        with zipfile.ZipFile(data) as archive:
            if size == 1000:
                limits.check_archive(archive)
                continue
            with pytest.raises(
                InvalidTensorError, match=r"a.npy has \d+ bytes and unpacks to 1001"
            ):
                limits.check_archive(archive)


@pytest.mark.filterwarnings("ignore:Image size")  # Pillow warns before it refuses
@pytest.mark.parametrize(("side", "fits"), [(10, True), (11, False)])
def test_an_image_of_too_many_pixels_is_an_error_and_the_limit_is_put_back(small, side, fits):
    data = io.BytesIO()
    PIL.Image.new("L", (side, side)).save(data, "png")
    before = PIL.Image.MAX_IMAGE_PIXELS
    if fits:
        with limits.bounded_pixels(PIL.Image):
            PIL.Image.open(data)
    else:
        with (
            pytest.raises(InvalidTensorError, match="more than 100 pixels"),
            limits.bounded_pixels(PIL.Image),
        ):
            PIL.Image.open(data)
    assert before == PIL.Image.MAX_IMAGE_PIXELS


def test_a_line_that_does_not_end_is_not_read_whole(monkeypatch):
    monkeypatch.setattr(limits, "LINE_BYTES", 8)
    assert [*limits.bounded_lines(io.BytesIO(b"1234567\n\nend"))] == [b"1234567\n", b"\n", b"end"]
    stream = io.BytesIO(b"0" * 100)
    with pytest.raises(ValueError, match="a line has more than 8 bytes"):
        list(limits.bounded_lines(stream))
    assert stream.tell() == 9
