"""The leaf columns of one data file, whoever wrote it."""

from __future__ import annotations

import pyarrow.parquet as pq

from tensorlake_spark.delta.samples.leaf_columns import leaf_columns


def places_in(schema: pq.ParquetSchema) -> dict[str, int]:
    """Return where each leaf column stands in a file, by the path that `LeafColumn` has.

    Other writers give other names to what lists and maps add, such as ``list.item``. Arrow knows them all.
    """
    columns = [schema.column(place) for place in range(len(schema))]
    if all(_is_usual(column.path, column.max_repetition_level) for column in columns):
        return {column.path: place for place, column in enumerate(columns)}
    leaves = leaf_columns(schema.to_arrow_schema())
    return {leaf.path: place for place, leaf in enumerate(leaves)}


def _is_usual(path: str, repeated: int) -> bool:
    """Whether a path in a file has the names that Parquet wants for its lists and maps."""
    return not repeated or path.count(".list.element") + path.count(".key_value.") == repeated
