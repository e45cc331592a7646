"""Rows as windows on a timeline: what is packed comes back, what is asked for is NumPy's, damage is an error."""

import struct

import numpy as np
import pytest

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.buffers import pack_ints
from tensorlake_spark.layouts.coding.codec import codec_of
from tensorlake_spark.layouts.coding.integer_sequences import fold, join, split
from tensorlake_spark.layouts.timelines.timeline import MAX_ROWS, Timeline

RAW = codec_of("raw")
WIDTH = 9


def example(edits=40, dtype="int64"):
    """Return rows, and a timeline of them, some elements edited for one row or several."""
    rng = np.random.default_rng(1)
    line = rng.integers(0, 100, 60).astype(dtype)
    starts = rng.integers(0, 60 - WIDTH, 30)
    starts[10:15] = 7
    rows = line[starts[:, None] + np.arange(WIDTH)]
    rows[rng.integers(0, 30, edits), rng.integers(0, WIDTH, edits)] = 101
    if edits:
        rows[10:15, 3] = 102
    return rows, Timeline.of(rows, line, starts)


def unpacked(rows, index, codec, values):
    return Timeline.unpack(index, values, codec_of(codec), rows.shape, rows.dtype)


@pytest.mark.parametrize("edits", [0, 1, 40])
@pytest.mark.parametrize(
    "codec", ["raw", "shuffle+zstd", "lorenzo+zigzag+bins+zstd", "decimal(2)+zstd"]
)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_what_is_packed_comes_back(edits, codec, dtype):
    rows, timeline = example(edits, dtype)
    back = unpacked(rows, *timeline.pack(codec_of(codec)))
    out = np.empty_like(rows)
    back.take(slice(0, 30, 1), slice(0, WIDTH, 1), out)
    assert np.array_equal(out, rows)
    for name in ("values", "starts", "edited", "edits"):
        assert np.array_equal(getattr(back, name), getattr(timeline, name))


@pytest.mark.parametrize("rows_asked", [np.s_[3:25:4], np.array([9, 0, 9, 29, 12]), np.s_[5:5]])
@pytest.mark.parametrize("columns", [np.s_[0:9:1], np.s_[2:8:3], np.s_[3:4:1]])
def test_rows_and_columns_as_numpy_has_them(rows_asked, columns):
    rows, timeline = example()
    want = rows[rows_asked][:, columns]
    out = np.empty_like(want)
    timeline.take(rows_asked, columns, out)
    assert np.array_equal(out, want)


def test_elements_as_numpy_has_them():
    rows, timeline = example()
    rng = np.random.default_rng(2)
    at = rng.integers(0, 30, 400), rng.integers(0, WIDTH, 400)
    assert np.array_equal(timeline.pick(*at), rows[at])
    grid = np.ix_([4, 11, 11, 0], [8, 3, 3])
    assert np.array_equal(timeline.pick(*grid), rows[grid])


def test_an_edit_that_stays_is_stored_once():
    line = np.arange(50)
    starts = 20 - np.arange(20)
    rows = line[starts[:, None] + np.arange(WIDTH)]
    rows[5:10][rows[5:10] == 20] = 99
    timeline = Timeline.of(rows, line, starts)
    assert len(timeline.edits) > 1
    n, patches = struct.unpack("<II", split(timeline.pack(RAW)[0], 3)[0])
    assert (n, patches) == (50, 1)


def packed(n, starts, patches, p=None):
    """Return an index with any numbers in it; `patches` are places' differences, first rows, further rows."""
    p = len(patches) // 3 if p is None else p
    parts = [struct.pack("<II", n, p), pack_ints(fold(np.diff(starts, prepend=0))), pack_ints(np.array(patches, np.int64))]  # fmt: skip
    return join(parts)


@pytest.mark.parametrize(
    ("n", "starts", "patches", "message"),
    [
        (2, [0, 0, 0], [], "a timeline of 2 elements with 0 patches does not fit rows of shape"),
        (13, [0, 0, 0], [], "a timeline of 13 elements"),
        (8, [0, 5, 0], [], "begins outside of its timeline of 8 elements"),
        (8, [0, -1, 0], [], "begins outside of its timeline"),
        (8, [0, 0, 0], [1, 3, 0], "other rows than the 3 of its timeline"),
        (8, [0, 0, 0], [1, 1, 2], "other rows than the 3 of its timeline"),
        (8, [0, 0, 0], [4, 1, 0], "outside of the row that it changes"),
        (8, [0, 1, 0], [0, 0, 1], "outside of the row that it changes"),
        (8, [0, 0, 0], [1, 0, 0, 1, 2, 1], "two patches change one element"),
        (8, [0, 0, 0], [1 << 50, 0, 0], "is no place of a timeline"),
    ],
)
def test_what_does_not_fit_is_refused(n, starts, patches, message):
    rows = np.zeros((3, 4), np.int64)
    values = np.arange(n + len(patches) // 3).tobytes()
    with pytest.raises(CorruptDataError, match=message):
        unpacked(rows, packed(n, starts, patches), "raw", values)


def test_lengths_that_do_not_fit_are_refused():
    rows = np.zeros((3, 4), np.int64)
    values = np.arange(8).tobytes()
    assert unpacked(rows, packed(8, [0, 1, 4], []), "raw", values).starts.tolist() == [0, 1, 4]
    with pytest.raises(CorruptDataError, match="7 bytes are not two lengths"):
        unpacked(rows, join([b"\0" * 7, b"\0", b"\0"]), "raw", values)
    with pytest.raises(CorruptDataError, match="patches"):
        unpacked(rows, packed(8, [0, 1, 4], [], MAX_ROWS + 1), "raw", values)
    with pytest.raises(CorruptDataError, match="64 bytes where 72"):
        unpacked(rows, packed(8, [0, 1, 4], [0, 0, 0]), "raw", values)
    with pytest.raises(CorruptDataError, match="are more than the limit"):
        Timeline.unpack(b"", b"", RAW, (MAX_ROWS + 1, 4), rows.dtype)
