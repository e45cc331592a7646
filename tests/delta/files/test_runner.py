"""Tasks in this process: in order, each when it is asked for, or at once where they only look."""

import threading

import pytest

from tensorlake_spark.delta.files.runner import parcels, run_here


def test_a_task_is_done_when_it_is_asked_for():
    done = []
    found = run_here(done.append, [1, 2, 3])
    assert done == []
    assert next(found) == (1, None)
    assert done == [1]


def test_tasks_that_only_look_are_done_at_once():
    both = threading.Barrier(2, timeout=60)

    def look(task):
        both.wait()
        return -task

    assert list(run_here(look, [1, 2], sizes=[5, 5])) == [(1, -1), (2, -2)]


@pytest.mark.parametrize("sizes", [None, [1, 1, 1]])
def test_an_error_comes_after_the_results_before_it(sizes):
    found = run_here(lambda task: 1 // task, [1, 1, 0], sizes)
    assert [next(found), next(found)] == [(1, 1), (1, 1)]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_parcels_hold_every_task_once():
    assert parcels([], 64, 4) == []
    assert parcels([100, 100], 64, 4) == [(0, 1), (1, 2)]
    sizes = [7, 0, 90, 3, 3, 60, 1] * 5
    cuts = parcels(sizes, 64, 4)
    assert [i for a, b in cuts for i in range(a, b)] == list(range(len(sizes)))
    for a, b in cuts:
        assert b == a + 1 or sum(max(size, 4) for size in sizes[a:b]) <= 64
