"""Differences along one axis."""

import numpy as np
import pytest

from tensorlake_spark.layouts.coding.filters import deltas


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("shape", [(3, 5), (70, 9), (2, 65, 4)])
def test_parts_of_sums_undo_differences(axis, shape):
    words = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    for first in range(0, shape[-2], 13):
        src = (slice(None), slice(first, None), slice(1, 4))[3 - len(shape) :]
        src = tuple(slice(*s.indices(n)) for s, n in zip(src, shape, strict=True))
        out = np.empty(words[src].shape, np.uint8)
        deltas.add(deltas.subtract(words, axis), axis, src, out)
        assert np.array_equal(out, words[src])


@pytest.mark.parametrize("shape", [(1, 64), (3, 2, 300), (130, 9000), (2, 200, 9000)])
def test_few_and_many_bytes_are_added_alike(shape):
    """Those of few bands one by one, those of many in doubling steps."""
    words = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    coded = deltas.subtract(words, -2)
    for stop in (1, shape[-2]):
        src = (*(slice(0, n) for n in shape[:-2]), slice(0, stop), slice(0, shape[-1]))
        out = np.empty(words[src].shape, np.uint8)
        deltas.add(coded.copy(), -2, src, out)
        assert np.array_equal(out, words[src])
