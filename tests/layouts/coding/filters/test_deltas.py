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
