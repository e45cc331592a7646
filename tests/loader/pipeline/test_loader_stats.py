"""What a loader counts."""

import itertools
import threading

from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats


def test_threads_add_to_the_same_sums():
    stats = LoaderStats()
    threads = [
        threading.Thread(target=lambda: [stats.add(samples=2, wait_seconds=0.5) for _ in range(500)])
        for _ in range(4)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (stats.counts.samples, stats.counts.wait_seconds) == (4000, 1000.0)


def test_nothing_was_counted():
    assert LoaderStats().report()["samples_per_second"] == 0.0
    assert LoaderStats().report()["hit_rate"] == 0.0


def test_seconds_count_while_there_is_an_iteration():
    """The clock of this test goes on by one second whenever it is looked at."""
    ticks = itertools.count()
    stats = LoaderStats(lambda: float(next(ticks)))
    assert stats.seconds == 0.0
    stats.begin()  # at 0
    assert stats.seconds == 1.0
    stats.begin()  # another one, at the same time
    stats.end()
    assert stats.seconds == 2.0
    stats.end()  # at 3
    stats.add(samples=6)
    assert [stats.report()["samples_per_second"] for _ in range(3)] == [2.0] * 3
    stats.begin()  # the next epoch, at 4
    stats.end()  # at 5
    assert stats.seconds == 4.0


def test_the_hit_rate():
    stats = LoaderStats()
    stats.add(hits=3, misses=1)
    assert stats.report()["hit_rate"] == 0.75


def test_the_most_memory_is_kept():
    stats = LoaderStats()
    for nbytes in (3, 9, 4):
        stats.in_use(nbytes)
    assert stats.report()["peak_bytes"] == 9


def test_what_is_taken_while_threads_count_is_counted_once():
    stats, wanted = LoaderStats(), 4000
    found = []

    def count():
        for _ in range(wanted):
            stats.add(hits=1, fetch_seconds=0.5)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found.append(stats.taken())
    found.append(stats.taken())
    assert sum(one.hits for one in found) == 3 * wanted
    assert sum(one.fetch_seconds for one in found) == 1.5 * wanted
    assert stats.taken().hits == 0
