"""Stored bytes that are not what was written: an error that says where, never another answer."""

import json
import os

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored import forget, only_file, write

import tensorlake_spark as tl
from tensorlake_spark.rows.row import SCHEMA

pytestmark = pytest.mark.local_disk


def test_a_changed_payload_byte_is_found(lake):
    x = write(lake)
    path = only_file(lake)
    data = bytearray(path.read_bytes())
    meta = pq.read_metadata(path)
    column = next(
        meta.row_group(0).column(i)
        for i in range(meta.num_columns)
        if meta.row_group(0).column(i).path_in_schema == "values"
    )
    data[column.data_page_offset + column.total_compressed_size - 40] ^= 1
    path.write_bytes(data)
    with pytest.raises(tl.CorruptDataError, match=r"tensor 'x', box \[.*checksum.*part-.*parquet"):
        lake["x"][:]
    assert issubclass(tl.CorruptDataError, OSError)
    np.testing.assert_array_equal(lake["x"][:8], x[:8])


def test_every_changed_byte_of_a_file_is_an_error_or_harmless(lake):
    x = write(lake, rows=16)
    path = only_file(lake)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    found = 0
    for place in rng.choice(len(whole), 300, replace=False).tolist():
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        forget()
        try:
            np.testing.assert_array_equal(lake["x"][:], x)
        except tl.TensorLakeError:
            found += 1
    assert found > 50


def test_a_truncated_file(lake):
    write(lake)
    path = only_file(lake)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(tl.CorruptDataError, match=r"cannot be read.*restore the file"):
        lake["x"]


def test_a_missing_file(lake):
    write(lake)
    ref = lake["x"]
    only_file(lake).unlink()
    with pytest.raises(FileNotFoundError, match="in the Delta log but not there"):
        ref[:]


def test_a_file_with_other_rows_than_the_log_says(lake):
    write(lake)
    path = only_file(lake)
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(tl.CorruptDataError, match="but the Delta log says"):
        lake["x"]


def test_rows_lost_by_plain_delta_are_an_error_and_never_zeros(lake):
    x = write(lake)
    deltalake.DeltaTable(lake.uri).delete("id = 'x' and lo.d0 = 8")
    with pytest.raises(tl.CorruptDataError, match="verify=False"):
        lake["x"][:]
    with pytest.raises(tl.CorruptDataError):
        lake["x"][8:9]
    np.testing.assert_array_equal(lake["x"][:8], x[:8])
    got = tl.open(lake.uri, verify=False)["x"][:]
    x[8:16] = 0
    np.testing.assert_array_equal(got, x)


def rewrite_meta(lake, change):
    path = only_file(lake)
    table = pq.read_table(path)
    attrs = [None if a is None else change(json.loads(a)) for a in table["attrs"].to_pylist()]
    column = pa.array([None if a is None else json.dumps(a) for a in attrs], pa.string())
    table = table.set_column(table.schema.get_field_index("attrs"), "attrs", column)
    pq.write_table(table, path)


def test_a_place_that_cannot_be_a_table(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(tl.FormatError, match=r"x\.parquet is a file; a table is a folder"):
        tl.open(tmp_path / "x.parquet")
    for below in ("x.parquet/lake", "x.parquet/a/b"):
        with pytest.raises(tl.FormatError, match=r"x\.parquet is a file and not a folder; give a"):
            tl.open(tmp_path / below)
    with pytest.raises(tl.InvalidOptionError, match=r"a\\b has '\\\\' in it"):
        tl.open(tmp_path / "a\\b")  # of which deltalake makes a/b
    for nothing in ("", " "):  # and not the folder of this process
        with pytest.raises(tl.InvalidOptionError, match="place of the table is an empty text"):
            tl.open(nothing)


def test_a_newer_format_version_names_both(lake):
    write(lake)
    rewrite_meta(lake, lambda a: {**a, "format": 7})
    with pytest.raises(tl.FormatError, match="version 7; this package reads up to version 1"):
        lake["x"]


def test_a_changed_metadata_row_is_found(lake):
    write(lake)
    rewrite_meta(lake, lambda a: {**a, "nnz": 3})
    with pytest.raises(tl.CorruptDataError, match="metadata row of tensor 'x'"):
        lake["x"]


def test_a_table_that_is_not_ours(tmp_path):
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"a": [1]}))
    with pytest.raises(tl.FormatError, match="is not a tensor table: it has no column id"):
        tl.open(tmp_path / "t")
    with pytest.raises(tl.FormatError):
        tl.open(tmp_path / "t").write("x", np.zeros(3))


def test_a_table_with_our_names_and_other_types(tmp_path):
    columns = {name: pa.array([1]) for name in SCHEMA.names}
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table(columns))
    with pytest.raises(tl.FormatError, match=r"'id' is of type .*long.*, not .*string"):
        tl.open(tmp_path / "t")


def map_columns(fields, number=0):
    """Give all fields the names that files know them by, as a writer with column mapping does."""
    for field in fields:
        number += 1
        names = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
        field["metadata"].update(names)
        if isinstance(field["type"], dict) and "fields" in field["type"]:
            number = map_columns(field["type"]["fields"], number)
    return number


@pytest.mark.parametrize(
    ("features", "version", "named"),
    [
        ({"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}, (3, 7), "columnMapping"),
        ({}, (2, 5), "columnMapping"),
        ({"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}, (3, 7), "typeWidening"),
        ({"readerFeatures": ["fooBar"], "writerFeatures": ["fooBar"]}, (3, 7), "fooBar"),
        ({"readerFeatures": ["catalogManaged"], "writerFeatures": ["catalogManaged"]}, (3, 7), "catalog"),
        ({}, (9, 9), "9"),
    ],
)  # fmt: skip
def test_a_feature_that_we_cannot_read_is_named(tmp_path, features, version, named):
    lake = tl.open(tmp_path / "lake")
    write(lake)
    protocol = {"minReaderVersion": version[0], "minWriterVersion": version[1], **features}
    log = tmp_path / "lake" / "_delta_log" / f"{2:020}.json"
    first = (tmp_path / "lake" / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    meta = next(action for action in map(json.loads, first) if "metaData" in action)
    meta["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
    columns = json.loads(meta["metaData"]["schemaString"])
    map_columns(columns["fields"])
    meta["metaData"]["schemaString"] = json.dumps(columns)
    log.write_text("\n".join(map(json.dumps, ({"protocol": protocol}, meta))) + "\n")
    with pytest.raises(tl.UnsupportedFeatureError, match=f"{named}.*spark.read.format"):
        tl.open(tmp_path / "lake")


def test_a_protocol_with_column_mapping_that_no_column_uses(tmp_path):
    lake = tl.open(tmp_path / "lake")
    x = write(lake)
    log = tmp_path / "lake" / "_delta_log"
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    (log / f"{2:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    again = tl.open(tmp_path / "lake")
    again.write("y", x)
    assert all(np.array_equal(again[name][:], x) for name in ("x", "y"))
    feature = ["columnMapping"]
    later = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": feature, "writerFeatures": feature}  # fmt: skip
    (log / f"{4:020}.json").write_text(json.dumps({"protocol": later}) + "\n")
    np.testing.assert_array_equal(tl.open(tmp_path / "lake")["y"][:], x)
    with pytest.raises(tl.UnsupportedFeatureError, match=r"columnMapping.*cannot write"):
        tl.open(tmp_path / "lake").write("z", x)


def test_a_feature_that_we_cannot_write_is_named_and_reading_goes_on(tmp_path):
    lake = tl.open(tmp_path / "lake")
    x = write(lake)
    features = ["rowTracking", "domainMetadata"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    log = tmp_path / "lake" / "_delta_log" / f"{2:020}.json"
    log.write_text(json.dumps({"protocol": protocol}) + "\n")
    np.testing.assert_array_equal(lake["x"][:], x)
    with pytest.raises(
        tl.UnsupportedFeatureError, match=r"domainMetadata, rowTracking.*cannot write"
    ):
        lake.write("y", x)
