"""Files that links lead to are copied in by tasks, each with a share of the samples."""

from pathlib import Path

import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import link_copying, workers

COUNT = 40


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.bin").write_bytes(bytes([number]) * (100 + number))
    return folder


@pytest.fixture
def ds(tmp_path, files, monkeypatch):
    monkeypatch.setattr(workers, "_SHARE_BYTES", (1 << 9, 1 << 10))
    monkeypatch.setattr(link_copying, "BATCH_BYTES", 1 << 8)
    found = tl.dataset(tmp_path / "ds", {"file": tl.types.Link("bytes"), "n": "int32"})
    found.extend({"file": [str(files / f"{n}.bin") for n in range(COUNT)], "n": range(COUNT)})
    return found


def test_shares_keep_the_order_of_the_samples(ds):
    ds.materialize(["file"], workers=3)
    assert len(ds.stored.files) > 1
    assert ds["n"][:].tolist() == [*range(COUNT)]
    assert ds.to_arrow(["file"])["file"].to_pylist() == [
        bytes([n]) * (100 + n) for n in range(COUNT)
    ]


def test_a_file_that_is_gone_leaves_the_dataset_as_it_was(ds, files):
    version, before = ds.version, {*Path(ds.uri).rglob("*.parquet")}
    (files / "33.bin").unlink()
    with pytest.raises(tl.TensorLakeError, match="column 'file', sample 33"):
        ds.materialize(["file"], workers=3)
    assert tl.dataset(ds.uri).version == version
    assert {*Path(ds.uri).rglob("*.parquet")} == before
