"""Paths of sources on this machine."""

import errno
import os

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.sources import expand


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "one.npy", np.zeros(3))
    assert [os.path.relpath(path, tmp_path) for path in expand([str(tmp_path)])] == [
        "a/one.npy", "b/one.npy",
    ]  # fmt: skip
    scandir = os.scandir

    def refusing(path):
        if str(path) == str(tmp_path / "b"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    said = f"^the source folder {tmp_path}/b cannot be read: Permission denied; let this user read"
    with pytest.raises(tl.StorageError, match=said):
        expand([str(tmp_path)])
