"""Bytes from whatever users give."""

import io
import os
import zlib

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.datasets.types.media.media_bytes import Pieces, bytes_of, crcs_of

PLACE = Place("sound", 10)


def test_files_paths_and_dicts_give_their_bytes(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    with path.open("rb") as file:
        given = [
            b"abc",
            bytearray(b"abc"),
            memoryview(b"abc"),
            path,
            str(path),
            file,
            {"path": str(path)},
        ]
        assert [bytes_of(v, 0, PLACE, "a sound") for v in given] == [b"abc"] * 7
    assert bytes_of(5, 0, PLACE, "a sound") is None
    assert bytes_of({"a": 1}, 0, PLACE, "a sound") is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("s3://bucket/key", "declare Link"),
        ("nothing here", "cannot be read: No such file"),
        (io.StringIO("text"), "mode 'rb'"),
    ],
)
def test_what_cannot_be_read_is_named(value, says, tmp_path):
    with pytest.raises(tl.InvalidSampleError, match=says) as error:
        bytes_of(value, 2, PLACE, "a sound")
    assert "column 'sound', sample 12: expected a sound" in str(error.value)
    with pytest.raises(tl.InvalidSampleError, match="cannot be read"):
        bytes_of(tmp_path, 2, PLACE, "a sound")


@pytest.mark.parametrize("closed", [io.BytesIO(b"abc"), None])
def test_files_that_are_closed_and_for_writing_only_are_named(closed, tmp_path):
    if closed is None:
        closed = (tmp_path / "file").open("wb")
    else:
        closed.close()
    with pytest.raises(tl.InvalidSampleError, match=r"sample 12: .* a file that cannot be read"):
        bytes_of(closed, 2, PLACE, "a sound")
    closed.close()


def test_what_has_no_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(tl.InvalidSampleError, match="a pipe or a device; give its bytes"):
            bytes_of(path, 2, PLACE, "a sound")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_has(name):
    with pytest.raises(tl.InvalidSampleError, match=r"sample 12: .*cannot be read"):
        bytes_of(name, 2, PLACE, "a sound")


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 70_000])
def test_pieces_have_their_checksums(size):
    values = [bytes([number]) * (size + number) for number in range(3)]
    expected = [*map(zlib.crc32, values)]
    for pieces in (values, Pieces.of(values), Pieces.of(values, summed=True)):
        assert crcs_of(pieces).tolist() == expected


@pytest.mark.parametrize(
    "other",
    [
        "a.jpg", None, bytearray(b"abc"), memoryview(b"abc"), memoryview(b"abcd")[::2], 7,
        np.zeros((4, 4), np.uint8)[:, ::2], np.array([None]),
    ],
)  # fmt: skip
def test_what_is_not_all_bytes_is_not_pieces(other):
    assert Pieces.of([b"abc", other], summed=True) is None
    assert Pieces.of([other, b"abc"], summed=True) is None
