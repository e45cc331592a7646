"""An elementwise result is put together from its parts, in any order and by any cut."""

import numpy as np
import pytest

from tensorlake_spark.ops.elements import elements_at
from tensorlake_spark.spark.computing.gathering import Gather

SHAPE = (5, 4)
PLACES = [(slice(a, min(a + 2, 5)), slice(b, b + 2)) for a in (0, 2, 4) for b in (0, 2)]


def cut(x, place):
    part = x[place]
    keys = np.flatnonzero(part)
    return elements_at(keys, part.reshape(-1)[keys], part.shape)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_parts_come_to_their_places_in_any_order(is_sparse):
    x = np.arange(20.0).reshape(SHAPE) % 3
    fold = Gather(SHAPE, x.dtype)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(PLACES))
        parts = [fold.map(p, cut(x, p) if is_sparse else x[p]) for p in (PLACES[k] for k in order)]
        left, right = fold.combine_all(parts[:3]), fold.combine_all(parts[3:])
        found = fold.finish(fold.combine(left, right))
        if is_sparse:
            assert (np.diff(found.places) > 0).all()
            assert found.nnz == np.count_nonzero(x)
            out = np.zeros(SHAPE)
            out[tuple(found.coords)] = found.values
            found = out
        np.testing.assert_array_equal(found, x)


def test_a_block_is_not_kept():
    block = np.ones((2, 2))
    fold = Gather((2, 2), block.dtype)
    partial = fold.map((slice(0, 2), slice(0, 2)), block)
    block[...] = 7
    np.testing.assert_array_equal(fold.finish(partial), np.ones((2, 2)))
