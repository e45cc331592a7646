"""Ranges of a store: asked for once, kept within a bound, and right whoever asks for which part."""

import threading

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.delta.store.ranges import ANY_SIZE, Remote
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.loader.caching.range_cache import RangeCache
from tensorlake_spark.loader.sources.remote_ranges import RemoteRanges

DATA = np.random.default_rng(0).bytes(10_000)


@pytest.fixture
def remote(s3):
    """A file in a store."""
    storage = Storage("s3://bucket/remote-ranges", s3.options)
    filesystem, base = storage.place
    filesystem.create_dir(base)
    with filesystem.open_output_stream(f"{base}/data") as file:
        file.write(DATA)
    return Asked(storage, {"data": len(DATA)})


class Asked(Remote):
    """Writes down what it is asked for."""

    def __init__(self, storage, sizes):
        super().__init__(storage, sizes)
        self.asked = []

    def read(self, name, start, nbytes):
        self.asked.append((start, nbytes))
        return super().read(name, start, nbytes)


def whole(buffer):
    return memoryview(buffer).tobytes()


def test_a_range_is_asked_for_once(remote):
    ranges = RemoteRanges(1 << 20)
    kept = ranges.over(remote)
    for _ in range(2):
        assert whole(kept.read("data", 10, 90)) == DATA[10:100]
    with ranges.hold([(kept, "data", 10, 90), (kept, "data", 500, 50)]) as held:
        assert (held.hits, held.misses) == (1, 1)
        assert whole(kept.read("data", 510, 20)) == DATA[510:530]  # inside of one that is kept
    assert sorted(remote.asked) == [(10, 90), (500, 50)]
    assert ranges.nbytes == 140
    assert kept.is_kept
    assert not remote.is_kept


def test_many_threads_ask_for_the_same(remote):
    ranges = RemoteRanges(1 << 20)
    kept = ranges.over(remote)
    found = []

    def ask():
        with ranges.hold([(kept, "data", 100 * k, 100) for k in range(20)]):
            found.append(whole(kept.read("data", 300, 100)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [DATA[300:400]] * 8
    assert sorted(remote.asked) == [(100 * k, 100) for k in range(20)]


def test_what_is_kept_is_bounded(remote):
    ranges = RemoteRanges(1000)
    kept = ranges.over(remote)
    for k in range(30):
        with ranges.hold([(kept, "data", 300 * k, 300)]):
            assert ranges.nbytes <= 1000
    kept.read("data", 300 * 29, 300)
    assert len(remote.asked) == 30  # the last ones are there
    kept.read("data", 0, 300)
    assert len(remote.asked) == 31  # the first ones are not


def test_what_has_room_for_all_files_stays(remote):
    ranges = RemoteRanges(25_000)
    kept = ranges.over(remote)
    assert ranges.over(remote).stays  # the same files are counted once
    assert not RemoteRanges(len(DATA) - 1).over(remote).stays
    inner = Storage("s3://bucket/remote-ranges/inner", remote.storage.options)
    more = ranges.over(Remote(inner, {"data": 15_001, "log": ANY_SIZE}))  # opened later
    assert not kept.stays
    assert not more.stays
    assert not remote.stays


def test_held_ranges_wait_for_each_other(remote):
    ranges = RemoteRanges(1000)
    kept = ranges.over(remote)
    most = []

    def ask(k):
        with ranges.hold([(kept, "data", 1000 * k + 100 * j, 100) for j in range(6)]):
            most.append(ranges._held)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 1000
    assert ranges._held == 0


def test_one_batch_may_need_more_than_is_kept(remote):
    ranges = RemoteRanges(100)
    kept = ranges.over(remote)
    with ranges.hold([(kept, "data", 0, 5000)]):
        assert whole(kept.read("data", 4000, 100)) == DATA[4000:4100]
    assert ranges.nbytes <= 100
    assert len(remote.asked) == 1


def test_an_error_is_not_kept(remote):
    ranges = RemoteRanges(1 << 20)
    kept = ranges.over(remote)
    for _ in range(2):
        with pytest.raises(OSError), ranges.hold([(kept, "gone", 0, 10)]):
            raise AssertionError("nothing is there")
    with pytest.raises(OSError):
        kept.read("gone", 0, 10)
    assert ranges.nbytes == 0
    assert len(remote.asked) == 3


def test_a_cache_on_disk_is_asked_first(remote, tmp_path):
    cache = RangeCache(tmp_path / "cache", 1 << 20)
    for hits, misses in ((0, 1), (1, 0)):
        ranges = RemoteRanges(1 << 20, cache)
        kept = ranges.over(remote)
        with ranges.hold([(kept, "data", 0, 700)]) as held:
            assert (held.hits, held.misses) == (hits, misses)
        found = kept.read("data", 0, 700)
        assert isinstance(found, pa.Buffer)
        assert whole(found) == DATA[:700]
    assert len(remote.asked) == 1
