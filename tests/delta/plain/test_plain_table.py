"""Delta tables of others."""

import datetime as dt
import json
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from other_writer import write_by_another

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


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 2, "minWriterVersion": 5},
        {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"],
        },
    ],
)  # fmt: skip
def test_columns_that_another_program_renamed(tmp_path, protocol):
    """Their files have other names: read by the new ones, all values would be null."""
    pq.write_table(pa.table({"k": [1, 2], "col-9": ["x", "y"]}), tmp_path / "one.parquet")
    fields = [
        {
            "name": name, "type": kind, "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": stored},
        }
        for number, (name, kind, stored) in enumerate((("k", "long", "k"), ("b", "string", "col-9")), 1)
    ]  # fmt: skip
    size = (tmp_path / "one.parquet").stat().st_size
    said = [
        {"protocol": protocol},
        {
            "metaData": {
                "id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
                "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
            }
        },
        {
            "add": {
                "path": "one.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True
            }
        },
    ]  # fmt: skip
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, said)))
    view = tl.query("SELECT k, b FROM t WHERE b = 'y'", t=tmp_path)
    assert view.to_pandas().to_dict("list") == {"k": [2], "b": ["y"]}


def test_kinds(storage, tmp_path):
    assert PlainTable.kind(storage) == "plain"
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    ds.append({"n": 1})
    assert PlainTable.kind(Storage(ds.uri)) == "samples"
    with pytest.raises(tl.TableNotFoundError):
        PlainTable.kind(Storage(str(tmp_path / "none")))


def test_far_times_as_spark_writes_them(tmp_path):
    """INT96, Spark's default: Arrow said that a cast would lose data."""
    times = [dt.datetime(year, 1, 2, tzinfo=dt.timezone.utc) for year in (1, 2024, 9999)]
    write_deltalake(tmp_path, pa.table({"time": times}))
    write_by_another(
        tmp_path,
        lambda rows, path: pq.write_table(rows, path, use_deprecated_int96_timestamps=True),
    )
    assert PlainTable(Storage(str(tmp_path))).data.to_table()["time"].to_pylist() == times
    found = tl.query("SELECT time FROM t WHERE time > '2000-01-01' ORDER BY time", t=tmp_path)
    assert found.to_arrow()["time"].to_pylist() == times[1:]
