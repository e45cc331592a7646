"""Memory that was freed goes back to the system."""

import sys

import numpy as np
import pytest

from tensorlake_spark.loader.pipeline.unused_memory import give_back_unused


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others do not say it")
def test_what_lies_between_arrays_that_stay_is_given_back():
    arrays = [np.ones(12_000, np.uint8) for _ in range(8_000)]  # 96 MB, too small for maps
    kept = arrays[::20]
    del arrays
    before = resident()
    give_back_unused()
    assert before - resident() > 30 << 20
    assert all(array.all() for array in kept)
