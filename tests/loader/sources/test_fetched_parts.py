"""Samples in parts are what they are at once, in the order in which they were asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.loader.sources.fetched_parts import FetchedParts, parts_within


class Piece:
    """Samples whose values follow from their positions."""

    raw_nbytes, hits, misses = 3, 1, 2

    def __init__(self, positions, ragged):
        self.positions, self.ragged = positions, ragged
        self.nbytes = 8 * len(positions)

    def values(self, draws):
        n = self.positions
        rows = [np.full(k % 3 if self.ragged else 2, k) for k in n.tolist()]
        alike = len({len(row) for row in rows}) == 1
        random = draws["x"][:, 0] if "x" in draws else np.zeros(len(n))
        return {"x": np.stack(rows) if alike else rows, "names": [f"{k}" for k in n], "r": random}


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.integers(1, 30))
def test_parts_need_few_bytes_and_have_all_samples(positions, most):
    positions = np.array(positions)

    def nbytes(some):
        assert (np.diff(some) >= 0).all()
        return len(np.unique(some // 10))

    parts = parts_within(positions, nbytes, most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(positions)))
    assert all(len(part) == 1 or nbytes(positions[part]) <= most for part in parts)


@pytest.mark.parametrize("ragged", [False, True])
@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 9))
def test_values_are_those_of_all_at_once(ragged, positions, most):
    positions = np.array(positions)
    places = parts_within(positions, len, most)
    joined = FetchedParts([Piece(positions[some], ragged) for some in places], places)
    draws = {"x": np.arange(len(positions), dtype=float)[:, None]}
    found, wanted = joined.values(draws), Piece(positions, ragged).values(draws)
    assert list(found) == list(wanted)
    assert found["names"] == wanted["names"]
    np.testing.assert_array_equal(found["r"], wanted["r"])
    assert len(found["x"]) == len(wanted["x"])
    for mine, theirs in zip(found["x"], wanted["x"], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert joined.nbytes > 8 * len(positions)
    assert (joined.hits, joined.misses, joined.raw_nbytes) == tuple(
        n * len(places) for n in (1, 2, 3)
    )
