"""Uploads that killed writers left: there are none on a disk. On S3: tests/integration/test_s3_clients.py."""

import numpy as np
import pytest

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.upkeep.stale_uploads import abort_uploads


@pytest.mark.local_disk
@pytest.mark.parametrize("hours", [None, 0, 24])
def test_a_disk_has_none(lake, hours):
    lake.write("x", np.arange(3))
    snapshot = Snapshot.open(Storage(lake.uri))
    assert abort_uploads(snapshot, hours, dry_run=False) == []
    assert lake.abort_uploads(hours, dry_run=True) == []
