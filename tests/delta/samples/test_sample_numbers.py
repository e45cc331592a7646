"""Numbers of samples by place and places by number, without all of them; those of all are the oracle."""

import numpy as np
import pytest

import tensorlake_spark as tl


@pytest.fixture(params=["in order", "with gaps", "deleted", "compacted"])
def stored(request, tmp_path):
    """A version of samples that has not computed all numbers, and the numbers."""
    ds = tl.dataset(tmp_path / "ds", {"label": "int64"})
    for first in (0, 10, 20):
        ds.extend({"label": np.arange(first, first + 10)})
    if request.param != "in order":
        ds.delete(ds.sids[[3, 4, 12, 29]] if request.param == "with gaps" else ds.sids[10:20])
    if request.param == "compacted":
        ds.optimize()
    known = ds.parts.stored.sids.copy()
    fresh = tl.dataset(tmp_path / "ds").parts.stored
    assert "_stored_sids" not in fresh.__dict__
    return fresh, known


def test_numbers_of_some_samples(stored):
    fresh, known = stored
    for picks in ([0], [len(known) - 1, 3, 3], list(range(len(known))), []):
        positions = np.array(picks, np.int64)
        np.testing.assert_array_equal(fresh.sids_of(positions), known[positions])


def test_samples_of_some_numbers(stored):
    fresh, known = stored
    wanted = np.arange(-3, 40)
    expected = [list(known).index(sid) if sid in known else -1 for sid in wanted]
    np.testing.assert_array_equal(fresh.positions_of(wanted), expected)
    assert ("_stored_sids" in fresh.__dict__) == (not fresh.is_sorted)
