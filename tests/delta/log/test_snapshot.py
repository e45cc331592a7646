"""A version of a table, and logs that have none."""

from pathlib import Path

import numpy as np
import pytest
from deltalake.exceptions import DeltaError

import tensorlake_spark as tl
from tensorlake_spark.delta.log import snapshot as snapshots
from tensorlake_spark.delta.plain import plain_table
from tensorlake_spark.delta.plain.plain_table import PlainTable
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.local_disk
def test_a_log_with_a_lost_version_is_no_table(lake):
    for i in range(4):
        lake.write(f"x{i}", np.zeros(2))
    (Path(lake.uri) / "_delta_log" / "00000000000000000002.json").unlink()
    with pytest.raises(tl.FormatError, match="contiguous"):
        tl.open(lake.uri)


def test_a_checkpoint_that_this_user_may_not_read_is_no_bad_table(tmp_path, monkeypatch):
    tl.open(tmp_path).write("x", [1])
    said = "Kernel error: Unable to open file 0.checkpoint.parquet: Permission denied (os error 13)"

    def refuse(*args, **options):
        raise DeltaError(said)

    for module in (snapshots, plain_table):
        monkeypatch.setattr(module, "DeltaTable", refuse)
    monkeypatch.setattr(snapshots, "replay_all", lambda *args: None)
    for call in (lambda: tl.open(tmp_path), lambda: PlainTable(Storage(str(tmp_path)))):
        with pytest.raises(
            tl.StorageError, match=r"0\.checkpoint\.parquet: Permission.*; give this"
        ):
            call()
