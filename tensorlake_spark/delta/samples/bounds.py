"""Bounds of the leaf columns of samples, as the log has them."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from tensorlake_spark.delta.samples.leaf_columns import LeafColumn

_LONGEST_BOUND = 32  # characters of a text in the log: Delta's own limit
CUT = dt.timedelta(microseconds=999)
"""What a bound of times may lack: others cut it to milliseconds."""

_AT_ONCE = 1 << 14  # rows
_AT_ONCE_BYTES = 4 << 20  # of texts, which would stay in memory


class Bounds:
    """Bounds of a leaf column, None where they are not known, and how many nulls it has."""

    __slots__ = ("exact", "least", "most", "nulls")

    def __init__(self, least: Any, most: Any, nulls: int, exact: bool = True) -> None:
        self.least, self.most, self.nulls = least, most, nulls
        self.exact = exact  # False where values have no order, as NaN

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Bounds:
        """Return the bounds of some values."""
        if column.null_count == len(column):
            return cls(None, None, column.null_count)
        # Spark takes NaN for greater than all, Arrow leaves it out: say nothing.
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            return cls(None, None, column.null_count, exact=False)
        found = pc.min_max(column)
        return cls(found["min"].as_py(), found["max"].as_py(), column.null_count)

    def joined(self, other: Bounds | None) -> Bounds:
        """Return the bounds of these values and others."""
        if other is None:
            return self
        nulls = self.nulls + other.nulls
        if not (self.exact and other.exact):
            return Bounds(None, None, nulls, exact=False)
        if self.least is None or other.least is None:
            known = other if self.least is None else self
            return Bounds(known.least, known.most, nulls)
        return Bounds(min(self.least, other.least), max(self.most, other.most), nulls)


class FileBounds:
    """What the log says of the rows of a data file: computed for many rows at once.

    Parameters
    ----------
    leaves : sequence of LeafColumn
        Leaf columns of the table.
    """

    def __init__(self, leaves: Sequence[LeafColumn]) -> None:
        self._leaves = [leaf for leaf in leaves if leaf.is_bounded]
        self._known: dict[LeafColumn, Bounds] = {}
        self._waiting: list[list[pa.Array]] = [[] for _ in self._leaves]
        self._rows = self._waiting_rows = self._waiting_bytes = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows of the file."""
        for leaf, waiting in zip(self._leaves, self._waiting):
            column = leaf_of(rows, leaf)
            waiting += column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if pa.types.is_string(leaf.type):
                self._waiting_bytes += column.nbytes
        self._rows += rows.num_rows
        self._waiting_rows += rows.num_rows
        if self._waiting_rows > _AT_ONCE or self._waiting_bytes > _AT_ONCE_BYTES:
            self._settle()

    def _settle(self) -> None:
        if self._waiting_rows:
            for leaf, waiting in zip(self._leaves, self._waiting):
                found = Bounds.of(pa.chunked_array(waiting, leaf.type))
                self._known[leaf] = found.joined(self._known.get(leaf))
                waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0

    def to_json(self) -> str:
        """Return what the log says of all rows."""
        self._settle()
        said: dict[str, Any] = {
            "numRecords": self._rows,
            "minValues": {},
            "maxValues": {},
            "nullCount": {},
        }
        for leaf, bounds in self._known.items():
            put_bound(said["minValues"], leaf.parts, _said(bounds.least, below=True))
            put_bound(said["maxValues"], leaf.parts, _said(bounds.most, below=False))
            put_bound(said["nullCount"], leaf.parts, bounds.nulls)
        return json.dumps(said)


def _said(value: Any, below: bool) -> Any:
    """Return a bound as the log has it, None where it has none."""
    if isinstance(value, str) and len(value) > _LONGEST_BOUND:
        return value[:_LONGEST_BOUND] if below else None
    if isinstance(value, dt.datetime):
        return time_bound(value, is_most=not below)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def time_bound(value: dt.datetime, is_most: bool) -> str | None:
    """Return a bound of times as the log has it: in milliseconds, so that it may be wider, never narrower.

    In the last millisecond of the year 9999 there is no upper one, which is None.
    """
    moved = later(value, CUT) if is_most else value
    if moved is None:
        return None
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def later(time: dt.datetime, by: dt.timedelta) -> dt.datetime | None:
    """Return a time some time later, None where Python has no such time."""
    try:
        return time + by
    except OverflowError:
        return None


def put_bound(tree: dict[str, Any], parts: Sequence[str], value: Any) -> None:
    """Put what is known of a leaf column where the log has it, in the objects of the structs around it."""
    if value is None:
        return
    for part in parts[:-1]:
        tree = tree.setdefault(part, {})
    tree[parts[-1]] = value


def leaf_of(rows: pa.Table, leaf: LeafColumn) -> pa.Array | pa.ChunkedArray:
    """Return a leaf column of rows; null where a struct around it is."""
    column = rows.column(leaf.parts[0])
    if column.num_chunks != 1:
        return pc.struct_field(column, list(leaf.parts[1:])) if len(leaf.parts) > 1 else column
    found = column.chunk(0)
    for at, part in enumerate(leaf.parts[1:], 1):
        if found.null_count:  # what lies under a null is null
            return pc.struct_field(found, list(leaf.parts[at:]))
        found = found.field(part)
    return found


def guarantees_of(
    actions: pa.Table, places: Sequence[int], leaves: Sequence[LeafColumn]
) -> list[pads.Expression]:
    """Return for each file what the log says of the values of some leaf columns.

    Parameters
    ----------
    actions : pyarrow.Table
        What the log says of all files.
    places : sequence of int
        Where it says it of each file.
    leaves : sequence of LeafColumn
        The columns.
    """
    out = [pads.scalar(True)] * len(places)
    said = {*actions.column_names}  # a list that pyarrow makes anew each time
    for leaf in leaves:
        name = ".".join(leaf.parts)
        if not leaf.is_bounded or f"min.{name}" not in said:
            continue
        least, most = (
            actions[f"{side}.{name}"].to_pylist()
            if f"{side}.{name}" in said
            else [None] * actions.num_rows
            for side in ("min", "max")
        )
        field = pc.field(*leaf.parts)
        for number, at in enumerate(places):
            if least[at] is None:
                continue
            # Arrow concludes from one comparison or null, and from nothing where two of them stand before the OR.
            known = (field >= pa.scalar(least[at], leaf.type)) | field.is_null()
            most_here: Any = most[at]
            if most_here is not None and pa.types.is_timestamp(leaf.type):
                most_here = later(most_here, CUT)
            if most_here is not None:
                known &= (field <= pa.scalar(most_here, leaf.type)) | field.is_null()
            out[number] = out[number] & known
    return out


def files_left(
    schema: pa.Schema, guarantees: Sequence[pads.Expression], asked: Sequence[pads.Expression]
) -> list[int]:
    """Return the numbers of the files that may have rows for which an expression is true.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    guarantees, asked : sequence of pyarrow.dataset.Expression
        For each file what `guarantees_of` returned, and the expression.
    """
    # Arrow compares the two only for a file. It does not open it for that, so any name will do.
    kind, place = pads.ParquetFileFormat(), LocalFileSystem()
    files = (kind.make_fragment("file", place, known) for known in guarantees)
    tables = (pads.FileSystemDataset([file], schema, kind, place) for file in files)
    return [
        number
        for number, (table, where) in enumerate(zip(tables, asked, strict=True))
        if any(True for _ in table.get_fragments(where))
    ]


def groups_left(schema: pa.Schema, footer: pq.FileMetaData, asked: pads.Expression) -> list[int]:
    """Return the numbers of the row groups of a file that may have rows for which an expression is true."""
    # Arrow reads a footer anew wherever it finds one: here, in memory.
    memory = pa.BufferOutputStream()
    footer.write_metadata_file(memory)
    file = pads.ParquetFileFormat().make_fragment(pa.BufferReader(memory.getvalue()))
    try:
        return [group.id for group in file.subset(asked, schema=schema).row_groups]
    except pa.ArrowNotImplementedError:
        # Files of deltalake ask for views of texts, which Arrow compares with no text.
        return [*range(footer.num_row_groups)]
