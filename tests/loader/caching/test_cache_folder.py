"""The folder of a cache: its locks, and how many bytes are counted in it."""

import fcntl
import os
import threading
import time
from types import SimpleNamespace

import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.caching.cache_folder import MARK, CacheFolder


@pytest.fixture
def folder(tmp_path):
    return CacheFolder(tmp_path / "cache", 1000)


def counted(folder):
    return int((folder.path / "locks" / "size").read_text())


def put(folder, size, name):
    file, path = folder.begin(size)
    os.close(file)
    where = folder.file(name)
    os.makedirs(os.path.dirname(where), exist_ok=True)
    os.replace(path, where)


def test_it_has_a_mark(folder):
    assert (folder.path / MARK).is_file()


def test_it_is_made_with_the_folders_above_it_and_begins_empty(tmp_path):
    CacheFolder(tmp_path / "a" / "b", 100)
    assert [*(tmp_path / "a" / "b" / "new").iterdir()] == []


def test_one_name_that_is_not_of_a_cache_is_enough_to_refuse_a_folder(tmp_path):
    (tmp_path / "ranges" / "ab").mkdir(parents=True)
    (tmp_path / "ranges" / "letters.txt").write_text("mine")
    with pytest.raises(InvalidOptionError, match="and no cache"):
        CacheFolder(tmp_path, 100)
    (tmp_path / "ranges" / "letters.txt").unlink()
    CacheFolder(tmp_path, 100)  # what is left over of one


def test_a_lock_is_held_by_one(folder):
    with (
        folder.locked("0abc") as first,
        folder.locked("0abc", 0.01) as second,
        folder.locked("0def", 0.01) as other,
    ):
        assert (first, second, other) == (True, False, True)
    with folder.locked("0abc", 0) as again:
        assert again


def test_who_waits_for_a_lock_gets_it(folder):
    got, inside = [], threading.Event()

    def wait():
        inside.set()
        with folder.locked("size", 30) as held:
            got.append(held)

    with folder.locked("size"):
        thread = threading.Thread(target=wait)
        thread.start()
        inside.wait()
        assert got == []
    thread.join()
    assert got == [True]


def test_threads_do_not_sleep_for_each_other(tmp_path, monkeypatch):
    """A store's ranges come at the same time, and the first batch waits for the last one of them."""
    folder, begun = CacheFolder(tmp_path / "cache", 1 << 30), []
    # Not `time.sleep` itself: a thread of py4j may sleep in this process.
    clock = SimpleNamespace(monotonic=time.monotonic)
    monkeypatch.setattr(f"{CacheFolder.__module__}.time", clock)
    threads = [threading.Thread(target=lambda: begun.append(folder.begin(1000))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for file, _ in begun:
        os.close(file)
    assert len(begun) == 16
    assert counted(folder) == 16 * 1000


def test_a_thread_waits_for_another_one_for_some_time(folder):
    got = []

    def wait():
        with folder.locked("size", 0.01) as held:
            got.append(held)

    with folder.locked("size"):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    wait()
    assert got == [False, True]


def test_a_file_that_is_begun_counts_with_its_whole_size(folder):
    file, path = folder.begin(400)
    assert os.path.getsize(path) == 400
    assert counted(folder) == 400
    assert counted(CacheFolder(folder.path, 1000)) == 400  # somebody holds it
    os.close(file)
    assert counted(CacheFolder(folder.path, 1000)) == 0  # nobody does: it went
    assert not os.path.exists(path)


def test_room_is_made_by_what_was_not_used_for_longest(folder):
    for number in range(3):
        put(folder, 300, f"0{number}")
        os.utime(folder.file(f"0{number}"), (number, number))
    os.utime(folder.file("00"), (9, 9))
    os.close(folder.begin(300)[0])
    left = [name for name in ("00", "01", "02") if os.path.exists(folder.file(name))]
    assert left == ["00", "02"]
    assert counted(folder) == 900


def test_a_smaller_size_holds_for_what_is_there(folder):
    for number, name in enumerate(("0abc", "0def", "0fff")):
        put(folder, 300, name)
        os.utime(folder.file(name), (number, number))
    assert counted(CacheFolder(folder.path, 900)) == 900
    assert counted(CacheFolder(folder.path, 700)) == 600
    assert not os.path.exists(folder.file("0abc"))
    assert os.path.exists(folder.file("0fff"))


@pytest.mark.parametrize("text", ["", "many", "-5"])
def test_a_count_that_was_lost_is_made_again(folder, text):
    put(folder, 300, "00")
    (folder.path / "locks" / "size").write_text(text)
    put(folder, 300, "01")
    assert counted(folder) == 600


def test_who_cannot_have_the_folder_keeps_nothing(folder, monkeypatch):
    lock = os.open(folder.path / "locks" / "size", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    wait = folder.locked
    monkeypatch.setattr(folder, "locked", lambda name: wait(name, 0.01))
    assert folder.begin(10) is None
    os.close(lock)
