"""Where the tables inside a dataset lie, and which versions of them belong to it."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.inner_tables import (
    folder_of,
    inner_tables,
    named,
    new_stored_name,
    stored_name,
    stored_names,
    tensor_id,
)
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage

COLUMNS = {
    "label": "int32",
    "g/image": tl.types.Image("raw", apart=True),
    "scan": tl.types.Tensor("uint8", (None, None)),
}


def newest(uri):
    return Snapshot.open(Storage(str(uri)), kind=SAMPLES)


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=100)
    found.append({"label": 1, "g/image": np.zeros((2, 3), "u1"), "scan": np.ones((20, 30), "u1")})
    return found


def test_folders_are_different_for_different_names_and_none_lies_in_another():
    names = ["a", "a/b", "a.b", "a/b/c", "A~2", "a~2", "a b", "a%62", "a\\b", "ä", "..a", "_x"]
    folders = [folder_of(name) for name in names]
    assert all(a != b for a, b in itertools.combinations(folders, 2))
    assert all(folder.count("/") == 1 and folder.startswith("_columns/") for folder in folders)
    assert all("%" not in f and "\\" not in f and " " not in f for f in folders)


@pytest.mark.parametrize("name", ["a" * 512, "\u00e4" * 300, "#" * 200, "a/" * 32 + "b" * 400])
def test_a_column_of_any_name_may_be_apart_and_have_tiles(tmp_path, name):
    # Its folder had a name that no disk takes, and its tiles an id that no lake takes.
    image, scan = np.ones((2, 3), "u1"), np.ones((20, 30), "u1")
    tensor = tl.types.Tensor("uint8", (None, None))
    for column, value in ((tl.types.Image("raw", apart=True), image), (tensor, scan)):
        ds = tl.dataset(tmp_path / type(column).__name__, {name: column}, tile_bytes=100)
        ds.extend({name: [value, value]})
        ds[name][1] = value + 1
        again = tl.dataset(ds.uri)
        np.testing.assert_array_equal(again[name][:], [value, value + 1])
        assert again.check(deep=True).ok
        assert ds.purge([0], now=True).verified
        np.testing.assert_array_equal(ds[name][0], value + 1)


def test_names_of_folders_and_ids_that_are_not_too_long_stay_what_they_are():
    assert folder_of("a" * 255) == f"_columns/{'a' * 255}"
    assert tensor_id("a" * 510, 7) == f"{'a' * 510}/7"
    for short in (folder_of("a" * 511), tensor_id("a" * 511, 7)):
        assert short not in (folder_of("a" * 512), tensor_id("a" * 512, 7))
    assert len(folder_of("\u00e4" * 512).encode()) <= len("_columns/") + 255
    assert len(tensor_id("a" * 512, 2**63 - 1)) <= 512


def test_a_version_names_the_versions_of_its_inner_tables(ds):
    first = inner_tables(newest(ds.uri))
    assert first == {"_tensors": 1, "_columns/g.image": 1}
    ds.append({"label": 2, "g/image": np.zeros((2, 3), "u1")})
    assert inner_tables(newest(ds.uri)) == {"_tensors": 1, "_columns/g.image": 2}
    old = Snapshot.open(Storage(ds.uri), 2, kind=SAMPLES)
    assert inner_tables(old) == first
    assert inner_tables(Snapshot.open(Storage(ds.uri), 0, kind=SAMPLES)) == {}


def test_a_vacuum_of_delta_leaves_the_inner_tables_alone(ds):
    gone = DeltaTable(ds.uri).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True
    )
    assert gone == []
    again = tl.dataset(ds.uri)
    assert again["scan"][0].sum() == 600
    assert again["g/image"][0].shape == (2, 3)


def test_a_reader_of_delta_sees_the_rows_without_the_tables_inside(ds):
    table = DeltaTable(ds.uri).to_pyarrow_table()
    assert table.num_rows == 1
    assert table["label"].to_pylist() == [1]
    assert table["g"].to_pylist() == [{"image": None}]
    inside = tl.dataset(f"{ds.uri}/_columns/g.image")
    assert inside.sids.tolist() == [0]
    assert inside["image"][0].tolist() == [[0] * 3] * 2


def test_a_renamed_column_keeps_the_name_of_its_parts(tmp_path):
    schema = tl.types.SampleSchema({"photo": "int32", "g/x": "int32", "g/y": "int32"}).to_arrow()
    said = named(schema, {"photo": "image", "g/y": "z", "g/x": "g/x"})
    assert stored_names(said) == {"photo": "image", "g/x": "g/x", "g/y": "z"}
    kept = create_samples_table(Storage(str(tmp_path / "t")), said).schema  # as Delta has it
    assert stored_names(kept) == {"photo": "image", "g/x": "g/x", "g/y": "z"}
    assert stored_name(pa.schema([]), "nowhere") == "nowhere"


def test_a_column_that_is_added_gets_parts_that_no_other_has_had(ds, tmp_path):
    now = newest(ds.uri)
    other = new_stored_name(now, "g/image")
    assert other not in stored_names(now.schema).values()
    assert folder_of(other) != folder_of("g/image")
    assert new_stored_name(now, "scan") != "scan"  # tiles of a dropped column may be there
    plain = tl.dataset(tmp_path / "plain", {"a": "int32"})
    assert new_stored_name(newest(plain.uri), "image") == "image"


def test_columns_that_another_program_renames_keep_their_parts(tmp_path):
    """Without the name in the field an apart column would be null, and the next vacuum would delete its values."""
    columns = {**COLUMNS, "text": tl.types.Text(apart=True)}
    ds = tl.dataset(tmp_path / "ds", columns, tile_bytes=100)
    image, scan = np.full((2, 3), 7, "u1"), np.ones((20, 30), "u1")
    ds.append({"label": 1, "g/image": image, "scan": scan, "text": "a"})
    ds.add_column("late", tl.types.Text(apart=True), ["b"])
    schema = newest(ds.uri).schema
    names = {"g": "h", "scan": "tiles", "text": "words", "late": "later"}
    other = pa.schema([field.with_name(names.get(field.name, field.name)) for field in schema])
    rows = DeltaTable(ds.uri).to_pyarrow_table().columns
    table = pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(rows, other, strict=True)], schema=other
    )
    write_deltalake(ds.uri, table, mode="overwrite", schema_mode="overwrite")
    for _ in range(2):
        ds = tl.dataset(ds.uri)
        assert np.array_equal(ds["h/image"][0], image)
        assert np.array_equal(ds["tiles"][0], scan)
        assert (ds["words"][0], ds["later"][0]) == ("a", "b")
        assert ds.check(deep=True).ok
        ds.vacuum(retention_hours=0)
    ds.update([0], {"words": "c"})
    ds.add_column("text", tl.types.Text(apart=True), "d")
    assert (ds["words"][0], ds["text"][0]) == ("c", "d")
