"""The estimate is near what writing gives, and the layout that auto takes is the one it says."""

from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts import LAYOUTS

ANY = [name for name in LAYOUTS if name != "window"]  # which takes integers of rank 2


def clustered(seed=0):
    """Events around a few places, as in the benchmark, but smaller."""
    rng = np.random.default_rng(seed)
    n, shape = 300_000, (60, 24, 300, 400)
    y = np.clip(rng.normal(150, 20, n), 0, 299).astype(int)
    x = np.clip(rng.normal(200, 30, n), 0, 399).astype(int)
    coords = np.array([rng.integers(0, 60, n), rng.integers(0, 24, n), y, x])
    return tl.SparseTensor(coords, np.ones(n), shape, duplicates="sum")


def stored(lake, data, layout):
    lake.write(layout, data, layout=layout)
    return sum(f.stat().st_size for f in Path(lake.uri).glob("*.parquet"))


@pytest.mark.local_disk
@pytest.mark.parametrize("layout", [name for name in ANY if name != "ftsf"])
def test_within_15_percent_for_a_sparse_tensor(lake, layout):
    data = clustered()
    found = tl.estimate(data, layouts=[layout])["bytes"][0]
    assert found == pytest.approx(stored(lake, data, layout), rel=0.15)


@pytest.mark.local_disk
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "csf"])
def test_within_15_percent_for_an_array(lake, layout):
    rng = np.random.default_rng(0)
    data = np.cumsum(rng.integers(-3, 4, (20, 120, 200)), axis=1).astype(np.int16)
    found = tl.estimate(data, layouts=[layout])["bytes"][0]
    assert found == pytest.approx(stored(lake, data, layout), rel=0.15)


@pytest.mark.local_disk
def test_a_sparse_tensor_as_chunks(lake):
    rng = np.random.default_rng(0)
    coords = rng.integers(0, [[2000], [3000]], (2, 20_000))
    data = tl.SparseTensor(coords, rng.random(20_000), (2000, 3000), duplicates="last")
    found = tl.estimate(data, layouts=["ftsf"])["bytes"][0]
    assert found == pytest.approx(stored(lake, data, "ftsf"), rel=0.15)


@pytest.mark.local_disk
def test_sequences_that_slide(lake):
    rng = np.random.default_rng(0)
    at = np.cumsum(rng.integers(0, 4, (50, 200)), axis=1)[..., None] + np.arange(128)
    data = rng.integers(0, 1 << 60, (50, at.max() + 1))[np.arange(50)[:, None, None], at]
    data = data.reshape(-1, 128)
    table = tl.estimate(data).set_index("layout")["bytes"]
    assert set(table.index) == set(LAYOUTS)
    assert table["window"] < 0.8 * table["ftsf"]
    assert table["window"] == pytest.approx(stored(lake, data, "window"), rel=0.15)


def test_the_table_names_what_auto_takes(lake):
    data = np.eye(50)
    table = tl.estimate(data)
    assert list(table["layout"][table["chosen"]]) == [lake.write("x", data).layout]
    assert set(table["layout"]) == set(ANY)
    assert table["bytes"].is_monotonic_increasing
    assert tl.estimate(data, threshold=0.01).set_index("layout")["chosen"]["ftsf"]


@pytest.mark.parametrize(
    "data", [np.zeros((0, 3)), np.array(3.0), np.zeros(7), tl.SparseTensor([[], []], [], (3, 4))]
)
def test_nothing_much_is_estimated_too(data):
    assert len(tl.estimate(data)) == len(ANY)


def test_what_cannot_be_estimated():
    with pytest.raises(tl.InvalidTensorError, match="read only once"):
        tl.estimate(iter([np.zeros(3)]))
    with pytest.raises(tl.InvalidOptionError, match="unknown layout 'zip'"):
        tl.estimate(np.zeros(3), layouts=["zip"])
    with pytest.raises(tl.InvalidOptionError, match="no block_shape"):
        tl.estimate(np.zeros(3), layouts=["coo"], block_shape=(1,))
    for layouts in ("coo", 5):
        with pytest.raises(tl.InvalidOptionError, match="is not a list of layouts"):
            tl.estimate(np.zeros(3), layouts=layouts)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"codec": "zip"}, "unknown codec 'zip'"),
        ({"order": (5, 5)}, r"order \(5, 5\) are not distinct axes"),
        ({"row_axis": (0,)}, "unknown option 'row_axis'; did you mean 'row_axes'"),
    ],
)
def test_options_that_no_layout_takes(options, says):
    """They were left out, and the estimate was one without them."""
    with pytest.raises(tl.InvalidOptionError, match=says):
        tl.estimate(np.eye(9), **options)
    assert len(tl.estimate(np.eye(9), order=(1, 0), codec="raw")) == len(ANY)


def test_one_layout_is_given_as_a_list():
    with pytest.raises(tl.InvalidOptionError, match=r"takes a list, layouts=\['coo'\]"):
        tl.estimate(np.eye(3), layout="coo")
    assert tl.estimate(np.eye(3), layouts=["coo"])["layout"].tolist() == ["coo"]
