"""Values of samples: columns of the table -> what their types decode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.links.link_columns import linked_values
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.base import Tiled, Type
from tensorlake_spark.datasets.types.media.recordings import Video
from tensorlake_spark.datasets.types.nested import link_in
from tensorlake_spark.datasets.types.schema import column_of
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.stored_samples import StoredSamples

Array = np.ndarray[Any, Any]

BATCH_BYTES = 16 << 20
"""Bytes of a batch of samples, about."""


def parts_of(name: str) -> tuple[str, ...]:
    """Return the names of the structs around a column and its own.

    Examples
    --------
    >>> parts_of("training/boxes")
    ('training', 'boxes')
    """
    return tuple(name.split("/"))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_column(parts: StoredParts, name: str, positions: Array, views: bool = True) -> pa.Array:
    """Return a column of some samples as it is stored."""
    if parts.is_apart(name):
        return whole(parts.column(name, positions, views))
    return whole(column_of(parts.stored.rows([parts_of(name)], positions, views), name))


def read_table(
    parts: StoredParts, names: Sequence[str], positions: Array, views: bool = False
) -> pa.Table:
    """Return columns of some samples as they are stored, those of a group as a struct."""
    table = parts.stored.rows([parts_of(name) for name in names], positions, views)
    for name in names:
        if parts.is_apart(name):
            table = _put(table, parts_of(name), parts.column(name, positions, views))
    return table


def _put(table: pa.Table, path: tuple[str, ...], column: pa.ChunkedArray) -> pa.Table:
    """Return a table with a column in the place of one that is null."""
    place = table.schema.get_field_index(path[0])
    field = table.schema.field(place)
    if len(path) == 1:
        return table.set_column(place, field.with_type(column.type), column)
    around = _put_inside(whole(table.column(place)), path[1:], whole(column))
    return table.set_column(place, field.with_type(around.type), around)


def _put_inside(around: pa.Array, path: tuple[str, ...], column: pa.Array) -> pa.Array:
    parts, fields = around.flatten(), list(around.type)
    place = around.type.get_field_index(path[0])
    parts[place] = column if len(path) == 1 else _put_inside(parts[place], path[1:], column)
    fields[place] = fields[place].with_type(parts[place].type)
    return pa.StructArray.from_arrays(parts, fields=fields)


def values_of(
    parts: StoredParts, name: str, array: pa.Array, positions: Array, stack: bool = True
) -> Any:
    """Return the values of a stored column: one ndarray where the type stacks, else a list.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset: large samples are read from their tiles.
    name : str
        The column.
    array : pyarrow.Array
        As it is stored.
    positions : int64 ndarray
        Of the samples in `array`.
    stack : bool
        Whether it may be one ndarray.
    """
    kind = parts.schema[name]
    if link_in(kind) is not None:
        return _linked(parts.rules, kind, name, array, positions)
    if isinstance(kind, Video):
        return parts.videos(name, positions)
    if not (is_tileable(kind) and array.field("data").null_count):
        return decoded(array, kind) if stack else kind.decode(array)
    values = kind.decode(array)
    for place, value in enumerate(values):
        if isinstance(value, Tiled):
            values[place] = parts.tensor(name, int(positions[place]), value)[...]
    stacks = stack and kind.stacks and not array.null_count
    return np.stack(values) if stacks else values


def _linked(
    rules: LinkRules, kind: Type, name: str, array: pa.Array, positions: Array
) -> list[Any]:
    """Return what links point to; errors name samples, so those that follow one another are fetched together."""
    out: list[Any] = []
    for run in np.split(np.arange(len(positions)), np.flatnonzero(np.diff(positions) != 1) + 1):
        if len(run):
            some = array.slice(int(run[0]), len(run))
            out += linked_values(some, kind, rules, name, int(positions[run[0]]))
    return out


def decoded(array: pa.Array, kind: Type) -> Any:
    """Return the values of an array: one ndarray where the type stacks, else a list."""
    if kind.stacks and not array.null_count:
        return kind.stack(array)
    return kind.decode(array)


def runs_of(parts: StoredParts, names: Sequence[str], positions: Array) -> Iterator[Array]:
    """Yield the positions in runs whose columns have about `BATCH_BYTES` bytes."""
    yield from _runs(row_bytes(parts, names), positions)


def row_bytes(parts: StoredParts, names: Sequence[str]) -> int:
    """Return how many bytes a sample has in some columns, about, wherever these lie; tiles do not count."""
    stored = parts.stored
    tables = [(stored, stored.under([parts_of(name) for name in names]))]
    for name in names:
        table = parts.table_of(name) if parts.is_apart(name) else None
        if table is not None:
            tables.append((table, table.leaves))
    return _row_bytes(tables)


def runs_in(stored: StoredSamples, names: Sequence[str], positions: Array) -> Iterator[Array]:
    """Yield positions in runs as `runs_of` does, of columns in one table alone."""
    each = _row_bytes([(stored, stored.under([parts_of(name) for name in names]))])
    yield from _runs(each, positions)


def _row_bytes(tables: Sequence[tuple[StoredSamples, Sequence[LeafColumn]]]) -> int:
    each = 1
    for table, leaves in tables:
        files = table.files[:4]
        total = sum(file.size_of([x.path for x in leaves if file.has(x)]) for file in files)
        each += total // max(1, sum(int(file.starts[-1]) for file in files))
    return each


def _runs(each: int, positions: Array) -> Iterator[Array]:
    step = max(1, min(1 << 16, BATCH_BYTES // each))
    for start in range(0, len(positions), step):
        yield positions[start : start + step]
