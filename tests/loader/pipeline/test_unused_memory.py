"""Memory that was freed goes back to the system."""

import builtins
import sys

import numpy as np
import pytest

from tensorlake_spark.loader.pipeline import unused_memory
from tensorlake_spark.loader.pipeline.unused_memory import (
    UnusedMemory,
    give_back_unused,
    resident_bytes,
)


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others do not say it")
def test_what_lies_between_arrays_that_stay_is_given_back():
    arrays = [np.ones(12_000, np.uint8) for _ in range(8_000)]  # 96 MB, too small for maps
    kept = arrays[::20]
    del arrays
    before = resident()
    give_back_unused()
    assert before - resident() > 30 << 20
    assert all(array.all() for array in kept)


def test_it_is_given_back_again_only_once_the_process_has_grown(monkeypatch):
    """What was given back has to be asked for page by page."""
    sizes, given = [], []
    monkeypatch.setattr(unused_memory, "resident_bytes", lambda: sizes.pop(0) << 20)
    monkeypatch.setattr(unused_memory, "give_back_unused", lambda: given.append(len(sizes)))
    unused = UnusedMemory()
    sizes += [100, 90]  # before and after
    assert unused.give_back()
    sizes += [97, 80, 87]  # the least counts
    assert [unused.give_back() for _ in range(3)] == [False] * 3
    sizes += [88, 85]
    assert unused.give_back()
    assert (len(given), sizes) == (2, [])


def test_it_is_always_given_back_where_nobody_knows_whether_the_process_has_grown(monkeypatch):
    given = []
    monkeypatch.setattr(unused_memory, "resident_bytes", lambda: None)
    monkeypatch.setattr(unused_memory, "give_back_unused", lambda: given.append(1))
    unused = UnusedMemory()
    assert [unused.give_back() for _ in range(3)] == [True] * 3
    assert len(given) == 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others do not say it")
def test_what_the_process_has_counts_without_files_that_are_mapped(tmp_path):
    before = resident_bytes()
    array = np.ones(40 << 20, np.uint8)
    assert 35 << 20 < resident_bytes() - before < 60 << 20
    array.tofile(tmp_path / "file")
    before = resident_bytes()
    mapped = np.memmap(tmp_path / "file", np.uint8, "r")
    assert int(mapped.sum()) == len(array)
    assert resident_bytes() - before < 8 << 20


def test_a_system_without_such_a_file_does_not_say_it(monkeypatch):
    def refuse(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", refuse)
    assert resident_bytes() is None
