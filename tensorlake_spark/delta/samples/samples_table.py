"""A new, empty table of samples."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from deltalake import Schema

from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.properties import ROW_GROUP_BYTES, TABLE_PROPERTIES
from tensorlake_spark.delta.log.requirements import DATASET, DATASET_FORMAT, SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.leaf_columns import leaf_columns
from tensorlake_spark.delta.store.storage import Storage


def table_schema(schema: pa.Schema) -> Schema:
    """Return the columns of samples as Delta has them.

    Examples
    --------
    >>> [field.name for field in table_schema(pa.schema([("sid", pa.int64())])).fields]
    ['sid']
    """
    return Schema.from_arrow(schema)


def properties_for(schema: pa.Schema) -> dict[str, str]:
    """Return the properties of a table of samples: what Spark writes to it keeps the shape of what we write."""
    kept = ("delta.checkpointInterval", "parquet.page.size.row.check.min",
            "parquet.page.size.row.check.max", "parquet.compression")  # fmt: skip
    out = {name: TABLE_PROPERTIES[name] for name in kept}
    out |= {DATASET: str(DATASET_FORMAT), "parquet.block.size": str(ROW_GROUP_BYTES)}
    return out | _payload_properties(schema)


def _payload_properties(schema: pa.Schema) -> dict[str, str]:
    names = ("parquet.enable.dictionary", "parquet.column.statistics.enabled")
    payload = [leaf.path for leaf in leaf_columns(schema) if leaf.is_payload]
    return {f"{name}#{path}": "false" for path in payload for name in names}


def column_properties(
    configuration: Mapping[str, str], before: pa.Schema, after: pa.Schema
) -> dict[str, str]:
    """Return the properties of a table whose columns change: those of payloads name the columns that it has then.

    Parameters
    ----------
    configuration : mapping of str to str
        Its properties.
    before, after : pyarrow.Schema
        Its columns.
    """
    gone = _payload_properties(before).keys()
    kept = {name: value for name, value in configuration.items() if name not in gone}
    return kept | _payload_properties(after)


def create_samples_table(
    storage: Storage,
    schema: pa.Schema,
    properties: Mapping[str, str] | None = None,
    must_be_new: bool = False,
) -> Snapshot:
    """Create an empty table of samples, or open the one that is there, or that somebody else was faster to create.

    Parameters
    ----------
    storage : Storage
        Where.
    schema : pyarrow.Schema
        Its columns.
    properties : mapping, optional
        More properties of the table.
    must_be_new : bool
        Whether a table that is there is an error: InvalidOptionError.
    """
    said = {**properties_for(schema), **(properties or {})}
    return create_table(storage, table_schema(schema), said, SAMPLES, must_be_new)
