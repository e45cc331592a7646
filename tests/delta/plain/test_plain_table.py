"""Delta tables of others."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.delta.plain.plain_table import PlainTable
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def storage(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2], "b": ["x", "y"]}), partition_by=["a"])
    write_deltalake(tmp_path / "t", pa.table({"a": [3], "b": ["z"]}), mode="append")
    return Storage(str(tmp_path / "t"))


def test_versions_and_rows(storage):
    newest = PlainTable(storage)
    assert (newest.version, newest.rows, newest.schema.names) == (1, 3, ["a", "b"])
    assert PlainTable(storage, 0).rows == 2
    assert sorted(newest.data.to_table()["a"].to_pylist()) == [1, 2, 3]
    with pytest.raises(tl.InvalidOptionError, match="7"):
        PlainTable(storage, 7)


def test_kinds(storage, tmp_path):
    assert PlainTable.kind(storage) == "plain"
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    ds.append({"n": 1})
    assert PlainTable.kind(Storage(ds.uri)) == "samples"
    with pytest.raises(tl.TableNotFoundError):
        PlainTable.kind(Storage(str(tmp_path / "none")))
