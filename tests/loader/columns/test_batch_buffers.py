"""Memory that is used again, and never while somebody holds it."""

import gc
import mmap

import numpy as np

from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers

SIZE = 2 << 20


def test_memory_is_used_again_when_nobody_holds_it():
    buffers = BatchBuffers(16 << 20)
    first = buffers.array((SIZE,), "u1")
    address = first.ctypes.data
    second = buffers.array((SIZE,), "u1")
    assert second.ctypes.data != address
    del first
    gc.collect()
    assert buffers.array((SIZE // 4,), "f4").ctypes.data == address


def test_a_view_of_a_view_keeps_it():
    buffers = BatchBuffers(16 << 20)
    held = memoryview(buffers.array((2, SIZE // 2), "u1")[1, ::2])
    address = np.asarray(held).ctypes.data
    for _ in range(5):
        other = buffers.array((SIZE,), "u1")
        other[:] = 7
        assert not other.ctypes.data <= address < other.ctypes.data + SIZE
        del other


def test_small_ones_and_objects_are_new():
    buffers = BatchBuffers(1 << 20)
    assert buffers.array((3, 4), "i2").shape == (3, 4)
    assert buffers.array((5,), object).dtype == object


def test_memory_that_is_not_in_use_is_given_back():
    buffers = BatchBuffers(4 << 20)
    for step in range(1, 6):
        buffers.array((step * SIZE,), "u1")
        gc.collect()
    assert sum(memory.nbytes for memory in buffers._kept) <= 5 * SIZE * 1.2 + (4 << 20)
    assert len(buffers._kept) <= 2


def test_smaller_ones_are_kept_where_that_is_wanted():
    buffers = BatchBuffers(16 << 20, least=1 << 10)
    first = buffers.bytes(5000)
    first[:] = 3
    address = first.ctypes.data
    held = memoryview(first)[10:20]
    del first
    assert buffers.bytes(5000).ctypes.data != address
    assert bytes(held) == b"\3" * 10
    del held
    gc.collect()
    assert buffers.bytes(4000).ctypes.data == address
    assert buffers.bytes(0).shape == (0,)


def test_bytes_that_need_most_of_it_are_not_kept():
    """They go back to the system as soon as nobody holds them."""
    buffers = BatchBuffers(4 << 20)
    assert isinstance(buffers.bytes((2 << 20) + 1).base.obj, mmap.mmap)
    assert not buffers._kept
    assert len(buffers.bytes(2 << 20)) == 2 << 20
    assert len(buffers._kept) == 1
