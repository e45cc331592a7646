"""Notes of jobs that can be resumed, on a disk and on an S3 server: hidden from tables, and in the end gone."""

import uuid

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture(params=["disk", "s3"])
def storage(request, tmp_path):
    if request.param == "disk":
        return Storage(str(tmp_path / "a lake"))
    s3 = request.getfixturevalue("s3")
    return Storage(f"s3://bucket/{uuid.uuid4()}/a lake", s3.options)


def test_notes_of_a_job(storage):
    notes, other = Staging(storage, "job-1"), Staging(storage, "job-2")
    assert (notes.read(), staging.folders(storage)) == ({}, [])
    notes.write("a", "one")
    notes.write("b", "zwei ß")
    notes.write("a", "another")
    other.write("c", "")
    assert notes.read() == {"a": "another", "b": "zwei ß"}
    assert staging.folders(storage) == ["job-1", "job-2"]
    assert staging.sizes(storage, [f"{staging.ROOT}/job-1/b", "gone"]) == [7, None]
    notes.delete()
    notes.delete()
    assert (notes.read(), other.read()) == ({}, {"c": ""})
    assert staging.folders(storage) == ["job-2"]


def test_vacuum_takes_what_is_old(storage):
    lake = tl.open(storage.uri, storage_options=storage.options)
    x = np.arange(9)
    lake.write("x", x)
    notes = Staging(storage, "job-1")
    notes.write("a", "one")
    assert lake.vacuum() == []
    assert lake.vacuum(1) == []
    assert notes.read()
    named = [f"{staging.ROOT}/job-1/a"]
    assert lake.vacuum(0, dry_run=True) == named
    assert notes.read()
    assert lake.vacuum(0) == named
    assert (notes.read(), staging.folders(storage)) == ({}, [])
    assert staging.expire(storage, 0, False) == []
    np.testing.assert_array_equal(lake["x"][:], x)
