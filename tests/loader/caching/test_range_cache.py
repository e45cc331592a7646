"""Ranges on a local disk: kept, checked, bounded, shared by threads and processes, whatever dies."""

import contextlib
import os
import pickle
import resource
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import cache_user
import pytest
from cache_user import SIZE, content, key
from places import ROOT

from tensorlake_spark.errors import InvalidOptionError, StorageError
from tensorlake_spark.loader.caching.cache_folder import CacheFolder
from tensorlake_spark.loader.caching.range_cache import RangeCache

USER = Path(cache_user.__file__)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


class Fetch:
    """Gives ranges and counts them."""

    def __init__(self):
        self.numbers = []

    def __call__(self, number):
        return lambda: self.numbers.append(number) or content(number)


def files(folder):
    return [f for part in ("ranges", "new") for f in (folder / part).rglob("*") if f.is_file()]


def held(folder):
    return sum(f.stat().st_size for f in files(folder))


def start(folder, most, log, action):
    return subprocess.Popen(
        [sys.executable, USER, folder, str(most), log, action], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def ended(process):
    out, problem = process.communicate(timeout=120)
    assert process.returncode == 0, problem[-2000:]
    return [*map(int, out.split())]


# ------------------------------------------------------------------------------ one process


def test_no_file_stays_open(folder):
    cache, fetch = RangeCache(folder, 20 * SIZE), Fetch()
    opened = os.listdir("/proc/self/fd")
    for number in (*range(30), 1):  # more than there is room for
        assert bytes(cache.get(key(number), fetch(number))) == content(number)
    assert len(os.listdir("/proc/self/fd")) == len(opened)


def test_a_range_is_fetched_once(folder):
    cache, fetch = RangeCache(folder, 10**6), Fetch()
    for _ in range(3):
        data = cache.get(key(7), fetch(7))
        assert isinstance(data, memoryview)
        assert bytes(data) == content(7)
    assert fetch.numbers == [7]
    assert (cache.hits, cache.misses, cache.wrong) == (2, 1, 0)


def test_another_object_of_the_same_folder_has_it(folder):
    RangeCache(folder, 10**6).get(key(7), lambda: content(7))
    again = pickle.loads(pickle.dumps(RangeCache(folder, 10**6)))
    assert bytes(again.get(key(7), Fetch()(0))) == content(7)
    assert (again.hits, again.misses) == (1, 0)


def test_every_part_of_the_key_counts(folder):
    cache = RangeCache(folder, 10**6)
    keys = [
        ("a", "b", 1, 2),
        ("ab", "", 1, 2),
        ("a", "b", 12, 2),
        ("a", "b", 1, 3),
        ("a", "c", 1, 2),
        ("c", "b", 1, 2),
    ]
    for number, one in enumerate(keys):
        cache.get(one, lambda number=number, one=one: bytes([number]) * one[3])
    assert [cache.get(one, None)[0] for one in keys] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_ranges_of_every_size(folder, size):
    cache, data = RangeCache(folder, 10**7), os.urandom(size)
    for given in (data, memoryview(data), bytearray(data)):
        assert bytes(cache.get(("t", "f", 0, size), lambda given=given: given)) == data
    assert cache.hits == 2


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="/proc")
def test_what_was_just_fetched_does_not_stay_in_memory(folder):
    """A large range is mapped at once; a small one costs less than a map."""
    cache, large, small = RangeCache(folder, 10**7), os.urandom(1 << 20), os.urandom(1000)
    found = [cache.get(("t", "f", 0, len(data)), lambda data=data: data) for data in (large, small)]
    assert [*map(bytes, found)] == [large, small]
    assert Path("/proc/self/maps").read_text().count(str(folder)) == 1
    assert (cache.hits, cache.misses) == (0, 2)


def test_what_was_not_used_for_longest_goes(folder):
    cache, fetch = RangeCache(folder, 10 * SIZE), Fetch()
    for number in range(30):
        cache.get(key(number), fetch(number))
        cache.get(key(0), fetch(0))
        assert held(folder) <= 10 * SIZE
    assert fetch.numbers == [*range(30)]
    cache.get(key(29), fetch(29))
    cache.get(key(1), fetch(1))
    assert fetch.numbers == [*range(30), 1]


def test_what_is_larger_than_the_cache_goes_through(folder):
    cache, fetch = RangeCache(folder, SIZE), Fetch()
    for _ in range(2):
        assert bytes(cache.get(key(1), fetch(1))) == content(1)
    assert (fetch.numbers, files(folder)) == ([1, 1], [])


def test_a_smaller_size_than_before_makes_room(folder):
    cache = RangeCache(folder, 100 * SIZE)
    for number in range(20):
        cache.get(key(number), lambda number=number: content(number))
    smaller = RangeCache(folder, 5 * SIZE)
    smaller.get(key(99), lambda: content(99))
    assert 0 < held(folder) <= 5 * SIZE


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1] + b"?", lambda data: b"?" + data[1:], lambda data: data[:-1], lambda data: data + b"?",
        lambda data: b"", lambda data: data[:10],
    ],
)  # fmt: skip
def test_what_is_damaged_is_fetched_again_and_counted(folder, damage):
    cache, fetch = RangeCache(folder, 10**6), Fetch()
    cache.get(key(3), fetch(3))
    (file,) = files(folder)
    file.write_bytes(damage(file.read_bytes()))
    for _ in range(2):
        assert bytes(cache.get(key(3), fetch(3))) == content(3)
    assert (cache.hits, cache.misses, cache.wrong) == (1, 2, 1)


LARGE = ("s3://bucket/table", "large", 0, 300_000)
LARGE_DATA = bytes(range(250)) * 1_200


def test_a_large_range_is_mapped_and_stays_what_it_was(folder):
    """Its memory is the system's cache of the file: what is evicted from the folder can still be read."""
    cache = RangeCache(folder, 10**6)
    assert cache.known(LARGE) is None
    cache.get(LARGE, lambda: LARGE_DATA)
    found = cache.get(LARGE, Fetch()(0))
    with Path("/proc/self/maps").open() as maps:
        assert any(str(files(folder)[0]) in line for line in maps)
    assert bytes(cache.known(LARGE)) == LARGE_DATA
    (path,) = files(folder)
    path.unlink()
    assert bytes(found) == LARGE_DATA
    assert cache.known(LARGE) is None


@pytest.mark.parametrize(("where", "data"), [(key(7), content(7)), (LARGE, LARGE_DATA)])
def test_a_file_that_was_changed_since_it_was_checked_is_checked_again(folder, where, data):
    cache = RangeCache(folder, 10**6)
    cache.get(where, lambda: data)
    assert bytes(cache.get(where, lambda: b"")) == data
    (path,) = files(folder)
    changed = path.stat().st_mtime_ns
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read()
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    assert path.stat().st_mtime_ns != changed
    assert bytes(cache.get(where, lambda: data)) == data
    assert (cache.misses, cache.wrong) == (2, 1)


def test_its_use_does_not_change_the_time_of_its_writing(folder):
    cache = RangeCache(folder, 10**6)
    cache.get(LARGE, lambda: LARGE_DATA)
    (path,) = files(folder)
    os.utime(path, ns=(5 * 10**9, 7 * 10**9))
    cache.get(LARGE, lambda: LARGE_DATA)
    assert path.stat().st_mtime_ns == 7 * 10**9
    assert path.stat().st_atime_ns > 7 * 10**9


def test_what_fetching_raises_is_raised_and_nothing_is_kept(folder):
    cache = RangeCache(folder, 10**6)

    def fails():
        raise TimeoutError("no answer")

    for _ in range(2):
        with pytest.raises(TimeoutError, match="no answer"):
            cache.get(key(1), fails)
    assert bytes(cache.get(key(1), lambda: content(1))) == content(1)


def test_fewer_bytes_than_were_asked_for_are_an_error(folder):
    cache = RangeCache(folder, 10**6)
    with pytest.raises(StorageError, match=r"19999 bytes came .*, not 20000"):
        cache.get(key(1), lambda: content(1)[1:])
    assert not files(folder)


def test_threads_fetch_a_range_once(folder):
    cache, fetch, gate = RangeCache(folder, 10**6), Fetch(), threading.Barrier(8)
    found = []

    def work():
        gate.wait()
        for number in range(10):
            found.append(bytes(cache.get(key(number), fetch(number))) == content(number))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found)
    assert len(found) == 80
    assert sorted(fetch.numbers) == [*range(10)]
    assert (cache.misses, cache.hits) == (10, 70)


def test_a_folder_that_is_emptied_goes_on(folder):
    cache = RangeCache(folder, 10**6)
    cache.get(key(1), lambda: content(1))
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for number in (1, 2):
        assert bytes(cache.get(key(number), lambda number=number: content(number))) == content(
            number
        )
    assert RangeCache(folder, 10**6).get(key(1), lambda: content(1)) == content(1)


@pytest.mark.parametrize("left", [("locks",), ("locks", "new"), ("locks", "new", "ranges")])
def test_a_folder_that_was_half_deleted_while_it_was_used_goes_on(folder, left):
    """The mark went, and a lock or a range was made anew before its folder was deleted."""
    cache = RangeCache(folder, 10**6)
    cache.get(key(1), lambda: content(1))
    (folder / "tensorlake-cache.txt").unlink()
    for name in {"locks", "new", "ranges"} - {*left}:
        shutil.rmtree(folder / name)
    for number in (2, 3):
        found = cache.get(key(number), lambda number=number: content(number))
        assert bytes(found) == content(number)
    assert cache.is_on
    (folder / "tensorlake-cache.txt").unlink(missing_ok=True)
    again = RangeCache(folder, 10**6)
    assert (folder / "tensorlake-cache.txt").exists()
    assert again.get(key(3), lambda: content(3)) == content(3)
    assert again.hits == 1


@pytest.mark.parametrize("name", ["new/weights.bin", "locks/note", "ranges/photos/1.jpg", "new"])
def test_folders_of_others_that_have_such_names_are_refused(folder, name):
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("mine")
    with pytest.raises(InvalidOptionError, match="and no cache; name a folder that is empty"):
        RangeCache(folder, 10**6)
    assert (folder / name).read_text() == "mine"


def test_a_folder_that_becomes_one_of_other_things_ends_the_cache_not_the_epoch(folder):
    cache = RangeCache(folder, 10**6)
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.warns(RuntimeWarning, match=r"takes no more: .*'notes.txt' in it, and no cache"):
        assert bytes(cache.get(key(1), lambda: content(1))) == content(1)
    assert not cache.is_on
    assert bytes(cache.get(key(1), lambda: content(1))) == content(1)
    assert os.listdir(folder) == ["notes.txt"]


def test_only_its_user_may_read_it(folder):
    RangeCache(folder, 10**6).get(key(1), lambda: content(1))
    assert folder.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in files(folder))


# ------------------------------------------------------------------------------ several processes


def test_processes_share_what_they_fetch(folder, tmp_path):
    log = tmp_path / "log"
    users = [start(folder, 10**7, log, "read") for _ in range(3)]
    counts = [ended(user) for user in users]
    assert sorted(map(int, log.read_text().split())) == [*range(20)]
    assert [sum(column) for column in zip(*counts)] == [40, 20, 0]


def test_processes_stay_within_the_size_together(folder, tmp_path):
    users = [start(folder, 6 * SIZE, tmp_path / "log", "read") for _ in range(3)]
    seen = []
    while any(user.poll() is None for user in users):
        if (folder / "locks").exists():
            seen.append(_held_now(folder, 6 * SIZE))
    assert [sum(ended(user)[:2]) for user in users] == [20, 20, 20]
    assert max(seen) <= 6 * SIZE
    assert 0 < held(folder) <= 6 * SIZE


def _held_now(folder, most):
    """What is in the folder while nothing is begun or deleted; a file that gets its name meanwhile is not seen twice."""
    total = 0
    with CacheFolder(folder, most).locked("size"):
        for part in ("ranges", "new"):
            for path in (folder / part).rglob("*"):
                with contextlib.suppress(FileNotFoundError):
                    total += path.stat().st_size if path.is_file() else 0
    return total


def test_a_process_that_is_killed_while_it_fetches_leaves_no_lock(folder, tmp_path):
    user = start(folder, 10**7, tmp_path / "log", "hang")
    assert user.stdout.readline() == "fetching\n"
    cache, done = RangeCache(folder, 10**7), []
    waiting = threading.Thread(target=lambda: done.append(cache.get(key(0), lambda: content(0))))
    waiting.start()
    user.kill()
    user.communicate()
    waiting.join(60)
    assert bytes(done[0]) == content(0)
    assert cache.misses == 1


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_half(folder, tmp_path):
    user = start(folder, 10**7, tmp_path / "log", "tear")
    user.communicate(timeout=60)
    assert user.returncode == -9
    assert [f.parent.name for f in files(folder)].count("new") == 1
    again = start(folder, 10**7, tmp_path / "log2", "read")
    assert ended(again) == [2, 18, 0]
    assert [*(folder / "new").iterdir()] == []
    assert held(folder) == int((folder / "locks" / "size").read_text())


# ------------------------------------------------------------------------------ disks and folders


@pytest.fixture
def small_files():
    """Files may have 30,000 bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_warning_once_and_reading_goes_on(folder, small_files):
    cache, size, fetch = RangeCache(folder, 10**7), 50_000, Fetch()
    cache.get(key(1), fetch(1))
    with pytest.warns(RuntimeWarning, match="takes no more: File too large.* Free space") as caught:
        assert bytes(cache.get(("t", "f", 0, size), lambda: b"x" * size)) == b"x" * size
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in (1, 2, 3):
            assert bytes(cache.get(key(number), fetch(number))) == content(number)
        cache.get(("t", "f", 0, size), lambda: b"x" * size)
    assert fetch.numbers == [1, 2, 3]  # what is there is still read
    assert len(files(folder)) == 1


@pytest.mark.parametrize("name", ["photo.jpg", "tensorlake-cache.txt.bak", "sub/photo.jpg"])
def test_a_folder_of_somebody_else_is_refused(folder, name):
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("mine")
    with pytest.raises(
        InvalidOptionError, match=r"in it, and no cache; name a folder that is empty"
    ):
        RangeCache(folder, 10**6)
    assert [f.name for f in folder.rglob("*") if f.is_file()] == [Path(name).name]


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
@pytest.mark.parametrize("inside", ["", "ranges"])
def test_a_folder_that_everybody_may_write_is_refused(folder, inside, mode):
    """Who may write it may put there what passes for a range, checksum and all."""
    RangeCache(folder, 10**6).get(key(1), lambda: content(1))
    (folder / inside).chmod(mode)
    with pytest.raises(InvalidOptionError, match=rf"mode is {mode & 0o777:o}.* \(chmod o-w\)"):
        RangeCache(folder, 10**6)
    (folder / inside).chmod(mode & ~0o022)
    assert bytes(RangeCache(folder, 10**6).get(key(1), lambda: b"")) == content(1)


def test_a_cache_of_another_user_is_refused(folder, monkeypatch):
    RangeCache(folder, 10**6)
    owner = os.geteuid()
    if owner:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    else:  # root's folders are trusted, and root can give them away
        os.chown(folder, 1, -1)
    with pytest.raises(InvalidOptionError, match=rf"belongs to user {owner or 1}, .* of your own"):
        RangeCache(folder, 10**6)


def test_a_folder_that_a_group_may_write_is_taken(folder):
    """Of many users, the group has nobody else in it."""
    folder.mkdir(0o700)
    folder.chmod(0o775)
    assert bytes(RangeCache(folder, 10**6).get(key(1), lambda: content(1))) == content(1)


def test_an_empty_folder_becomes_a_cache(folder):
    folder.mkdir(0o700)
    RangeCache(folder, 10**6)
    RangeCache(folder, 10**6)
    assert "tensorlake_spark" in (folder / "tensorlake-cache.txt").read_text()


def test_a_file_in_place_of_the_folder_says_what_to_do(folder):
    folder.write_text("a file")
    for path in (folder, folder / "inside"):
        with pytest.raises(
            StorageError, match=r"cannot be used: .*; name a folder on a local disk"
        ):
            RangeCache(path, 10**6)


def test_a_folder_that_may_not_be_written_says_what_to_do():
    with pytest.raises(StorageError, match=r"cannot be used: .*; name a folder on a local disk"):
        RangeCache("/proc/tensorlake-cache", 10**6)
