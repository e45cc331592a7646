"""Leaf columns are those of Parquet."""

import pyarrow.parquet as pq
from stored_rows import SCHEMA

from tensorlake_spark.delta.samples.leaf_columns import leaf_columns


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
