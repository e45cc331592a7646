"""Marks of samples; Python's set is the oracle."""

import numpy as np
import pytest

from tensorlake_spark.loader.sources.sample_marks import SampleMarks


@pytest.mark.parametrize("count", [1, 8, 1000])
def test_marks_are_a_set(count):
    rng = np.random.default_rng(count)
    marks, expected = SampleMarks(count), set()
    for _ in range(40):
        some = rng.integers(count, size=5)
        assert marks.has(some) == (expected >= {*some.tolist()})
        marks.add(some)
        expected |= {*some.tolist()}
        assert marks.has(some)
    assert [marks.has(np.array([n])) for n in range(count)] == [n in expected for n in range(count)]
    marks.clear()
    assert not marks.has(np.array([0]))


def test_no_samples():
    assert SampleMarks(0).has(np.zeros(0, np.int64))
