"""Headers of many JPEG files at once: the reader of one file is the oracle."""

import numpy as np
import pyarrow as pa
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from sample_files import image_file

from tensorlake_spark.datasets.types.media.image_headers import HeaderError, jpeg_facts
from tensorlake_spark.datasets.types.media.jpeg_headers import MOST_SEGMENTS, beginnings, jpeg_sizes

WHOLE = [
    image_file("jpeg", 12, 7),
    image_file("jpeg", 1, 70, "L"),
    image_file("jpeg", 9, 9, "CMYK"),
    image_file("jpeg", 33, 20, progressive=True, comment=b"\xff\xd9" * 40),
]


def one_by_one(files):
    out = []
    for data in files:
        try:
            out.append(jpeg_facts(data)[:3])
        except HeaderError:
            out.append(None)
    return out


def at_once(files):
    sizes, known = jpeg_sizes(pa.array(files, pa.binary()))
    return [tuple(size) if there else None for size, there in zip(sizes.T.tolist(), known)]


def test_whole_files_have_the_size_that_is_read_of_each():
    assert at_once(WHOLE) == one_by_one(WHOLE)
    assert None not in at_once(WHOLE)


@times(3)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(WHOLE), st.integers(0, 200), st.binary(max_size=12), st.integers(0, 700)
        ),
        max_size=6,
    ),
    st.binary(max_size=30),
)
def test_damaged_files_among_others(changes, noise):
    files = [*WHOLE, noise]
    for whole, at, piece, size in changes:
        files += [whole[:at] + piece + whole[at + len(piece) :], whole[:at] + piece, whole[:size]]
        files += [whole[:at] + piece + whole[at:], whole]
    found, wanted = at_once(files), one_by_one(files)
    for one, other in zip(found, wanted, strict=True):
        assert one is None or one == other  # what is not known is read again, alone
    assert found[: len(WHOLE)] == wanted[: len(WHOLE)]


@pytest.mark.parametrize("count", [MOST_SEGMENTS - 8, MOST_SEGMENTS])
def test_many_segments_before_the_frame(count):
    many = WHOLE[0][:2] + b"\xff\xfe\x00\x04ab" * count + WHOLE[0][2:]
    sizes, known = jpeg_sizes(pa.array([WHOLE[0], many]))
    assert jpeg_facts(many)[:3] == (12, 7, 3)
    assert known.tolist() == [True, count < MOST_SEGMENTS]
    assert sizes[:, 0].tolist() == [12, 7, 3]


def test_a_slice_of_a_column_and_no_files():
    column = pa.array(WHOLE, pa.binary())
    assert jpeg_sizes(column.slice(1, 2))[0].T.tolist() == [[1, 70, 1], [9, 9, 3]]
    sizes, known = jpeg_sizes(column.slice(0, 0))
    assert sizes.shape == (3, 0)
    assert known.shape == (0,)
    assert not jpeg_sizes(pa.array([b"", b"\xff"]))[1].any()
    assert np.array_equal(jpeg_sizes(pa.array([b""] * 9))[1], np.zeros(9, bool))


@pytest.mark.parametrize("before", [0, 300, *range(330, 360), 700, 60_000])
def test_the_beginning_of_a_file_tells_its_size_or_nothing(before):
    """A frame header that is cut, or further behind, tells nothing."""
    comment = {"comment": b"c" * before} if before else {}
    file = image_file("jpeg", 258, 70, **comment)
    whole, known = jpeg_sizes(pa.array([file, file], pa.binary()))
    sizes, found = jpeg_sizes(beginnings([file, file, b"short", b""]))
    assert known.all()
    assert found.tolist() == [file.index(b"\xff\xc0") + 10 <= 512] * 2 + [False] * 2
    if found[0]:
        assert np.array_equal(sizes[:, :2], whole)
