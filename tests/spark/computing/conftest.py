"""A lake with tensors of each kind, in several files each, which pages of this folder compute on."""

import numpy as np
import pytest

import tensorlake_spark as tl

SHAPE = (12, 6, 10)


@pytest.fixture(scope="module")
def arrays():
    """By their ids: chunks in six files, chunks that are not all stored, elements, elements stored twice."""
    rng = np.random.default_rng(0)
    dense = rng.integers(-50, 50, SHAPE).astype("f4")
    thin = np.where(rng.random(SHAPE) < 0.1, dense, 0)
    filled = np.where(np.arange(12)[:, None, None] % 4 < 2, dense, 0)
    return {"dense": dense, "filled": filled, "thin": thin, "twice": 2 * thin}


@pytest.fixture(scope="module")
def path(new_place, arrays):
    place = new_place()
    lake = tl.open(place)
    for first in range(0, 12, 2):
        part = arrays["dense"][first : first + 2]
        lake.write("dense", part, block_shape=(1, 6, 10), mode="append", axis=0)
    lake.write("filled", arrays["filled"], block_shape=(2, 6, 5))
    thin = tl.SparseTensor.from_dense(arrays["thin"])
    for first in range(0, 12, 4):
        coords, values = thin.coords, thin.values
        some = (coords[0] >= first) & (coords[0] < first + 4)
        part = tl.SparseTensor(coords[:, some], values[some], SHAPE)
        lake.write("thin", part, layout="coo", mode="append", axis=None, duplicates="error")
    for _ in range(2):
        lake.write("twice", thin, layout="coo", mode="append", axis=None, duplicates="sum")
    return place


@pytest.fixture
def small_shares(monkeypatch):
    """Shares are as small as they can be, and a task combines three partials."""
    from tensorlake_spark.spark.computing import shares, tree

    monkeypatch.setattr(shares, "_LEAST_BYTES", 1)
    monkeypatch.setattr(tree, "FAN", 3)


@pytest.fixture
def small_parts(small_shares, monkeypatch):
    """Partials are cut into parts of a few elements, so that several tasks combine them."""
    from tensorlake_spark.spark.computing import tree

    monkeypatch.setattr(tree, "_PART_CELLS", 6)
    monkeypatch.setattr(tree, "_TASK_CELLS", 12)
