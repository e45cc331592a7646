"""Batches that go from one process to another."""

import multiprocessing
import os
import threading

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.pipeline.shared_batch import IS_SHARED, receive_batch, send_batch

BATCHES = [
    {},
    {"label": np.arange(3), "text": ["a", None, "b"]},
    {"x": np.random.default_rng(0).random((64, 50, 50)), "label": np.arange(64, dtype="u1")},
    {"x": [np.zeros((k, 9000)) + k for k in range(9)], "none": np.zeros((0, 5))},
    [np.asfortranarray(np.arange(60_000.0).reshape(300, 200)), 3.5],
]


def sent(batch, **options):
    here, there = multiprocessing.Pipe()
    with here, there:
        thread = threading.Thread(target=send_batch, args=(there, "head", batch), kwargs=options)
        thread.start()
        found = receive_batch(here)
        thread.join()
    return found


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_same([*found.values()], [*expected.values()])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("batch", BATCHES, ids=range(len(BATCHES)))
@pytest.mark.parametrize("shared", sorted({False, IS_SHARED}))
def test_it_comes_as_it_went(batch, shared):
    head, found, nbytes = sent(batch, shared=shared)
    assert head == "head"
    assert_same(found, batch)
    assert nbytes < 10 << 20


def test_arrays_can_be_written():
    _, found, _ = sent(BATCHES[2])
    found["x"][:] = 1
    assert found["x"].sum() == 64 * 2500


def test_a_sparse_tensor():
    given = tl.SparseTensor.from_dense(np.eye(200))
    _, found, _ = sent({"x": given})
    assert found["x"].equals(given)


def test_memory_goes_with_the_last_array():
    def mapped():
        with open("/proc/self/maps") as maps:
            return sum("tensorlake-batch" in line for line in maps)

    def files():
        return len(os.listdir("/proc/self/fd"))

    before = files()
    _, found, _ = sent(BATCHES[2])
    assert mapped() == (1 if IS_SHARED else 0)
    assert files() == before + (1 if IS_SHARED else 0)  # the map has its own
    part = found["x"][3:5]
    del found
    np.testing.assert_array_equal(part, BATCHES[2]["x"][3:5])
    del part
    assert mapped() == 0
    assert files() == before


def test_who_sends_has_ended():
    here, there = multiprocessing.Pipe()
    there.close()
    with here, pytest.raises(EOFError):
        receive_batch(here)
