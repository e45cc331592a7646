"""Data files that a failed change gives up."""

from pathlib import Path

import numpy as np
import pytest

from tensorlake_spark.delta.log.data_file import discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.local_disk
def test_discarding_asks_the_log_first(lake):
    lake.write("x", np.arange(9))
    storage = Storage(lake.uri)
    (live,) = Snapshot.open(storage).files.path
    (Path(lake.uri) / "part-orphan.parquet").write_bytes(b"PAR1")
    discard(storage, [live, "part-orphan.parquet", "part-never.parquet"])
    assert [p.name for p in Path(lake.uri).glob("*.parquet")] == [live]
    (Path(lake.uri) / "_delta_log" / "00000000000000000000.json").write_text("no JSON")
    discard(storage, [live])
    assert (Path(lake.uri) / live).exists(), "who cannot read the log deletes nothing"


def test_discarding_before_there_is_a_table(tmp_path):
    (tmp_path / "part-orphan.parquet").write_bytes(b"PAR1")
    discard(Storage(str(tmp_path)), ["part-orphan.parquet"])
    assert list(tmp_path.iterdir()) == []
