"""Values of tensors, read for the rows of a table: only their columns, and only the parts that are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.maintenance.value_check import tiled_samples
from tensorlake_spark.datasets.samples.sample_reading import read_column, values_of
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.query.engine.image_values import image_batch
from tensorlake_spark.query.engine.shape_values import stand_ins
from tensorlake_spark.query.functions.needed_parts import SHAPE, box_of
from tensorlake_spark.query.functions.row_values import Values, beside_nulls, gathered
from tensorlake_spark.query.sources.source_columns import TensorLeaf
from tensorlake_spark.threads import CopiedLock

Array = np.ndarray[Any, Any]


class ReadCounts:
    """What was read of tensors: rows and bytes of each column; several threads count."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], int] = {}
        self.bytes: dict[tuple[str, str], int] = {}
        self._lock = CopiedLock()

    def add(self, source: str, column: str, rows: int, nbytes: int) -> None:
        """Count a read."""
        key = (source, column)
        with self._lock:
            self.rows[key] = self.rows.get(key, 0) + rows
            self.bytes[key] = self.bytes.get(key, 0) + nbytes


class TileReading:
    """Reads what a key needs of large samples from their tiles, and counts the bytes of these.

    Parameters
    ----------
    key : tuple, str or None
        As `tensor_values` takes it.
    """

    def __init__(self, key: tuple[Any, ...] | str | None) -> None:
        self._key = key if isinstance(key, tuple) else None
        self._sizes: list[int] = []  # several threads add to it

    @property
    def nbytes(self) -> int:
        """Bytes of the row groups with the tiles that were needed so far."""
        return sum(self._sizes)

    def count(self, tensor: TensorRef) -> tuple[slice, ...] | None:
        """Count what is needed of a sample, and return the box that it is; None for all of it."""
        box = None if self._key is None else box_of(self._key, tensor.shape)
        self._sizes.append(tensor.explain(... if box is None else box).n_bytes)
        return box

    def __call__(self, tensor: TensorRef) -> Any:
        """Return a sample of which only the part was read: the rest takes no memory until it is written."""
        box = self.count(tensor)
        if box is None:
            return tensor[...]
        out = np.zeros(tensor.shape, tensor.dtype)
        out[box] = np.asarray(tensor[box])
        return out


def tensor_values(
    leaf: TensorLeaf,
    sids: pa.Array,
    key: tuple[Any, ...] | str | None = None,
    counts: ReadCounts | None = None,
    memory: BatchBuffers | None = None,
) -> Values:
    """Return a column of a dataset for some sids, in their order; a null sid gives None.

    Parameters
    ----------
    leaf : TensorLeaf
        The column.
    sids : pyarrow.Array of int64
        Of the samples.
    key : tuple or str, optional
        The part of each sample that is needed: of a tiled one only that is read. Of ``"shape"`` the values are zeros.
    counts : ReadCounts, optional
        Counts what is read.
    memory : BatchBuffers, optional
        Where images are decoded.
    """
    numbers = np.asarray(sids.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    found = leaf.source.stored
    if found is None:
        return [None] * len(numbers)
    positions = found.positions_of(numbers)
    there = positions >= 0
    if there.all():
        found_all: Values = _values(leaf, positions, key, counts, memory)
        return found_all
    out: list[Any] = [None] * len(numbers)
    values = _values(leaf, positions[there], key, counts, memory)
    for place, value in zip(np.flatnonzero(there).tolist(), values, strict=True):
        out[place] = value
    return out


def _values(
    leaf: TensorLeaf,
    positions: Array,
    key: tuple[Any, ...] | str | None,
    counts: ReadCounts | None,
    memory: BatchBuffers | None,
) -> Any:
    """Return values of samples; each is read once, in the order in which they lie."""
    ordered, back = positions, None
    if len(positions) > 1 and (np.diff(positions) <= 0).any():
        ordered, back = np.unique(positions, return_inverse=True)
    parts = leaf.source.dataset.parts
    kind = parts.schema[leaf.column]
    known = stand_ins(parts, leaf.column, ordered) if key == SHAPE else None
    values: Any
    if known is not None:
        values, nbytes = known
    else:
        array = read_column(parts, leaf.column, ordered)
        values = image_batch(kind, array, memory, key)
        tiles = TileReading(key)
        if values is None:
            # A stack would write all of the samples of which a part is read.
            stack = not (isinstance(key, tuple) and _has_tiles(kind, array))
            values = values_of(parts, leaf.column, array, ordered, stack, tiles)
        nbytes = payload_bytes(array) + tiles.nbytes
    if counts is not None:
        counts.add(leaf.source_name, leaf.column, len(ordered), nbytes)
    if back is None:
        return values
    return values[back] if isinstance(values, np.ndarray) else [values[n] for n in back.tolist()]


def _has_tiles(kind: Type, array: pa.Array) -> bool:
    return is_tileable(kind) and bool(array.field("data").null_count)


def tile_bytes(
    parts: StoredParts,
    column: str,
    array: pa.Array,
    positions: Array,
    keys: Sequence[tuple[Any, ...] | str | None],
) -> int:
    """Return the bytes of the tiles that a read of large samples needs, for each of some keys; none is read for it.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    column : str
        The column.
    array : pyarrow.Array
        As it is stored.
    positions : int64 ndarray
        Of the samples in `array`.
    keys : sequence
        Each as `tensor_values` takes it.
    """
    readings = [TileReading(key) for key in keys]
    for row, said in tiled_samples(parts.schema[column], array):
        tensor = parts.tensor(column, int(positions[row]), said)
        for reading in readings:
            reading.count(tensor)
    return sum(reading.nbytes for reading in readings)


def payload_bytes(array: pa.Array) -> int:
    """Return the bytes of the samples in a stored column.

    Examples
    --------
    >>> payload_bytes(pa.array([b"abc", None, b"de"])), payload_bytes(pa.array([1, 2], pa.int32()))
    (5, 8)
    """
    if isinstance(array, pa.ChunkedArray):
        return sum(payload_bytes(chunk) for chunk in array.chunks)
    t = pa.types
    if t.is_struct(array.type):
        return sum(payload_bytes(part) for part in array.flatten())
    if t.is_list(array.type) or t.is_large_list(array.type):
        return payload_bytes(array.flatten())
    if t.is_binary(array.type) or t.is_large_binary(array.type):
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    if t.is_binary_view(array.type):
        if not len(array):
            return 0
        words = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
        lengths = words[array.offset : array.offset + len(array), 0].astype(np.int64)
        if array.null_count:
            lengths = lengths[np.asarray(array.is_valid().to_numpy(zero_copy_only=False))]
        return int(lengths.sum())
    if t.is_string(array.type) or t.is_large_string(array.type) or t.is_dictionary(array.type):
        return 0  # names of dtypes and formats, which files keep once
    return int(len(array) * max(1, array.type.bit_width // 8))


def stored_values(column: pa.Array | pa.ChunkedArray, kind: Type | None = None) -> Values:
    """Return a stored column as values of rows: what its type decodes, if it has one."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if kind is not None and column.type != kind.storage():
        try:
            column = column.cast(kind.storage())
        except pa.ArrowException:
            kind = None
    if kind is not None:
        stacks = kind.stacks and not column.null_count
        return kind.stack(column) if stacks else kind.decode(column)
    nested = pa.types.is_nested(column.type)
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not column.null_count and (plain or pa.types.is_boolean(column.type)):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if nested and pa.types.is_list(column.type):
        return [None if v is None else np.asarray(v) for v in column.to_pylist()]
    if pa.types.is_timestamp(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return list(column.to_pylist())


def operand_values(column: pa.Array | pa.ChunkedArray, kind: Type | None = None) -> Values:
    """Return a stored column as expressions take it: numbers have its dtype, also beside a null.

    Examples
    --------
    >>> operand_values(pa.array([1, None], pa.int8()))
    [np.int8(1), None]
    """
    if column.null_count:
        values = stored_values(column.drop_null(), kind)
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            return beside_nulls(values, np.asarray(column.is_valid()))
    return stored_values(column, kind)


def grouped(values: Any, ends: Array) -> list[Any]:
    """Return the values of groups: of each one array where its members are alike, else a list.

    Examples
    --------
    >>> grouped(np.arange(4), np.array([0, 3, 4]))
    [array([0, 1, 2]), array([3])]
    """
    out: list[Any] = []
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        some = values[start:stop]
        out.append(some if isinstance(some, np.ndarray) else _stacked(some))
    return out


def _stacked(items: list[Any]) -> Any:
    if items and all(isinstance(item, (np.ndarray, np.generic)) for item in items):
        found = gathered(items)
        return found
    return items
