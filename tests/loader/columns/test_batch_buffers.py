"""Memory that is used again, and never while somebody holds it."""

import gc

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
