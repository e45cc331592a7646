"""Maps of data files are kept while the files are what was mapped."""

import os

import pytest

from tensorlake_spark.delta.store.mapped_files import MappedFiles
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture
def storage(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode() * 100)
    return Storage(str(tmp_path))


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


def test_files_that_were_read_long_ago_are_let_go(storage):
    maps = MappedFiles(150)
    first, second = maps.map(storage, "a"), maps.map(storage, "b")
    assert maps.map(storage, "b") is second
    assert maps.map(storage, "a") is not first
    maps = MappedFiles(50)
    assert maps.map(storage, "b") is not maps.map(storage, "b"), "too large to be kept"


def test_pages_are_given_back_and_the_maps_stay(storage):
    maps = MappedFiles()
    before = maps.map(storage, "a")
    maps.give_back()
    assert maps.map(storage, "a") is before
    assert before.to_pybytes() == b"a" * 100
