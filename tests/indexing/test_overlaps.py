"""Which boxes meet: every pair held against every other one is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.indexing.overlaps import meeting


def every_pair(lo, hi):
    """The obvious answer, for few boxes."""
    meets = (lo[:, None] < hi[None]).all(axis=2) & (hi[:, None] > lo[None]).all(axis=2)
    return list(map(tuple, np.argwhere(np.triu(meets, 1)).tolist()))


@given(st.integers(1, 4), st.integers(0, 200), st.integers(0, 99))
def test_all_pairs_are_found_when_all_are_wanted(ndim, count, seed):
    rng = np.random.default_rng(seed)
    lo = rng.integers(0, 30, (count, ndim))
    hi = lo + rng.integers(1, 5, (count, ndim))
    assert meeting(lo, hi, most=1 << 30) == every_pair(lo, hi)


@given(st.integers(1, 20), st.integers(0, 99))
def test_it_stops_early_and_every_pair_is_one(most, seed):
    rng = np.random.default_rng(seed)
    lo = rng.integers(0, 20, (150, 2))
    hi = lo + rng.integers(1, 6, (150, 2))
    wanted, found = every_pair(lo, hi), meeting(lo, hi, most)
    assert {*found} <= {*wanted}
    assert len(found) >= min(most, len(wanted))


@pytest.mark.parametrize("side", [8, 24])
def test_boxes_that_tile_a_space_do_not_meet_and_one_more_meets_its_own(side):
    corners = np.stack(np.meshgrid(*[np.arange(side)] * 3), axis=-1).reshape(-1, 3) * 2
    assert meeting(corners, corners + 2) == []
    lo, hi = np.vstack([corners, corners[5]]), np.vstack([corners, corners[5]]) + 2
    assert meeting(lo, hi) == [(5, len(corners))]
