"""Blocks of files, by their counts and bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.loader.sources.block_cuts import MOST_BYTES, block_starts

FILES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 1 << 32)), max_size=20)


@given(FILES)
def test_blocks_are_runs_of_one_file(files):
    counts, sizes = (np.array([file[k] for file in files], np.int64) for k in (0, 1))
    starts = block_starts(counts, sizes)
    assert starts[0] == 0
    assert starts[-1] == counts.sum()
    assert (np.diff(starts) > 0).all()
    ends = np.cumsum(counts)
    assert {*ends[counts > 0].tolist()} <= {*starts.tolist()}


@pytest.mark.parametrize(("nbytes", "blocks"), [(1 << 28, 256), (32 << 30, (32 << 30) // MOST_BYTES), (1 << 20, 16)])  # fmt: skip
def test_how_many_there_are(nbytes, blocks):
    starts = block_starts(np.array([100_000]), np.array([nbytes]))
    assert len(starts) - 1 == blocks
    assert np.ptp(np.diff(starts)) <= 1
