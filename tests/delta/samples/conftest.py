"""A table of samples of every kind, in several files and row groups."""

import pytest
from stored_rows import SCHEMA, put, rows

from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def storage(tmp_path):
    found = Storage(str(tmp_path / "t"))
    create_samples_table(found, SCHEMA)
    return found


@pytest.fixture
def stored(storage):
    put(storage, rows(0, 500), row_group_bytes=2000)
    return StoredSamples(put(storage, rows(500, 300), row_group_bytes=3000, file_bytes=9000))
