"""Maps of data files are kept while the files are what was mapped."""

import gc
import mmap
import os
from collections import OrderedDict
from pathlib import Path

import pytest

from tensorlake_spark.delta.store.memory_maps import mapped_files
from tensorlake_spark.delta.store.memory_maps.mapped_files import MappedFiles
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture
def storage(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode() * 100)
    return Storage(str(tmp_path))


@pytest.mark.parametrize("size", [0, 1, mmap.PAGESIZE, 40 * mmap.PAGESIZE + 5])
def test_a_map_has_all_of_a_file_for_as_long_as_a_part_of_it_is_there(tmp_path, size):
    data = bytes(k % 251 for k in range(size))
    (tmp_path / "c").write_bytes(data)
    mapped = Storage(str(tmp_path)).map_file("c")
    assert (mapped.size, mapped.is_mutable, mapped.to_pybytes()) == (size, False, data)
    part = mapped.slice(size // 2)
    (tmp_path / "c").unlink()
    del mapped
    gc.collect()
    assert part.to_pybytes() == data[size // 2 :]


def test_a_file_is_mapped_once(storage):
    maps = MappedFiles()
    assert maps.map(storage, "a") is maps.map(storage, "a")
    assert maps.map(storage, "b").to_pybytes() == b"b" * 100


@pytest.mark.parametrize("content", [b"short", b"c" * 100])
def test_a_file_that_is_another_one_now_is_mapped_anew(storage, tmp_path, content):
    maps = MappedFiles()
    before = maps.map(storage, "a")
    (tmp_path / "new").write_bytes(content)
    os.replace(tmp_path / "new", tmp_path / "a")
    assert maps.map(storage, "a").to_pybytes() == content
    assert before.to_pybytes() == b"a" * 100


def test_a_file_that_is_gone_is_an_error(storage, tmp_path):
    maps = MappedFiles()
    maps.map(storage, "a")
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        maps.map(storage, "a")


def test_files_that_were_read_long_ago_are_let_go(storage, monkeypatch):
    monkeypatch.setattr(mapped_files, "_FILES", 1)
    maps = MappedFiles(150)
    first, second = maps.map(storage, "a"), maps.map(storage, "b")
    assert maps.map(storage, "b") is second
    assert maps.map(storage, "a") is not first
    maps = MappedFiles(50)
    assert maps.map(storage, "b") is not maps.map(storage, "b"), "too large to be kept"


def test_many_small_files_are_let_go_one_by_one(storage, tmp_path, monkeypatch):
    """A process has few maps, and to look at all files for each new one takes quadratic time."""

    class Counted(OrderedDict):
        looked = 0

        def __reversed__(self):
            for one in super().__reversed__():
                Counted.looked += 1
                yield one

        def items(self):
            Counted.looked += len(self)
            return super().items()

    monkeypatch.setattr(mapped_files, "_FILES", 2)
    monkeypatch.setattr(mapped_files, "_MANY", 50)
    monkeypatch.setattr(mapped_files, "OrderedDict", Counted)
    maps = MappedFiles()
    for number in range(100):
        (tmp_path / str(number)).write_bytes(b"x")
    first = maps.map(storage, "0")
    held = [maps.map(storage, str(number)) for number in range(1, 100)]
    assert Counted.looked == 0
    assert maps.map(storage, "99") is held[-1]
    assert maps.map(storage, "50") is held[49]
    assert maps.map(storage, "0") is not first


def test_a_file_that_is_mapped_anew_counts_once(storage, tmp_path):
    maps = MappedFiles(250)
    kept = maps.map(storage, "b")
    for number in range(3):
        os.utime(tmp_path / "a", ns=(number, number))
        maps.map(storage, "a")
    assert maps._nbytes == 200
    assert maps.map(storage, "b") is kept


def test_files_stay_mapped_but_their_pages_do_not_count(storage, tmp_path):
    """What was read may point into a map, so one that is forgotten would keep its pages."""
    size = 64 * mmap.PAGESIZE
    for name in "xyz":
        (tmp_path / name).write_bytes(name.encode() * size)
    maps = MappedFiles(size)
    first = maps.map(storage, "x")
    assert first.to_pybytes() == b"x" * size
    assert resident(first) == size
    last = maps.map(storage, "y")
    assert resident(first) == 0
    assert first.to_pybytes() == b"x" * size
    assert maps.map(storage, "x") is first
    assert maps.map(storage, "z") is not None
    assert last.to_pybytes() == b"y" * size
    maps.give_back()
    assert resident(first) == resident(last) == 0


def resident(buffer):
    """Return the bytes of a map that count as memory of this process."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    _ = next(
        line for line in lines if line.startswith(f"{buffer.address:x}-")
    )  # the others are behind
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Rss:"))


def test_pages_are_given_back_and_the_maps_stay(storage):
    maps = MappedFiles()
    before = maps.map(storage, "a")
    maps.give_back()
    assert maps.map(storage, "a") is before
    assert before.to_pybytes() == b"a" * 100
