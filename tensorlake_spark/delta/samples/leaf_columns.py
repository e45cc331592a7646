"""The leaf columns of samples, as Parquet has them: which of them are payload, and which have bounds in the log."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf column.

    Attributes
    ----------
    parts : tuple of str
        Names of the structs around it and its own, such as ``("image", "data")``.
    type : pyarrow.DataType
        Its type.
    depth : int
        How many of these may be null: the definition level of a value that is there.
    repeated : bool
        Whether it lies in a list.
    path : str
        Its path in Parquet: the parts with dots between, and those that a list adds.
    """

    parts: tuple[str, ...]
    type: pa.DataType
    depth: int
    repeated: bool
    path: str

    @property
    def is_payload(self) -> bool:
        """Whether its values are bytes of the user's: stored as they are, and not compressed again."""
        return bool(pa.types.is_binary(self.type) or pa.types.is_large_binary(self.type))

    @property
    def is_bounded(self) -> bool:
        """Whether the log has its bounds."""
        t = pa.types
        kinds = (t.is_integer, t.is_floating, t.is_string, t.is_date, t.is_timestamp)
        return not self.repeated and any(kind(self.type) for kind in kinds)


def leaf_columns(schema: pa.Schema) -> list[LeafColumn]:
    """Return the leaf columns of a schema, in order.

    Examples
    --------
    >>> image = pa.struct([("data", pa.binary()), ("height", pa.int32())])
    >>> [leaf.path for leaf in leaf_columns(pa.schema([("image", image), ("label", pa.int32())]))]
    ['image.data', 'image.height', 'label']
    """
    return [leaf for field in schema for leaf in _leaves(field, (), 0, False, "")]


def beginnings(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return what the names of a leaf column begin with: the structs around it, from the outermost on, and itself.

    Examples
    --------
    >>> beginnings(("image", "data"))
    [('image',), ('image', 'data')]
    """
    return [parts[: count + 1] for count in range(len(parts))]


def _leaves(
    field: pa.Field, above: tuple[str, ...], depth: int, repeated: bool, prefix: str
) -> Iterator[LeafColumn]:
    parts, path = (*above, field.name), f"{prefix}{field.name}"
    depth += field.nullable
    kind = field.type
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaves(inner, parts, depth, repeated, f"{path}.")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        # Parquet has a group with a repeated group in it; Arrow calls what is in that "element".
        element = kind.value_field.with_name("element")
        yield from _leaves(element, parts, depth + 1, True, f"{path}.list.")
    elif pa.types.is_map(kind):
        for inner, name in ((kind.key_field, "key"), (kind.item_field, "value")):
            yield from _leaves(inner.with_name(name), parts, depth + 1, True, f"{path}.key_value.")
    else:
        yield LeafColumn(parts, kind, depth, repeated, path)


def has_views(kind: pa.DataType) -> bool:
    """Whether a type is of views of bytes, or a struct with such a field."""
    if pa.types.is_struct(kind):
        return any(has_views(field.type) for field in kind)
    return bool(pa.types.is_binary_view(kind))


def with_views(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose payloads are views, also in structs; those in lists stay as they are."""
    return pa.schema(
        [field.with_type(_viewed(field.type)) for field in schema], metadata=schema.metadata
    )


def _viewed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.binary_view()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_viewed(field.type)) for field in kind])
    return kind


KEPT_BYTES = 64 << 20
"""Bytes of columns of whole files that are kept."""


class SmallColumns:
    """Columns of whole files that were read last, 64 MiB of them at most."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[str, tuple[str, ...]], pa.Table] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def get(self, path: str, columns: tuple[str, ...]) -> pa.Table | None:
        """Return columns of a file, None if they are not kept."""
        with self._lock:
            found = self._tables.get((path, columns))
            if found is not None:
                self._tables.move_to_end((path, columns))
            return found

    def keep(self, path: str, columns: tuple[str, ...], table: pa.Table) -> None:
        """Keep columns of a file, and no longer those that nobody asked for."""
        with self._lock:
            if (path, columns) in self._tables:
                return
            self._tables[path, columns] = table
            self._nbytes += table.nbytes
            while self._nbytes > KEPT_BYTES:
                _, gone = self._tables.popitem(last=False)
                self._nbytes -= gone.nbytes


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
