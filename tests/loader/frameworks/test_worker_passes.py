"""Passes that processes count: each is the next epoch, for workers that stay and for workers that are new."""

import multiprocessing
import pickle

import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.frameworks.worker_passes import WorkerPasses


def in_a_process(method, passes, calls):
    """What `begin` gives a worker that is started now, and ends after these calls."""
    context = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    process = context.Process(target=_worker, args=(passes, calls, results))
    process.start()
    process.join()
    return [results.get() for _ in calls]


def _worker(passes, calls, results):
    for call in calls:
        results.put(passes.begin(*call))


def test_the_first_pass_is_where_the_loader_is_and_each_further_one_the_next_epoch():
    passes = WorkerPasses()
    assert passes.last() is None
    assert [passes.begin(0, 2, 3, 64) for _ in range(3)] == [(3, 64), (4, 0), (5, 0)]
    assert passes.begin(1, 2, 3, 64) == (3, 64)
    assert passes.last() == (5, 0)


def test_another_number_of_workers_counts_for_itself():
    """Or those that are new would be an epoch behind the others."""
    passes = WorkerPasses()
    assert [passes.begin(0, 1, 0, 0) for _ in range(3)] == [(0, 0), (1, 0), (2, 0)]
    assert [passes.begin(worker, 3, 0, 0) for worker in (2, 0, 1)] == [(0, 0)] * 3
    assert passes.last() == (0, 0)
    assert passes.begin(127, 128, 0, 0) == (0, 0)


def test_a_loader_that_was_moved_begins_there():
    passes = WorkerPasses()
    assert [passes.begin(0, 2, 0, 0), passes.begin(0, 2, 0, 0), passes.begin(0, 2, 7, 0)] == [
        (0, 0),
        (1, 0),
        (7, 0),
    ]


def test_a_move_is_where_the_next_pass_begins():
    passes = WorkerPasses()
    passes.begin(0, 2, 0, 0)
    passes.begin(0, 2, 0, 0)
    passes.move({"epoch": 0, "samples": 8})
    assert passes.last() is None
    assert passes.moved() is None, "it was here"
    assert passes.begin(0, 2, 0, 8) == (0, 8)


def test_a_pass_of_the_loader_itself_is_none_of_workers():
    passes = WorkerPasses()
    passes.begin(0, 2, 0, 0)
    passes.forget()
    assert passes.last() is None
    assert passes.begin(0, 2, 0, 0) == (1, 0)


def test_a_state_that_workers_cannot_share():
    with pytest.raises(InvalidOptionError, match="give the loader a shorter seed"):
        WorkerPasses().move({"seed": 10**4200})


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_new_workers_go_on_where_those_before_them_ended(method):
    passes = WorkerPasses()
    assert in_a_process(method, passes, [(0, 2, 2, 5), (0, 2, 2, 5)]) == [(2, 5), (3, 0)]
    assert passes.last() == (3, 0)
    assert in_a_process(method, passes, [(0, 2, 2, 5)]) == [(4, 0)]


def test_a_worker_that_stays_sees_what_its_parent_moved():
    context = multiprocessing.get_context("fork")
    passes, wanted, found = WorkerPasses(), context.SimpleQueue(), context.SimpleQueue()

    def work():
        epoch = samples = 0
        while wanted.get():
            if (state := passes.moved()) is not None:
                epoch, samples = state["epoch"], state["samples"]
            found.put(passes.begin(0, 2, epoch, samples))

    process = context.Process(target=work)
    process.start()
    try:
        wanted.put(True)
        assert found.get() == (0, 0)
        passes.move({"epoch": 9, "samples": 32, "seed": 10**30})
        wanted.put(True)
        assert found.get() == (9, 32)
        wanted.put(True)
        assert found.get() == (10, 0)
    finally:
        wanted.put(False)
        process.join()


def test_a_copy_that_is_no_worker_counts_for_itself():
    passes = WorkerPasses()
    passes.begin(0, 2, 0, 0)
    copy = pickle.loads(pickle.dumps(passes))
    assert copy.last() is None
    assert copy.begin(0, 2, 0, 0) == (0, 0)
    assert passes.last() == (0, 0)


def test_too_many_workers():
    with pytest.raises(InvalidOptionError, match="129 workers of a DataLoader: at most 128"):
        WorkerPasses().begin(0, 129, 0, 0)


def test_a_move_to_where_passes_began_begins_them_anew():
    """As `set_epoch(0)` after an epoch: workers that stay had gone on with the next one."""
    passes = WorkerPasses()
    assert [passes.begin(0, 2, 0, 0), passes.begin(0, 2, 0, 0)] == [(0, 0), (1, 0)]
    passes.move({"epoch": 0, "samples": 0})
    assert passes.begin(0, 2, 0, 0) == (0, 0)
