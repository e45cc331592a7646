"""Threads that make batches ahead: their order, their memory, their errors and their end."""

import random
import threading
import time

import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.pipeline.batch_threads import BatchThreads
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats


class Piece:
    raw_nbytes = 0
    waited = True

    def __init__(self, number, nbytes=1):
        self.number, self.nbytes = number, nbytes


def batches(
    count,
    fetch=Piece,
    make=lambda number, piece: piece.number,
    threads=4,
    makers=2,
    memory=100,
    ahead=8,
):
    return BatchThreads(range(count), fetch, make, threads, makers, memory, ahead, LoaderStats())  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("ahead", [1, 3, 100])
def test_all_batches_come_in_order(threads, ahead):
    with batches(50, threads=threads, makers=threads, ahead=ahead) as found:
        assert list(found) == list(range(50))


def test_no_batches_at_all():
    with batches(0) as found:
        assert list(found) == []


def test_numbers_are_those_of_the_range():
    stats = LoaderStats()
    with BatchThreads(range(3, 20, 5), Piece, lambda n, p: (n, p.number), 2, 2, 9, 4, stats) as it:
        assert list(it) == [(3, 3), (8, 8), (13, 13), (18, 18)]
    assert stats.counts.fetch_seconds > 0


def test_a_size_that_cannot_be_told_is_an_error_of_its_batch():
    class Broken(Piece):
        nbytes = property(lambda self: 1 // (self.number != 3), lambda self, _: None)

    with batches(9, fetch=Broken) as found:
        taken = iter(found)
        assert [next(taken) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ZeroDivisionError):
            next(taken)


def test_memory_is_a_bound():
    """Whatever waits, is made or was handed out last has at most so many bytes."""
    lock, used, most = threading.Lock(), [0], [0]

    def make(number, piece):
        with lock:
            used[0] += piece.nbytes
            most[0] = max(most[0], used[0])
        return piece

    with batches(60, lambda n: Piece(n, 10 + n % 7 * 10), make, 4, 4, 100) as found:
        held = 0
        for number, piece in enumerate(found):
            assert piece.number == number
            with lock:  # the one before is given back when this one is asked for
                used[0] -= held
            held = piece.nbytes
    assert most[0] <= 100 + 70  # the one given back is counted here a moment later than there


def test_the_last_batch_of_a_loop_counts_until_it_gets_the_next():
    """Batches that are small beside the memory leave half of it, with the one that the loop still has."""
    lock, used, most = threading.Lock(), [0], [0]

    def make(number, piece):
        with lock:
            used[0] += piece.nbytes
            most[0] = max(most[0], used[0])
        return piece

    with batches(60, lambda n: Piece(n, 4 + n % 3), make, ahead=60) as found:
        held = 0
        for piece in found:
            with lock:
                used[0] -= held
            held = piece.nbytes
            time.sleep(0.002)  # others fill the memory meanwhile
    # The one that was replaced is counted here a moment later than there.
    assert 40 < most[0] <= 50 + 6


def test_two_batches_that_do_not_fit_beside_each_other_are_made_one_after_the_other():
    with batches(20, lambda n: Piece(n, 90), threads=3, makers=2) as found:
        assert [*found] == [*range(20)]
        assert found._used == 90  # of the last


def test_a_batch_beside_the_last_one_waits_until_it_is_wanted():
    """Both take more than half of the memory: a loop that is at work has one of them."""
    made = []

    def make(number, piece):
        made.append(number)
        return number

    with batches(3, lambda number: Piece(number, 40), make, memory=100) as found:
        taken = iter(found)
        assert next(taken) == 0
        time.sleep(0.1)
        assert made == [0]
        assert [*taken] == [1, 2]


def test_a_batch_that_never_fits_names_what_it_needs():
    with batches(5, lambda n: Piece(n, 101 if n == 3 else 1)) as found:
        taken = iter(found)
        assert [next(taken) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tl.InvalidOptionError, match=r"leaves 100 bytes .* batch 3 needs 101"):
            next(taken)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_that_never_fits_does_not_hold_up_those_before_it(threads):
    found = iter(batches(9, lambda n: Piece(n, 200 if n == 4 else 60), threads=threads))
    assert [next(found) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(tl.InvalidOptionError, match="batch 4 needs 200"):
        next(found)


@pytest.mark.parametrize("makers", [1, 3])
def test_no_thread_is_forgotten_when_each_job_wakes_one(makers):
    """Many threads, work that ends in any order, and memory for two batches: nobody waits for ever."""
    rng = random.Random(0)
    pauses = [rng.choice([0, 0, 0.0003]) for _ in range(1_200)]

    def fetch(number):
        time.sleep(pauses[number])
        return Piece(number, 50)

    def make(number, piece):
        time.sleep(pauses[-number])
        return piece.number

    for ahead in (1, 2, 40):
        with batches(400, fetch, make, 9, makers, 100, ahead) as found:
            assert list(found) == list(range(400))


@pytest.mark.parametrize("where", ["fetch", "make"])
def test_an_error_comes_in_its_turn(where):
    def failing(number, piece=None):
        if number == 4:
            raise ValueError("the fourth")
        return Piece(number) if piece is None else number

    options = {"fetch": failing} if where == "fetch" else {"make": failing}
    seen = []
    with (
        pytest.raises(ValueError, match="the fourth"),
        batches(9, **options) as found,
    ):
        for number in found:
            seen.append(number)
    assert seen == [0, 1, 2, 3]
    assert found.is_stopped


def test_an_error_ends_the_threads():
    """Who asks for no further batch need not close anything."""
    found = batches(9, make=lambda number, piece: 1 // number)
    with pytest.raises(ZeroDivisionError):
        next(iter(found))
    assert found.is_stopped
    assert not any(thread.is_alive() for thread in found._threads)


def test_no_more_are_begun_than_are_wanted_ahead():
    begun = []

    def fetch(number):
        begun.append(number)
        return Piece(number)

    with batches(100, fetch, ahead=3) as found:
        for number in found:
            assert max(begun) <= number + 3


def test_what_waits_for_an_early_batch_does_not_take_its_memory():
    """The first batch is fetched last: later ones may not use the memory up."""
    others = threading.Event()

    def fetch(number):
        if number == 0:
            assert others.wait(10)
        elif number == 3:
            others.set()
        return Piece(number, 60)

    with batches(6, fetch, threads=5, makers=4) as found:
        assert list(found) == list(range(6))


def test_closing_from_another_thread_wakes_who_waits():
    started, go_on = threading.Event(), threading.Event()

    def fetch(number):
        started.set()
        go_on.wait(10)
        return Piece(number)

    found = batches(3, fetch, threads=1)
    closing = threading.Thread(target=lambda: (started.wait(10), found.close()))
    closing.start()
    with pytest.raises(tl.LoaderClosedError):
        next(iter(found))
    go_on.set()
    closing.join()


def test_ctrl_c_while_threads_begin_ends_those_that_have(monkeypatch):
    began, start = [], threading.Thread.start

    def interrupted(thread):
        if len(began) == 2:
            raise KeyboardInterrupt
        began.append(thread)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            BatchThreads(range(3), str, lambda n, raw: raw, 4, 2, 100, 4, LoaderStats())
    assert len(began) == 2
    assert not any(thread.is_alive() for thread in began)


def test_threads_that_do_not_end_are_waited_for_a_second_together(monkeypatch):
    started, go_on, waits = threading.Barrier(6), threading.Event(), []
    join = threading.Thread.join

    def noted(thread, timeout=None):
        waits.append(timeout)
        join(thread, timeout)

    def fetch(number):
        started.wait(10)
        go_on.wait(10)
        return Piece(number)

    found = batches(5, fetch, threads=5)
    started.wait(10)
    monkeypatch.setattr(threading.Thread, "join", noted)
    found.close()
    found.close()  # as the end of a with block does
    assert len(waits) == 5
    assert sum(waits) <= 1
    monkeypatch.undo()
    go_on.set()
    for thread in found._threads:
        thread.join(10)


def test_what_is_read_and_waits_is_bounded():
    waiting, most, lock, go = [0], [0], threading.Lock(), threading.Event()

    class Raw(Piece):
        raw_nbytes = 10

    def fetch(number):
        with lock:
            waiting[0] += 10
            most[0] = max(most[0], waiting[0])
        return Raw(number)

    def make(number, piece):
        assert go.wait(60)
        with lock:
            waiting[0] -= 10
        return number

    with BatchThreads(range(60), fetch, make, 8, 1, 120, 50, LoaderStats()) as batches:
        time.sleep(0.2)  # nothing is made, and threads read as much as they may
        go.set()
        assert list(batches) == list(range(60))
    # A quarter of the memory, and what threads began before the first one said how much it is.
    assert most[0] <= 30 + 8 * 10


def test_a_batch_of_which_more_is_read_than_may_wait_is_read_alone():
    """Else nothing would be read any more once one is known to be so large, and the loop would wait for ever."""

    class Raw(Piece):
        raw_nbytes = 60

    with batches(12, Raw) as found:
        assert list(found) == list(range(12))
        assert found._raw == 0


def test_the_next_batch_is_begun_while_the_loop_is_at_work():
    begun = threading.Event()

    def fetch(number):
        if number == 1:
            begun.set()
        return Piece(number)

    with batches(3, fetch, ahead=1) as found:
        taken = iter(found)
        assert next(taken) == 0
        assert begun.wait(10)
        assert [*taken] == [1, 2]


def test_what_cannot_say_its_size_is_an_error():
    batches = BatchThreads(range(3), str, str, 1, 1, 100, 4, LoaderStats())
    with batches, pytest.raises(AttributeError, match="nbytes"):
        next(iter(batches))


@pytest.mark.parametrize("waits", [True, False])
def test_threads_beyond_the_makers_fetch_only_while_a_store_is_waited_for(waits):
    """What is kept costs only processor time: a thread that fetches it beside the makers would slow these down."""
    begun, making = [], threading.Event()

    class Kept(Piece):
        waited = waits

    def fetch(number):
        begun.append(number)
        return Kept(number)

    def make(number, piece):
        if number == 40:
            assert making.wait(60)
        return number

    with batches(100, fetch, make, threads=6, makers=1, memory=10**6, ahead=30) as found:
        taken = iter(found)
        assert [next(taken) for _ in range(40)] == list(range(40))
        for _ in range(6000):  # 60 s at the most
            with found._lock:
                if found._making and not found._fetching and not found._may_fetch():
                    break  # nothing will be fetched before a batch is made
            time.sleep(0.01)
        else:
            raise AssertionError(f"after 60 s it still fetches: {len(begun)} batches")
        assert (len(begun) > 60) == waits
        making.set()
        assert list(taken) == list(range(40, 100))
