"""Parts of files that were read by ranges: what lies outside of them is not there."""

import os
import threading

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store.ranges import Part, PartFile, Remote, joined, overlapped
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.threads import IO_THREADS

PART = Part(pa.py_buffer(b"abcdef"), 10)


@pytest.mark.parametrize(("start", "nbytes"), [(9, 2), (15, 2), (16, 1), (12, 100), (12, -1)])
@pytest.mark.parametrize("part", [PART, joined([PART, Part(pa.py_buffer(b"xy"), 30)])])
def test_bytes_beside_a_part_are_refused(part, start, nbytes):
    """A buffer of Arrow gives fewer bytes than it is asked for."""
    assert not part.has(start, start + nbytes)
    with pytest.raises(tl.CorruptDataError, match="lie outside"):
        part.slice(start, nbytes)


def test_what_is_in_a_part_is_found():
    assert PART.slice(10, 6).to_pybytes() == b"abcdef"
    assert PART.slice(16, 0).to_pybytes() == b""
    two = joined([PART, Part(pa.py_buffer(b"xy"), 30)])
    assert (two.slice(14, 2).to_pybytes(), two.slice(30, 2).to_pybytes()) == (b"ef", b"xy")
    assert not two.has(14, 31)
    file = PartFile(PART)
    assert (file.seek(-2, os.SEEK_END), file.read(2).to_pybytes(), file.tell()) == (14, b"ef", 16)


def test_a_file_that_ends_early_is_corrupt(tmp_path):
    (tmp_path / "part.bin").write_bytes(b"abcdef")
    remote = Remote(Storage(str(tmp_path)), {"part.bin": 9})
    assert remote.read("part.bin", 4, 2).to_pybytes() == b"ef"
    with pytest.raises(tl.CorruptDataError, match="ends after 6 bytes"):
        remote.read("part.bin", 4, 5)


def test_no_more_is_fetched_ahead_than_there_are_threads_for_it():
    """What has come and waits takes memory."""
    lock = threading.Lock()
    begun = ended = most = 0

    def fetch(_):
        nonlocal begun, most
        with lock:
            begun += 1
            most = max(most, begun - ended)
        return PART

    for _ in overlapped(range(3 * IO_THREADS), fetch, lambda job, part: job):
        with lock:
            ended += 1
    assert begun == ended == 3 * IO_THREADS
    assert most <= IO_THREADS
