"""A version of a table, and logs that have none."""

from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl


@pytest.mark.local_disk
def test_a_log_with_a_lost_version_is_no_table(lake):
    for i in range(4):
        lake.write(f"x{i}", np.zeros(2))
    (Path(lake.uri) / "_delta_log" / "00000000000000000002.json").unlink()
    with pytest.raises(tl.FormatError, match="contiguous"):
        tl.open(lake.uri)
