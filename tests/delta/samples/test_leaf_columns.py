"""Leaf columns are those of Parquet, also in files whose lists and maps have other names inside."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field
from deltalake.schema import MapType
from other_writer import write_by_another
from stored_rows import SCHEMA

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.leaf_columns import leaf_columns, places_in


def test_leaf_columns_name_what_parquet_names(stored):
    path = f"{stored.snapshot.storage.uri}/{stored.files[0].path}"
    schema = pq.read_metadata(path).schema
    found = {
        schema.column(i).path: schema.column(i).max_definition_level for i in range(len(schema))
    }
    wanted = {leaf.path: leaf.depth for leaf in leaf_columns(SCHEMA)}
    assert found.keys() == wanted.keys()
    assert {path: level for path, level in found.items() if ".list." not in path} == {
        path: level for path, level in wanted.items() if ".list." not in path
    }


def with_items(kind):
    """Return a type whose lists have items, as Arrow calls them by itself."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", with_items(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_items(field.type)) for field in kind])
    return kind


def write_items(rows, path):
    fields = [field.with_type(with_items(field.type)) for field in rows.schema]
    pq.write_table(rows.cast(pa.schema(fields)), path, use_compliant_nested_type=False)


def test_places_go_by_what_lists_and_maps_are(tmp_path):
    rows = pa.table(
        {
            "n": pa.array([1], pa.int64()),
            "tags": pa.array([[[1, 2]]], pa.list_(pa.list_(pa.int32()))),
            "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    paths = [leaf.path for leaf in leaf_columns(rows.schema)]
    for write in (pq.write_table, write_items):
        write(rows, tmp_path / "file.parquet")
        found = places_in(pq.read_metadata(tmp_path / "file.parquet").schema)
        assert found == {path: place for place, path in enumerate(paths)}


def test_lists_with_items_are_read_and_kept(tmp_path):
    """Arrow and old pandas write such. Lists were read as nulls, and the next change stored these."""
    columns = {"n": "int64", "tags": tl.types.Sequence("int32"), "t": tl.types.Tensor("int16")}
    ds = tl.dataset(tmp_path / "ds", columns)
    ds.extend({"n": [1, 2], "tags": [[1, 2], [3]], "t": [np.arange(3, dtype=np.int16)] * 2})
    write_by_another(ds.uri, write_items)
    ds.refresh()
    assert ds["tags"][:] == [[1, 2], [3]]
    ds.update([0], {"n": 9})
    ds.optimize()
    assert ds.to_arrow(["n", "tags"]).to_pylist() == [
        {"n": 9, "tags": [1, 2]},
        {"n": 2, "tags": [3]},
    ]
    assert ds["t"][1].tolist() == [0, 1, 2]
    assert ds.check().ok


def test_maps_of_others_are_read_and_kept(tmp_path):
    """They were read as nulls, and the next change stored these."""
    ds = tl.dataset(tmp_path / "ds", {"n": "int64"})
    ds.extend({"n": [1, 2]})
    kind = pa.map_(pa.string(), pa.int64())
    DeltaTable(ds.uri).alter.add_columns([Field("facts", MapType("string", "long"))])

    def write(rows, path):
        facts = pa.array([[("a", 1)], [("b", 2), ("c", None)]], kind)
        pq.write_table(rows.append_column("facts", facts), path)

    write_by_another(ds.uri, write)
    ds.refresh()
    assert ds[0]["facts"] == [("a", 1)]
    ds.update([0], {"n": 9})
    ds.optimize()
    assert ds.to_arrow(["facts"])["facts"].to_pylist() == [[("a", 1)], [("b", 2), ("c", None)]]
    assert ds.check(deep=True).ok
