"""Tasks hand on how many rows there are so far, or leave their rows to another."""

import pytest

from tensorlake_spark.columns.elsewhere.rows_aside import AsideFile, Span
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.source.feature_relay import Baton, Relay


@pytest.fixture
def relay(tmp_path):
    return Relay(Storage(str(tmp_path)), "mark-")


def file_of(partition, *rows):
    return AsideFile(partition, f"file{partition}", rows, ())


def test_a_baton_counts_rows_and_keeps_those_after_the_last_whole_block():
    first, second = file_of(1, 4000, 1000), file_of(2, 3000)
    empty = Baton().after(file_of(0))
    assert empty == Baton()
    one = empty.after(first)
    assert (one.rows, one.whole, one.sampled) == (5000, 4096, first)
    assert one.rest == (Span("file1", 1, 96, 904),)
    two = one.after(second)
    assert (two.rows, two.whole, two.sampled) == (8000, 4096, first)
    assert two.rest == (*one.rest, Span("file2", 0, 0, 3000))
    assert one.spans_with(second) == [*two.rest]
    assert two.after(file_of(3, 192)).rest == ()


def test_the_next_task_finds_what_is_handed_on(relay):
    file = file_of(0, 4000, 1000)
    assert relay.before(0) == Baton()
    assert relay.before(1) is None
    assert relay.file_of(0) is None
    relay.hand_on(0, Baton().after(file), file)
    assert relay.before(1) == relay.awaited(1, 3600) == Baton().after(file)
    assert relay.file_of(0) == file
    assert relay.left(0) is None


def test_a_task_behind_one_that_left_does_not_wait(relay):
    assert relay.awaited(1, 0) is None
    relay.leave(file_of(1, 5))
    assert relay.left(1) == relay.file_of(1) == file_of(1, 5)
    assert relay.awaited(2, 1e9) is None  # a wait would not end
