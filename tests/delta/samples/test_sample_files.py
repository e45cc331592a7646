"""Files are looked at when they are asked for, and what is kept of them has a bound."""

import numpy as np
import pyarrow as pa
import pytest
from stored_rows import SCHEMA, everything, put, rows, same

from tensorlake_spark.delta.samples import leaf_columns, sample_files
from tensorlake_spark.delta.samples.leaf_columns import SmallColumns
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage


def test_files_come_by_number_and_by_slice(stored):
    files = stored.files
    assert files[0] is files[0]
    assert files[-1].path == files.paths[-1]
    assert [file.path for file in files[1:3]] == files.paths[1:3]
    assert [file.path for file in files] == files.paths
    with pytest.raises(IndexError):
        files[len(files)]


def test_few_files_are_kept(stored, monkeypatch):
    """What was left out is looked at again, and says the same."""
    monkeypatch.setattr(sample_files, "KEPT_FILES", 2)
    for _ in range(2):
        assert same(stored.rows(None, np.arange(800)), everything())
    assert len(stored.files._files) == 2


def test_small_columns_are_kept_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(leaf_columns, "KEPT_BYTES", 100)
    small = SmallColumns()
    one = pa.table({"x": np.arange(6)})  # 48 bytes
    small.keep("a", ("x",), one)
    small.keep("b", ("x",), one)
    small.keep("b", ("x",), one)
    assert small.get("a", ("x",)) is one
    small.keep("c", ("x",), one)
    kept = [path for path in "abc" if small.get(path, ("x",)) is not None]
    assert kept == ["a", "c"], "b was not asked for since"


def test_many_files_of_an_object_store_are_read_at_once(s3, monkeypatch):
    """Footers together, then of each file the columns of all row groups."""
    storage = Storage("s3://bucket/many", s3.options)
    create_samples_table(storage, SCHEMA)
    put(storage, rows(0, 500), row_group_bytes=2000)
    found = StoredSamples(put(storage, rows(500, 300), row_group_bytes=3000, file_bytes=9000))
    assert len(found.files) > 2
    assert same(found.rows(None, np.arange(800)), everything())
    with monkeypatch.context() as patch:  # what is known is not asked of other threads again
        patch.setattr(sample_files, "io_threads", None)
        assert found.files.footers(range(len(found.files))) == list(found.files)
    anew = StoredSamples(found.snapshot)
    few = anew.rows([("label",), ("image", "height")], np.arange(800))
    assert (
        few.column("label").combine_chunks().equals(everything().column("label").combine_chunks())
    )
    assert all(file.has_small(("image.height", "label")) for file in anew.files)
    leaf = found.leaf(("image", "data"))
    wanted = everything().column("image").to_pylist()
    for number in (6, 6, 7, 3, 5):
        value = found.value(number, leaf)
        said = (wanted[number] or {}).get("data")
        assert (None if value is None else bytes(value)) == said
