"""What a loader counts."""

import threading
import time

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


def test_waiting_for_the_first_batch_is_in_the_seconds():
    stats = LoaderStats()
    stats.begin()
    began = time.perf_counter()
    time.sleep(0.05)
    stats.add(wait_seconds=time.perf_counter() - began)
    stats.begin()  # the next epoch
    assert stats.report()["wait_seconds"] <= stats.report()["seconds"]


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
