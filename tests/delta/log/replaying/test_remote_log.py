"""Logs that are brought here from an object store."""

import tempfile

import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.replaying import remote_log
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.local_disk
def test_without_a_place_for_temporary_files_deltalake_reads_the_log(tmp_path, monkeypatch):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", [1, 2])
    storage = Storage(lake.uri)
    assert remote_log.bring(storage).table.version() == lake.version
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert remote_log.bring(storage) is None
