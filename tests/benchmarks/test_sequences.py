"""The sequences of the benchmark slide, one row in a hundred is edited, and Parquet gives back what it got."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorlake_spark.layouts.timelines.sliding import find_links


@pytest.fixture(scope="module")
def made():
    sys.path.insert(0, str(Path(__file__).parent))
    found = importlib.import_module("sequences")
    sys.path.pop(0)
    return found


def test_users_slide_and_few_rows_are_edited(made):
    x = made.sequences(20, 50, 32, 10**6)
    assert x.shape == (1000, 32)
    assert 0 <= x.min() <= x.max() < 10**6
    links = find_links(x)
    assert np.flatnonzero(~links.is_linked).tolist() == [*range(0, 1000, 50)]
    assert set(links.shift.tolist()) == {0, 1, 2, 3}
    before, after = x[:-1], x[1:]
    still = links.is_linked[1:] & (links.shift[1:] == 0)
    edited = (before[still] != after[still]).any(axis=1).mean()
    assert 0.005 < edited < 0.05  # into an edited row, and out of it
    assert np.array_equal(x, made.sequences(20, 50, 32, 10**6))


def test_parquet_is_read_back(made, tmp_path):
    x = made.sequences(2, 5, 8, 2**63 - 1)
    assert made.parquet_bytes(tmp_path / "x.parquet", x) > x.nbytes // 10
