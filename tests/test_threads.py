"""Pools of threads: one of each for a process."""

import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from tensorlake_spark import threads


def test_a_process_has_one_pool_of_each_kind():
    assert threads.threads() is threads.threads()
    assert threads.io_threads() is threads.io_threads()
    assert threads.query_threads() is threads.query_threads()
    assert threads.threads() is not threads.io_threads()
    assert threads.threads().submit(lambda: 7).result() == 7


INTERRUPTED = """
import threading
from tensorlake_spark import threads
start = threading.Thread.start
def interrupted(thread):
    start(thread)
    raise KeyboardInterrupt
threading.Thread.start = interrupted
try:
    threads.threads().submit(abs, -1)
except KeyboardInterrupt:
    threading.Thread.start = start
print(threads.threads().submit(abs, -7).result())
"""


def test_a_process_ends_though_it_was_interrupted_as_a_thread_began():
    """It waited for ever for a thread that nobody told to stop."""
    command = [sys.executable, "-c", INTERRUPTED]
    assert subprocess.run(command, capture_output=True, timeout=60, check=True).stdout == b"7\n"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_works_with_a_pool_of_its_own():
    threads.threads().submit(lambda: 1).result()
    child = os.fork()
    if not child:
        done = threads.threads().submit(lambda: 7).result(timeout=30) == 7
        os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_results_come_in_order_and_few_tasks_are_ahead():
    begun = []

    def work(task):
        begun.append(task)
        return -task

    found = threads.in_order(work, range(1000))
    assert [next(found) for _ in range(3)] == [0, -1, -2]
    assert len(begun) <= 3 + 2 * threads.THREADS
    found.close()
    assert threads.threads().submit(lambda: len(begun)).result() <= 3 + 2 * threads.THREADS


def test_an_error_of_a_task_stops_those_behind_it():
    with pytest.raises(ZeroDivisionError):
        list(threads.in_order(lambda task: 1 // task, [1, 0, 1]))


class Interrupted(ThreadPoolExecutor):
    """A pool that is interrupted just after it took a task, before its caller has the future."""

    def submit(self, *task):
        super().submit(*task)
        raise KeyboardInterrupt


def test_work_whose_future_nobody_has_is_waited_for_or_does_not_begin(monkeypatch):
    pool, done = Interrupted(1), []
    monkeypatch.setattr(threads, "threads", lambda: pool)
    for _ in range(200):
        with pytest.raises(KeyboardInterrupt):
            next(threads.in_order(done.append, [1]))
        seen = len(done)
        ThreadPoolExecutor.submit(pool, int).result()  # all that the pool was given is over
        assert len(done) == seen


@pytest.mark.parametrize(
    "run", [lambda *what: list(threads.in_order(*what)), threads.at_once], ids=["in_order", "at_once"]
)  # fmt: skip
def test_long_work_ends_early_once_nobody_takes_its_results(run):
    begun, ended, other = threading.Event(), [], threading.Event()

    def work(task):
        if task == 0:
            assert begun.wait(60)
            raise ZeroDivisionError
        begun.set()
        try:
            while not other.wait(0.001):
                threads.go_on()
        except CancelledError:
            ended.append(task)
            raise

    guard = threading.Timer(60, other.set)
    guard.start()
    with pytest.raises(ZeroDivisionError):
        run(work, [0, 1])
    guard.cancel()
    assert ended == [1]
    threads.go_on()  # outside of such work it does nothing


def test_work_behind_is_done_in_order_and_bounded():
    """Of work that is larger than the bound the caller waits for all that was before it."""
    done, behind = [], threads.Behind(3)
    for number in range(20):
        behind.do(lambda number=number: done.append(number), 2)
        assert len(done) >= number
    behind.finish()
    assert done == list(range(20))


def test_much_small_work_behind_is_counted_once():
    """A file of 16,000 row groups took twelve seconds: for each, all that waited was added up."""

    class Waiting(threads.deque):
        looked = 0

        def __iter__(self):
            Waiting.looked += len(self)
            return super().__iter__()

    behind = threads.Behind(100)
    behind._waiting = Waiting()
    done = []
    for number in range(300):
        behind.do(lambda number=number: done.append(number), 1)
        assert len(behind._waiting) <= 100
    behind.finish()
    assert done == [*range(300)]
    assert Waiting.looked == 0
    for _ in range(100):  # what was stopped does not count
        behind.do(lambda: None, 1)
    assert len(behind._waiting) == 100
    behind.do(lambda: 1 / 0, 1)
    with pytest.raises(ZeroDivisionError):
        behind.finish()
    behind.do(lambda: None, 100)  # nor does what failed
    assert len(behind._waiting) == 1
    behind.stop()


def test_what_goes_wrong_behind_is_raised_in_front():
    behind = threads.Behind(9)
    behind.do(lambda: 1 // 0, 1)
    with pytest.raises(ZeroDivisionError):
        behind.finish()
    behind.stop()


def test_what_is_computed_at_once_has_threads_unless_it_is_in_one():
    both = threading.Barrier(2, timeout=10)
    assert threads.at_once(lambda _: both.wait() >= 0, [1, 2]) == [True, True]

    def names(_):
        return threads.at_once(lambda _: threading.current_thread().name, [1, 2])

    inside = threads.threads().submit(names, None).result()
    assert len({*inside}) == 1
    assert inside[0].startswith("tensorlake")


def test_the_caller_does_what_no_thread_has_begun():
    """A pool that others keep busy, or whose threads are woken late, keeps nobody waiting."""
    free = threading.Event()
    others = [threads.threads().submit(free.wait, 60) for _ in range(2 * threads.THREADS)]
    mine = threading.current_thread().name
    try:
        found = threads.at_once(
            lambda k: (k, threading.current_thread().name), range(threads.THREADS)
        )
    finally:
        free.set()
    assert all(other.result() for other in others)
    assert found == [(k, mine) for k in range(threads.THREADS)]


def test_what_fails_at_once_in_another_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        threads.at_once(lambda k: 1 // (1 - k), [0, 1])


def test_what_waits_for_a_store_waits_at_the_same_time():
    """Of columns and of their samples; what is in another pool already goes one after the other."""
    all_there = threading.Barrier(3)

    def sample(number):
        all_there.wait(30)
        return threading.current_thread().name[: len("tensorlake-samples")]

    def column(number):
        return threads.beside(sample, range(3), "samples") if number == 1 else number

    assert threads.beside(column, range(3)) == [0, ["tensorlake-samples"] * 3, 2]
    inner = threads.threads().submit(
        lambda: threads.beside(lambda _: threading.current_thread().name, range(3))
    )
    assert len({*inner.result()}) == 1
    with pytest.raises(ZeroDivisionError):
        threads.beside(lambda number: 1 // number, range(3))
