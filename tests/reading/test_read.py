"""Which threads go through the rows of a read."""

import threading

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.ftsf import Ftsf
from tensorlake_spark.reading import read


@pytest.fixture
def seen(monkeypatch):
    """The threads that go through rows."""
    found, decode = set(), Ftsf.decode

    def noted(*args):
        found.add(threading.current_thread())
        return decode(*args)

    monkeypatch.setattr(Ftsf, "decode", noted)
    return found


def test_the_callers_thread_goes_through_the_rows_of_a_short_read(tmp_path, seen, monkeypatch):
    x = np.random.default_rng(0).integers(0, 2**62, (60, 100, 100))
    lake = tl.open(tmp_path)
    lake.write("x", x, block_shape=(1, 100, 100), codec="zstd")
    np.testing.assert_array_equal(lake["x"][:], x)
    assert seen == {threading.current_thread()}
    monkeypatch.setattr(read, "_SHORT", 1 << 10)  # so that it is a long one
    np.testing.assert_array_equal(lake["x"][:], x)
    assert seen != {threading.current_thread()}


def test_of_packed_words_those_that_are_asked_for_count(tmp_path, seen, monkeypatch):
    x = np.random.default_rng(0).normal(size=(40, 100, 100)).cumsum(axis=0)
    lake = tl.open(tmp_path)
    lake.write("x", x, block_shape=(1, 100, 100), codec="lorenzo(float)+zigzag+pack")
    monkeypatch.setattr(read, "_SHORT", 32 << 10)
    np.testing.assert_array_equal(lake["x"][:, 50, :50], x[:, 50, :50])
    assert seen == {threading.current_thread()}
