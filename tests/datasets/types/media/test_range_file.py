"""A file over ranges gives the bytes of the file, asks for more at a time when it is read on, and keeps headers."""

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.datasets.types.media.range_file import FIRST, MOST, RangeFile
from tensorlake_spark.errors import CorruptDataError

DATA = os.urandom(1 << 20)


def ranges(asked, data=DATA):
    def read(start, stop):
        asked.append((start, stop))
        return data[start:stop]

    return read


@given(
    st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(-1, 100_000)), max_size=20),
    st.one_of(st.none(), st.tuples(st.integers(0, len(DATA)), st.integers(0, len(DATA)))),
)
def test_the_bytes_are_those_of_the_file(steps, bounds):
    file, oracle, asked = RangeFile(ranges(asked := []), len(DATA)), io.BytesIO(DATA), asked
    for number, (place, nbytes) in enumerate(steps):
        if bounds is not None and number == 3:
            file.bound(*bounds)
        assert file.seek(place) == oracle.seek(place) == file.tell()
        found = file.read(nbytes)
        expected = oracle.read(nbytes)
        assert expected.startswith(found)
        assert bool(found) == bool(expected), "at least one byte before the end"
    assert all(0 <= start < stop <= len(DATA) for start, stop in asked)


def test_seeking_is_as_of_files():
    file, oracle = RangeFile(ranges([]), len(DATA)), io.BytesIO(DATA)
    for place, whence in [
        (5, os.SEEK_SET),
        (7, os.SEEK_CUR),
        (-3, os.SEEK_CUR),
        (-10, os.SEEK_END),
    ]:
        assert file.seek(place, whence) == oracle.seek(place, whence)
    assert file.read(100) == oracle.read(100)
    assert file.read(100) == b""


def test_requests_become_larger_while_it_is_read_on():
    asked = []
    file = RangeFile(ranges(asked, bytes(32 << 20)), 32 << 20)
    while file.read(32 << 10):
        pass
    sizes = [stop - start for start, stop in asked]
    assert sizes[0] == FIRST
    assert max(sizes) == MOST
    assert len(sizes) < 20


def test_within_bounds_all_is_read_at_once_and_nothing_past_them():
    asked = []
    file = RangeFile(ranges(asked), len(DATA))
    file.bound(100_000, 400_000)
    file.seek(100_000)
    place = 100_000
    while place < 400_000:
        place += len(file.read(32 << 10))
    assert asked == [(100_000, 400_000)]


def test_headers_are_kept_for_the_next_one():
    kept, asked = {}, []
    first = RangeFile(ranges(asked), len(DATA), kept)
    first.read(10)
    first.seek(-1000, os.SEEK_END)
    first.read(10)
    first.bound(500_000, 600_000)
    first.seek(500_000)
    first.read(10)
    assert sum(map(len, kept.values())) <= FIRST + 1000
    count = len(asked)
    second = RangeFile(ranges(asked), len(DATA), kept)
    assert second.read(10) == DATA[:10]
    second.seek(-500, os.SEEK_END)
    assert second.read(1000) == DATA[-500:]
    assert len(asked) == count


def test_a_range_that_is_too_short_or_too_long():
    for wrong in (b"", b"x", DATA):
        with pytest.raises(CorruptDataError, match="the store returned"):
            RangeFile(lambda start, stop, wrong=wrong: wrong, 100).read(10)
