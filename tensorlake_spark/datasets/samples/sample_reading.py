"""Values of samples: columns of the table -> what their types decode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.links.link_columns import linked_values
from tensorlake_spark.datasets.types.base import Tiled, Type
from tensorlake_spark.datasets.types.media.recordings import Video
from tensorlake_spark.datasets.types.nested import link_in
from tensorlake_spark.datasets.types.schema import column_of
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.threads import beside

Array = np.ndarray[Any, Any]

BATCH_BYTES = 16 << 20
"""Bytes of a batch of samples, about."""

_LOOKED_AT = 4  # samples whose files tell how many bytes a sample has
_FEW = 64  # samples whose columns are read each for itself in an object store


def parts_of(name: str) -> tuple[str, ...]:
    """Return the names of the structs around a column and its own.

    Examples
    --------
    >>> parts_of("training/boxes")
    ('training', 'boxes')
    """
    return tuple(name.split("/"))


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_column(parts: StoredParts, name: str, positions: Array, views: bool = True) -> pa.Array:
    """Return a column of some samples as it is stored."""
    if parts.is_apart(name):
        return whole(parts.column(name, positions, views))
    return whole(column_of(parts.stored.rows([parts_of(name)], positions, views), name))


def read_table(
    parts: StoredParts, names: Sequence[str], positions: Array, views: bool = False
) -> pa.Table:
    """Return columns of some samples as they are stored, in the order of the schema; those of a group are a struct."""
    apart = [name for name in names if parts.is_apart(name)]
    # Rows have nothing of an apart column but the groups around it.
    in_rows = [parts_of(name) for name in names if name not in apart or "/" in name]

    def read(name: str | None) -> Any:
        if name is not None:
            return parts.column(name, positions, views)
        return parts.stored.rows(in_rows, positions, views) if in_rows else pa.table({})

    tasks = (None, *apart)
    waits = apart and parts.stored.snapshot.remote is not None
    rows, *others = beside(read, tasks, "samples") if waits else map(read, tasks)
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    for name, column in zip(apart, others, strict=True):
        top, *inner = parts_of(name)
        columns[top] = _filled(whole(columns[top]), inner, whole(column)) if inner else column
    fields = [f.with_type(columns[f.name].type) for f in parts.stored.schema if f.name in columns]
    return pa.table([columns[field.name] for field in fields], pa.schema(fields))


def _filled(around: pa.Array, path: Sequence[str], column: pa.Array) -> pa.Array:
    """Return structs with a column in the place of one that is null."""
    parts, fields = around.flatten(), list(around.type)
    place = around.type.get_field_index(path[0])
    parts[place] = column if len(path) == 1 else _filled(parts[place], path[1:], column)
    fields[place] = fields[place].with_type(parts[place].type)
    return pa.StructArray.from_arrays(parts, fields=fields)


def values_of(
    parts: StoredParts,
    name: str,
    array: pa.Array,
    positions: Array,
    stack: bool = True,
    tiles: Callable[[TensorRef], Any] | None = None,
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
    tiles : callable, optional
        Reads a large sample from the tensor with its tiles; all of it by default.
    """
    kind = parts.schema[name]
    if link_in(kind) is not None:
        return list(linked_values(array, kind, parts.rules, name, positions.tolist()))
    if isinstance(kind, Video):
        return parts.videos(name, positions)
    if not (is_tileable(kind) and array.field("data").null_count):
        return decoded_samples(kind, array, name, positions, stack)
    values = decoded_samples(kind, array, name, positions)
    places = [place for place, value in enumerate(values) if isinstance(value, Tiled)]

    def read(place: int) -> Any:
        tensor = parts.tensor(name, int(positions[place]), values[place])
        return tensor[...] if tiles is None else tiles(tensor)

    is_far = parts.stored.snapshot.remote is not None
    found = beside(read, places, "samples") if is_far else map(read, places)
    for place, value in zip(places, found, strict=True):
        values[place] = value
    stacks = stack and kind.stacks and not array.null_count
    return np.stack(values) if stacks else values


def read_values(
    parts: StoredParts, names: Sequence[str], positions: Array, stack: bool = False
) -> dict[str, Any]:
    """Return the values of columns of some samples, each as `values_of` does.

    Of a few samples in an object store, columns are read side by side: they wait for it together.
    """
    if parts.stored.snapshot.remote is None or len(positions) > _FEW or len(names) < 2:
        return _values_in(parts, names, positions, stack)
    alone = [name for name in names if _asks_alone(parts, name)]
    rest = [name for name in names if name not in {*alone}]
    groups = [*([name] for name in alone), *([rest] if rest else [])]
    found: dict[str, Any] = {}
    for values in beside(lambda some: _values_in(parts, some, positions, stack), groups, "columns"):
        found |= values
    return {name: found[name] for name in names}


def _asks_alone(parts: StoredParts, name: str) -> bool:
    """Whether values of a column lie elsewhere than the scalars, which one read gives."""
    if parts.is_apart(name) or link_in(parts.schema[name]) is not None:
        return True
    return any(leaf.is_payload for leaf in parts.stored.under([parts_of(name)]))


def _values_in(
    parts: StoredParts, names: Sequence[str], positions: Array, stack: bool
) -> dict[str, Any]:
    table = read_table(parts, names, positions, views=True)
    columns = {name: whole(column_of(table, name)) for name in names}
    return {
        name: values_of(parts, name, column, positions, stack) for name, column in columns.items()
    }


def decoded_samples(
    kind: Type, array: pa.Array, name: str, positions: Array, stack: bool = False
) -> Any:
    """Return what a type decodes of a column of samples, one ndarray if it may and the type stacks.

    Raises
    ------
    CorruptDataError
        If stored bytes are not what was written. It names the column, and the sample by its position.
    """
    try:
        return decoded(array, kind) if stack else kind.decode(array)
    except CorruptDataError:
        for place, position in enumerate(positions.tolist()):
            try:
                kind.decode(array.slice(place, 1))
            except CorruptDataError as error:
                raise type(error)(f"column {name!r}, sample {position}: {error}") from error
        raise  # of the column, and not of one sample


def decoded(array: pa.Array, kind: Type) -> Any:
    """Return the values of an array: one ndarray where the type stacks, else a list."""
    if kind.stacks and not array.null_count:
        return kind.stack(array)
    return kind.decode(array)


def runs_of(parts: StoredParts, names: Sequence[str], positions: Array) -> Iterator[Array]:
    """Yield the positions in runs whose columns have about `BATCH_BYTES` bytes."""
    yield from _runs(row_bytes(parts, names, positions), positions)


def row_bytes(parts: StoredParts, names: Sequence[str], positions: Array) -> int:
    """Return how many bytes each of some samples has in some columns, about, wherever these lie; tiles do not count.

    No files are opened but those of a few of these samples.
    """
    stored, some = parts.stored, _a_few(positions)
    each = 1 + _row_bytes(stored, stored.under([parts_of(name) for name in names]), some)
    for name in names:
        table = parts.table_of(name) if parts.is_apart(name) else None
        if table is not None:
            rows = parts.rows_of(name, some)
            each += _row_bytes(table, table.leaves, rows[rows >= 0])
    return each


def runs_in(stored: StoredSamples, names: Sequence[str], positions: Array) -> Iterator[Array]:
    """Yield positions in runs as `runs_of` does, of columns in one table alone."""
    leaves = stored.under([parts_of(name) for name in names])
    each = 1 + _row_bytes(stored, leaves, _a_few(positions))
    yield from _runs(each, positions)


def _a_few(positions: Array) -> Array:
    return positions[:: max(1, len(positions) // _LOOKED_AT)][:_LOOKED_AT]


def _row_bytes(table: StoredSamples, leaves: Sequence[LeafColumn], some: Array) -> int:
    files = [table.files[number] for number in np.unique(table.locate(some)[0]).tolist()]
    total = sum(file.size_of([x.path for x in leaves if file.has(x)]) for file in files)
    return int(total // max(1, sum(int(file.starts[-1]) for file in files)))


def _runs(each: int, positions: Array) -> Iterator[Array]:
    step = max(1, min(1 << 16, BATCH_BYTES // each))
    for start in range(0, len(positions), step):
        yield positions[start : start + step]
