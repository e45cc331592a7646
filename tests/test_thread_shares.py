"""Threads share elements: each is in one share, shares are as large as each other, and errors are the caller's."""

from itertools import pairwise

import numpy as np
import pytest

from tensorlake_spark import thread_shares
from tensorlake_spark.thread_shares import by_parts, shares_of, spans


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """Have three threads, also for few elements."""
    monkeypatch.setattr(thread_shares, "_ALONE", 0)
    monkeypatch.setattr(thread_shares, "THREADS", 3)


@pytest.mark.parametrize("counts", [[], [0], [1], [7, 0, 2], [1, 1, 1, 40], [30, 30, 31]])
def test_each_element_is_in_one_share(counts):
    ends = np.cumsum([0, *counts])
    parts = [(np.arange(a, b), -np.arange(a, b)) for a, b in pairwise(ends)]
    shares = shares_of(parts)
    sizes = [sum(len(part[0]) for part in share) for share in shares]
    assert len(shares) == 3
    assert max(sizes) - min(sizes) <= 1
    seen = [some for share in shares for some in share]
    for k, sign in enumerate((1, -1)):
        found = np.concatenate([np.zeros(0, int), *(part[k] for part in seen)])
        assert found.tolist() == [sign * n for n in range(ends[-1])]


@pytest.mark.parametrize("sizes", [[5], [0, 0, 9], [1] * 20, [50, 1, 1, 1]])
def test_each_group_is_in_one_span(sizes):
    found = spans(np.cumsum([0, *sizes]))
    assert [k for span in found for k in range(*span)] == [*range(len(sizes))]
    assert all(first < stop for first, stop in found)


def test_spans_are_as_large_as_each_other():
    assert spans(np.arange(0, 22)) == [(0, 7), (7, 14), (14, 21)]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 99])
def test_parts_are_all_there_is(count):
    seen = np.zeros(count, int)
    begins = []

    def work(here):
        begins.append(here.start)
        seen[here] += 1

    by_parts(work, count, 4)
    assert seen.tolist() == [1] * count
    assert sorted(begins) == [*range(0, count, 4)]


def test_threads_do_about_errors_of_floats_what_the_caller_said():
    def work(here):
        np.ones(1) / np.zeros(1)

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        by_parts(work, 9, 4)
    with np.errstate(divide="ignore"):
        by_parts(work, 9, 4)
