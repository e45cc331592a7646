"""Sequences of integers: what is packed comes back, and what is damaged is an error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding import integer_sequences as s
from tensorlake_spark.layouts.coding.buffers import pack_ints

RUNS = st.lists(st.sets(st.integers(0, 2**40), min_size=1, max_size=9), min_size=1, max_size=6)


@given(RUNS)
def test_runs_that_ascend_come_back(runs):
    ids = np.array([i for run in runs for i in sorted(run)], np.int64)
    counts = np.array([len(run) for run in runs])
    starts = np.cumsum(counts) - counts
    packed = pack_ints(s.gaps(ids, starts))
    length = int(ids.max()) + 1
    assert s.unpack_ascending(packed, counts, length).tolist() == ids.tolist()
    if length > 1:
        with pytest.raises(CorruptDataError, match=r"outside of its box|do not ascend"):
            s.unpack_ascending(packed, counts, length - 1)


def test_runs_that_do_not_ascend_are_refused():
    with pytest.raises(CorruptDataError, match="do not ascend"):
        s.ascending(np.array([3, 0, 5], np.uint32), np.array([3]))
    with pytest.raises(CorruptDataError, match="do not ascend"):  # past the end of the word
        s.ascending(np.array([2**32 - 1, 2], np.uint32), np.array([2]))


@given(st.lists(st.integers(-(2**62), 2**62 - 1)))
def test_integers_of_either_sign_come_back(numbers):
    folded = s.fold(np.array(numbers, np.int64))
    assert (folded >= 0).all()
    assert s.unfold(folded).tolist() == numbers
    assert folded.tolist() == [2 * n if n >= 0 else -2 * n - 1 for n in numbers]


@given(st.lists(st.binary(max_size=9), max_size=5), st.data())
def test_joined_buffers_come_back_and_a_cut_is_found(parts, data):
    joined = s.join(parts)
    assert [bytes(part) for part in s.split(joined, len(parts))] == parts
    if joined:
        cut = data.draw(st.integers(0, len(joined) - 1))
        with pytest.raises(CorruptDataError):
            s.split(joined[:cut], len(parts))
    with pytest.raises(CorruptDataError):
        s.split(joined + b"x", len(parts))


@pytest.mark.parametrize("index", [-1, 5])
def test_an_index_outside_is_refused(index):
    s.check_inside(np.array([0, 4]), 5)
    with pytest.raises(CorruptDataError, match="outside of its box"):
        s.check_inside(np.array([0, index]), 5)
