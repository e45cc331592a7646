"""``tl.estimate`` on what the benchmarks write: within 15 % of the files, in every layout."""

import importlib
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts import LAYOUTS

SMALL, LARGE = "small", "large"
WORKLOADS = {
    "photos": {SMALL: (2, 256), LARGE: (16,)},
    "field": {SMALL: (40,), LARGE: (256,)},
    "uber": {SMALL: ((12, 24, 570, 858), 150_000), LARGE: ()},
}
"""Arguments of the generators: a cut of the workload, and as much of it as sparse layouts of dense data write in a minute."""


@pytest.fixture(scope="module")
def workload():
    """What makes the data of a workload, once."""
    sys.path.insert(0, str(Path(__file__).parent))
    workloads = importlib.import_module("workloads")
    sys.path.pop(0)

    @cache
    def make(name, size):
        found = getattr(workloads, name)(*WORKLOADS[name][size])
        return found if isinstance(found, np.ndarray) else tl.SparseTensor(*found)

    return make


@pytest.mark.local_disk
@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("name", "layout"),
    # The pickups as chunks are 69 GB of zeros; window takes integers of rank 2.
    [
        (n, layout)
        for n in WORKLOADS
        for layout in LAYOUTS
        if (n, layout) != ("uber", "ftsf") and layout != "window"
    ],
)
def test_within_15_percent(tmp_path, workload, name, layout, size):
    data = workload(name, size)
    found = tl.estimate(data, layouts=[layout])["bytes"][0]
    tl.open(str(tmp_path)).write("x", data, layout=layout)
    size = sum(file.stat().st_size for file in tmp_path.glob("*.parquet"))
    assert found == pytest.approx(size, rel=0.15)
