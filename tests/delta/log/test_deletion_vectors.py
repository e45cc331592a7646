"""Deletion vectors belong to files by their whole paths."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from marked_samples import mark

import tensorlake_spark as tl
from tensorlake_spark.delta.log.deletion_vectors import paths_of, vectors_of
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


def test_a_file_is_named_by_its_whole_path():
    """A deletion vector of one must not hide rows of another that has its name in another folder."""
    paths = ["a/p.parquet", "b/a/p.parquet", "q%20r.parquet", "s t.parquet"]
    roots = ["file:///lake", "s3://bucket/a lake", "/lake"]
    for root in roots:
        uris = [
            f"{root}/b/a/p.parquet",
            f"{root}/a/p.parquet",
            f"{root}/q%20r.parquet",
            f"{root}/s%20t.parquet",
        ]
        assert paths_of(uris, paths) == ["b/a/p.parquet", "a/p.parquet", *paths[2:]]
        assert paths_of([f"{root}/c/other.parquet", f"{root}/p.parquet"], paths) == [None, None]


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", {"size": "int32"})
    for start in (0, 10):
        found.extend({"size": [*range(start, start + 10)]})
    return found


def marked(ds, version):
    """The files of a version that have a vector, as the log has them."""
    storage = Storage(ds.uri)
    snapshot = Snapshot.open(storage, version, kind=SAMPLES)
    return {*vectors_of(storage, version, snapshot.files.path)}


def test_a_vector_is_found_in_the_commit_after_a_checkpoint(ds):
    """A file whose vector was not found would leave the table under another name than it has, and come twice."""
    DeltaTable(ds.uri).create_checkpoint()
    mark(Storage(ds.uri), 4)
    ds.refresh()
    assert len(marked(ds, ds.version)) == 1
    ds.update([0, 15], {"size": 99})
    assert ds["size"][:].tolist() == [99, *range(1, 10), 10, 11, 12, 13, 99, *range(16, 20)]


def test_a_checkpoint_of_which_a_part_is_missing_is_none(ds):
    """The parts that are there do not say all that is live."""
    mark(Storage(ds.uri), 4)
    ds.refresh()
    DeltaTable(ds.uri).create_checkpoint()
    log = Path(ds.uri, "_delta_log")
    (whole,) = log.glob("*.checkpoint.parquet")
    head = whole.name.removesuffix(".parquet")
    assert len(marked(ds, ds.version)) == 1
    other = pq.read_table(whole).slice(0, 0)
    whole.unlink()
    (log / "_last_checkpoint").unlink()
    pq.write_table(other, log / f"{head}.0000000001.0000000002.parquet")
    assert len(marked(ds, ds.version)) == 1
