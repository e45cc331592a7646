"""A dataset with all that may lie apart, in an order that is not that of its sids."""

from types import SimpleNamespace

import numpy as np
import pytest
from whole_datasets import COLUMNS, TILE_BYTES, contents, samples_of

import tensorlake_spark as tl


@pytest.fixture
def made(tmp_path, jpegs):
    """A dataset of twenty samples in two files, and an order of some of them."""
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE_BYTES)
    for start in (0, 10):
        ds.extend(samples_of(jpegs, range(start, start + 10), start))
    order = np.random.default_rng(5).permutation(ds.sids)[:13]
    return SimpleNamespace(ds=ds, order=order, rows=rows(ds), path=tmp_path / "ds")


def rows(ds):
    """What a dataset holds, by sid, without the sids."""
    return {one[0]: one[1:] for one in contents(ds)}


@pytest.fixture
def values():
    """What a dataset holds, in order, without the sids."""
    return lambda ds: [one[1:] for one in contents(ds)]
