"""Memory for large arrays that goes back to the system at once."""

import mmap

import numpy as np
import pytest

from tensorlake_spark.own_memory import LEAST, empty_bytes, is_own


@pytest.mark.parametrize("nbytes", [0, 1, LEAST - 1, LEAST, LEAST + 1, 5 << 20])
def test_it_is_writable_and_as_long_as_was_asked_for(nbytes):
    found = empty_bytes(nbytes)
    found[:] = 7
    assert found.dtype == np.uint8
    assert int(found.sum()) == 7 * nbytes
    assert is_own(found[:])


def test_large_memory_is_a_map_that_ends_with_its_last_array():
    found = empty_bytes(4 << 20)
    memory = found.base.obj
    assert isinstance(memory, mmap.mmap)
    part = found[10:20]
    del found
    with pytest.raises(BufferError):  # somebody has a part of it
        memory.close()
    del part
    memory.close()


def test_what_others_have_is_not_own():
    assert not is_own(np.frombuffer(bytearray(100), np.uint8)[:50])
    assert not is_own(np.zeros(5))


def test_what_no_machine_has_is_a_memory_error():
    with pytest.raises(MemoryError):
        empty_bytes(1 << 60)
