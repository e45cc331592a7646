"""What the log, and footers, say of a file's rows: counts, bounds and nulls of its leaf columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.row import SCHEMA, Row
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec

BOUNDED = (
    "id", "seq", "nnz", *(f"{side}.d{k}" for side in ("lo", "hi") for k in range(STORED_AXES)),
)  # fmt: skip
"""Leaf columns that have statistics."""


@dataclass(slots=True)
class Statistics:
    """Statistics of some rows.

    Attributes
    ----------
    records : int
        How many rows.
    least, most : dict
        The bounds of each leaf column that has values.
    nulls : dict of str to int
        How many rows have none.
    """

    records: int = 0
    least: dict[str, Any] = field(default_factory=dict)
    most: dict[str, Any] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: pa.RecordBatch | pa.Table) -> Statistics:
        """Return the statistics of a batch, or a table."""
        out = cls(rows.num_rows)
        for name in BOUNDED:
            column = _leaf(rows, name)
            nulls = out.nulls[name] = column.null_count
            if nulls == out.records:
                continue
            if nulls or name == "id":
                bounds = pc.min_max(column)
                out.least[name], out.most[name] = bounds["min"].as_py(), bounds["max"].as_py()
            else:  # which NumPy tells in half the time, for the few rows of a row group
                numbers = column.to_numpy()
                out.least[name], out.most[name] = int(numbers.min()), int(numbers.max())
        return out

    @classmethod
    def of_encoded(
        cls, specs: Sequence[TensorSpec], seqs: Sequence[int], rows: Sequence[Row]
    ) -> Statistics:
        """Return the statistics of the table that encoded rows become, in a fraction of the time of its columns."""
        out = cls(len(rows))
        said: dict[str, Sequence[Any]] = {
            "id": [spec.id for spec in specs],
            "seq": seqs,
            "nnz": [row.nnz for row in rows],
        }
        for axis in range(STORED_AXES):
            said[f"lo.d{axis}"] = [row.lo[axis] for row in rows if len(row.lo) > axis]
            said[f"hi.d{axis}"] = [row.hi[axis] for row in rows if len(row.hi) > axis]
        for name in BOUNDED:
            values = said[name]
            out.nulls[name] = out.records - len(values)
            if values:
                kind = str if name == "id" else int  # numbers may be NumPy's
                out.least[name], out.most[name] = kind(min(values)), kind(max(values))
        return out

    def add(self, other: Statistics) -> None:
        """Take in the statistics of other rows."""
        self.records += other.records
        for name, low in other.least.items():
            high = other.most[name]
            self.least[name] = min(low, self.least.get(name, low))
            self.most[name] = max(high, self.most.get(name, high))
        for name, count in other.nulls.items():
            self.nulls[name] = self.nulls.get(name, 0) + count

    @classmethod
    def all_of(cls, parts: Iterable[Statistics]) -> Statistics:
        """Return the statistics of all parts."""
        out = cls()
        for part in parts:
            out.add(part)
        return out

    def passed(self, least: Mapping[str, Any], most: Mapping[str, Any]) -> list[str]:
        """Return what lies outside of the bounds that are said; those may be wider, or missing."""
        out = []
        for name, low in self.least.items():
            high = self.most[name]
            if least.get(name) is not None and low < least[name]:
                out.append(f"min of {name} is {least[name]!r:.60}, and a row has {low!r:.60}")
            if most.get(name) is not None and high > most[name]:
                out.append(f"max of {name} is {most[name]!r:.60}, and a row has {high!r:.60}")
        return out

    def to_json(self) -> str:
        """Return them as the log has them."""
        said = {
            "numRecords": self.records,
            "minValues": _nest(self.least),
            "maxValues": _nest(self.most),
            "nullCount": _nest(self.nulls),
        }
        return json.dumps(said, separators=(",", ":"))


def bounds_of(parts: Sequence[Statistics]) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return for each leaf column with values the least and the greatest one of each part, None where it has none."""
    return {
        name: ([part.least.get(name) for part in parts], [part.most.get(name) for part in parts])
        for name in BOUNDED
        if any(name in part.least for part in parts)
    }


def flat(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log says by the names of the leaves."""
    out: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            out |= {f"{name}.{leaf}": inner for leaf, inner in value.items()}
        else:
            out[name] = value
    return out


def _nest(leaves: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in leaves.items():
        column, _, leaf = name.partition(".")
        if leaf:
            out.setdefault(column, {})[leaf] = value
        else:
            out[name] = value
    return out


def _leaf(rows: pa.RecordBatch | pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    name, _, leaf = name.partition(".")
    column = rows.column(name)
    if not leaf:
        return column
    is_one = isinstance(column, pa.ChunkedArray) and column.num_chunks == 1
    corners = column.chunk(0) if is_one else column
    if isinstance(corners, pa.StructArray) and not corners.null_count:
        return corners.field(leaf)
    # It knows the nulls of the struct itself, and takes ten times as long.
    return pc.struct_field(column, leaf)


_LEAVES = BOUNDED[3:]
_TYPES = dict.fromkeys(BOUNDED, "INT64") | {"id": "BYTE_ARRAY STRING"}
_known: tuple[pq.ParquetSchema, dict[str, int]] | None = None


def places_of(schema: pq.ParquetSchema) -> dict[str, int]:
    """Return where each leaf column of a data file stands, by its path.

    Raises
    ------
    CorruptDataError
        If one of ours is missing, or of another type.
    """
    global _known  # the files of a table mostly have one schema
    if _known is not None and schema.equals(_known[0]):
        return _known[1]
    columns = [schema.column(i) for i in range(len(schema))]
    places = {column.path: i for i, column in enumerate(columns)}
    have = {*places, *(path.partition(".")[0] for path in places)}
    missing = [name for name in (*SCHEMA.names, *_LEAVES) if name not in have]
    if missing:
        raise CorruptDataError(f"the file has no column {', '.join(missing)}")
    for name, wanted in _TYPES.items():
        column = columns[places[name]]
        found = f"{column.physical_type} {column.logical_type.type}"
        if not found.startswith(wanted):
            raise CorruptDataError(f"the column {name} of the file is {found}, not {wanted}")
    _known = schema, places
    return places
