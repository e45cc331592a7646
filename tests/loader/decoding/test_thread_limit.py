"""Threads that decode tiny images wait for each other; those of large images do not."""

import threading

import pytest

from tensorlake_spark.loader.decoding.thread_limit import ThreadLimit, threads_for


def test_more_bytes_are_more_threads():
    counts = [
        threads_for(size) for size in (0, 1, 900, 1300, 3000, 6000, 20_000, 1e12, float("inf"))
    ]
    assert counts == sorted(counts)
    assert counts[:3] == [1, 1, 1]
    assert counts[-1] == 1024


@pytest.mark.parametrize(("size", "most"), [(800, 1), (1700, 2), (3000, 4)])
def test_no_more_threads_than_gain_are_inside(size, most):
    inside, seen, lock = [], [], threading.Lock()
    gate = threading.Barrier(8)

    def work():
        gate.wait()
        for _ in range(20):
            with ThreadLimit(size):
                with lock:
                    inside.append(1)
                    seen.append(len(inside))
                threading.Event().wait(0.0005)
                with lock:
                    inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert max(seen) <= most


def test_large_images_do_not_wait():
    gate, met = threading.Barrier(20, timeout=30), []

    def work():
        with ThreadLimit(1e6):
            gate.wait()  # all of them are inside
            met.append(1)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(met) == 20
