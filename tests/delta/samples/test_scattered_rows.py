"""Rows that lie far from each other: payloads and numbers in any order, on the disk and in an object store."""

import threading
from collections import Counter

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.scattered_rows import ScatteredRows
from tensorlake_spark.delta.store.ranges import Remote

COUNT = 90
SIZES = [1 + 37 * k % 500 for k in range(COUNT)]
VALUES = [bytes([k]) * size for k, size in enumerate(SIZES)]
ORDER = np.random.default_rng(0).permutation(COUNT)

pytestmark = pytest.mark.both_stores


@pytest.fixture
def stored(place):
    ds = tl.dataset(place, {"x": tl.types.Tensor("uint8", (None,)), "k": "int32", "w": "float32"})
    for start in (0, 60):
        some = slice(start, start + 60)
        values = [np.frombuffer(value, np.uint8) for value in VALUES[some]]
        numbers = [None if k == 7 else k for k in range(COUNT)[some]]
        ds.extend({"x": values, "k": numbers, "w": np.zeros(len(values), np.float32)})
    return tl.dataset(place, create=False).parts.stored


def payloads(rows, stored, positions):
    found = rows.payloads(stored.leaf(("x", "data")), np.asarray(positions))
    return [bytes(value) for value in found]


def test_payloads_and_numbers_come_in_the_order_that_was_asked_for(stored):
    rows = ScatteredRows(stored, 1 << 20)
    assert payloads(rows, stored, ORDER) == [VALUES[k] for k in ORDER]
    assert payloads(rows, stored, [3, 3, 80]) == [VALUES[3], VALUES[3], VALUES[80]]
    numbers = rows.numbers(stored.leaf(("k",)), ORDER, null=-5)
    assert numbers.tolist() == [-5 if k == 7 else k for k in ORDER]


def test_little_memory_changes_no_answer(stored):
    rows = ScatteredRows(stored, 1)
    for _ in range(2):
        assert payloads(rows, stored, ORDER) == [VALUES[k] for k in ORDER]


@pytest.fixture
def reads(monkeypatch):
    found: Counter[tuple[str, int, int]] = Counter()
    inner = Remote.read

    def read(self, name, start, nbytes):
        found[name, start, nbytes] += 1
        return inner(self, name, start, nbytes)

    monkeypatch.setattr(Remote, "read", read)
    return found


def test_threads_fetch_no_byte_of_an_object_store_twice(stored, reads):
    rows = ScatteredRows(stored, 1 << 20)
    leaf = stored.leaf(("k",))
    for file in stored.files[:]:
        assert file.metadata.num_rows  # footers are there before
    reads.clear()
    found = [None] * 4

    def work(number):
        found[number] = payloads(rows, stored, ORDER), rows.numbers(leaf, ORDER, -5).tolist()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 4
    assert set(reads.values()) <= {1}


def test_an_error_of_one_thread_is_that_of_all_who_wait_and_the_next_tries_again(
    stored, monkeypatch
):
    rows = ScatteredRows(stored, 1 << 20)
    started, go = threading.Event(), threading.Event()
    said = []

    def fails():
        started.set()
        go.wait(20)
        raise OSError("the store is away")

    def ask(work):
        try:
            said.append(rows._single((0, 0, "x"), work))
        except OSError as error:
            said.append(str(error))

    first = threading.Thread(target=ask, args=(fails,))
    first.start()
    assert started.wait(20)
    second = threading.Thread(target=ask, args=(lambda: "not asked",))
    second.start()
    while second.is_alive() and not rows._coming[0, 0, "x"]._condition._waiters:
        pass  # it waits for the first
    go.set()
    first.join()
    second.join()
    assert said == ["the store is away"] * 2
    ask(lambda: "there")
    assert said[-1] == "there"
