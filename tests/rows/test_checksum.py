"""The checksum of a row, over the byte form that FORMAT.md fixes, written down once more here."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.rows.checksum import (
    corner_bytes,
    crc_head,
    crc_held,
    crc_of,
    crc_payload,
    crc_with_text,
)

TEXT = st.sampled_from([None, "", "ftsf", '{"lo":[0]}', "é"])
BYTES = st.none() | st.binary(max_size=40)
CORNERS = st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), max_size=8)


def byte_form(texts, corners, payload):
    """The bytes of a row, as FORMAT.md says."""
    out = b""
    for text in texts:
        data = None if text is None else text.encode()
        out += b"\xff" * 4 if data is None else struct.pack("<I", len(data)) + data
    out += struct.pack("<I", len(corners)) + b"".join(struct.pack("<q", c) for c in corners)
    for data in payload:
        out += b"\xff" * 8 if data is None else struct.pack("<Q", len(data)) + data
    return out


@given(st.tuples(TEXT, TEXT, TEXT, TEXT), CORNERS, BYTES, BYTES)
def test_it_is_the_crc_of_the_byte_form(texts, box, index, values):
    corners = [lo for lo, _ in box] + [hi for _, hi in box]
    wanted = zlib.crc32(byte_form(texts, corners, (index, values)))
    assert crc_of(*texts, corners, index, values) == wanted
    lo, hi = (np.array([corner], np.int64).reshape(1, -1) for corner in zip(*box or [((), ())]))
    (form,) = corner_bytes(lo, hi)
    assert crc_payload(crc_head(*texts), index, values, form) == wanted, "as readers make it"


@pytest.mark.parametrize("size", [0, 1, 5120, 5121, 12_000, 70_000])
def test_few_bytes_and_many_have_the_same_checksum(size):
    data = np.random.default_rng(size).bytes(size)
    for one in (data, memoryview(data)):
        assert crc_held(one, 7) == zlib.crc32(data, 7)
        whole = byte_form(("a", None, "b", "c"), (1, 2), (one, data))
        assert crc_of("a", None, "b", "c", (1, 2), one, data) == zlib.crc32(whole)


def test_a_null_is_not_an_empty_value():
    assert (
        len({crc_of("a", p, "b", "c", (), i, None) for p in (None, "") for i in (None, b"")}) == 4
    )


@given(st.text(max_size=40), st.integers(0, 2000), st.lists(st.integers(0, 9), max_size=3))
def test_a_long_text_has_the_checksum_of_its_bytes(text, times, corners):
    for long in (text * times, "a" * (16 << 10) + text, "ab" * (40 << 10)):
        whole = crc_of("ftsf", None, "int8", "zstd", corners, None, long.encode())
        assert crc_with_text("ftsf", "int8", "zstd", corners, long) == whole
