"""A dataset with all that may lie apart."""

from types import SimpleNamespace

import pytest
from whole_datasets import COLUMNS, TILE_BYTES, contents, samples_of

import tensorlake_spark as tl


@pytest.fixture
def made(tmp_path, jpegs):
    """A dataset of twenty samples in four files, and what makes more."""
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE_BYTES)
    for start in range(0, 20, 5):
        ds.extend(samples_of(jpegs, range(start, start + 5), start))
    return SimpleNamespace(ds=ds, path=tmp_path / "ds", jpegs=jpegs, at_first=contents(ds))
