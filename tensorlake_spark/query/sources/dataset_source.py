"""A dataset at a version as a table of DuckDB: scalars are read from its own Parquet files, tensors by their sids."""

from __future__ import annotations

import copy
import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tensorlake_spark.datasets.dataset import Dataset, dataset
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.query.sources.duckdb_tables import Session, duckdb_type, quoted
from tensorlake_spark.query.sources.row_groups import Span, needed_files, needed_groups, spans
from tensorlake_spark.query.sources.source_columns import (
    Lazy,
    Named,
    Parts,
    Stored,
    TensorLeaf,
    folded,
)

SID = "sid"

_NULL = " ?"  # ends the name that says where a tensor is null; no column has a blank in its name

_MOST_VALUES, _MOST_BYTES, _MOST_FILES = 1 << 19, 8 << 20, 64
"""Columns with no more are read once, and given to DuckDB as a table: it would take longer to open their files."""


class DatasetSource:
    """A dataset at one version.

    Parameters
    ----------
    name : str
        What DuckDB calls it.
    data : Dataset
        The dataset; it is read at the version that it shows now.

    Attributes
    ----------
    columns : dict
        What it has under which name.
    used : set of str
        The columns that a query needs, by the names that DuckDB has for them; empty until a query is planned.
    uses : list of sequence of Span
        For each SELECT on it, what that says of stored columns.
    """

    def __init__(self, name: str, data: Dataset) -> None:
        self.name = name
        self.dataset = pinned(data)
        self.used: set[str] = set()
        self.uses: list[Sequence[Span]] = []
        self._paths: dict[str, tuple[Parts, pa.DataType]] = {SID: ((SID,), pa.int64())}
        self._present: dict[str, Parts] = {}
        self._view: str | None = None  # of its files, when a plan has been run
        self.columns: dict[Parts, Named] = {(SID,): Named(SID, Stored(("", SID)), False)}
        self.stored: StoredSamples | None = data.stored if data.version is not None else None
        schema = data.schema.to_arrow() if self.stored is None else self.stored.schema
        for column, kind in data.schema.items():
            self._add(column, kind, stored_type(schema, column))

    @property
    def uri(self) -> str:
        """Where it is."""
        return self.dataset.uri

    @property
    def version(self) -> int | None:
        """Its version."""
        return self.dataset.version

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def is_ordered(self) -> bool:
        """Whether DuckDB finds the samples in the order of their numbers."""
        return self.stored is None or (self.stored.is_sorted and not self.stored.snapshot.deletions)

    def _add(self, column: str, kind: Type, arrow: pa.DataType) -> None:
        parts = tuple(column.split("/"))
        nested = pa.types.is_nested(arrow)
        if not kind.apart and not nested:
            self._paths[column] = parts, arrow
            self.columns[folded(column)] = Named(column, Stored(("", column), kind))
            return
        leaf = TensorLeaf(self, column, ("", SID), self.name)
        self.columns[folded(column)] = Named(column, Lazy.of(exp.column("x0"), {"x0": leaf}))
        if kind.apart:
            return
        small = small_fields(arrow)
        for field in small:
            name = f"{column}.{field.name}"
            self._paths[name] = (*parts, field.name), field.type
            key = (*folded(column), field.name.casefold())
            self.columns.setdefault(key, Named(name, Stored(("", name)), False))
        self._present[column] = (*parts, small[0].name) if small else parts

    def presence(self, column: str) -> str | None:
        """Return the column of DuckDB that is null where a tensor is, None if DuckDB does not have it."""
        return f"{column}{_NULL}" if column in self._present else None

    def say(self, conditions: Iterable[Any], alias: str, parameters: Mapping[str, Any]) -> None:
        """Take in the conditions of a SELECT that reads it under an alias: all of them are true of what is wanted."""
        self.uses.append(spans(conditions, alias, self._paths, parameters))

    def groups(self, stored: StoredSamples) -> dict[int, list[int]] | None:
        """Return the row groups that the query may need, by the numbers of their files; None for all."""
        return needed_groups(stored, self.uses)

    # ------------------------------------------------------------------ DuckDB

    def attach(self, session: Session) -> None:
        """Make a view of DuckDB that has the columns that are used."""
        stored = self.stored
        wanted = [SID, *sorted(self.used - {SID})]
        if stored is None:
            columns = ", ".join(f"NULL::{self._duck(name)} AS {quoted(name)}" for name in wanted)
            session.make_view(self.name, f"SELECT {columns} LIMIT 0")
            return
        if not stored.snapshot.storage.is_local:
            session.register(self.name, self._table(stored, wanted, self.groups(stored)))
            return
        if self._view is None or stored.snapshot.deletions:
            numbers = needed_files(stored, self.uses)
            if self._is_small(stored, wanted, numbers):
                session.register(self.name, self._table(stored, wanted, dict.fromkeys(numbers)))
                return
            self._view = " UNION ALL ".join(self._parts(stored, session, wanted, numbers))
        session.make_view(self.name, self._view)

    def _is_small(self, stored: StoredSamples, wanted: list[str], numbers: list[int]) -> bool:
        """Whether columns of some files are so small that DuckDB gets them as a table."""
        rows = int(stored.file_counts[numbers].sum())
        if rows * len(wanted) > _MOST_VALUES or len(numbers) > _MOST_FILES:
            return False
        leaves = stored.under([self._path(name) for name in wanted])
        files = (stored.files[number] for number in numbers)
        sizes = (file.size_of([x.path for x in leaves if file.has(x)]) for file in files)
        return sum(sizes) <= _MOST_BYTES

    def files(self) -> list[str]:
        """Return the files that DuckDB may read."""
        if self.stored is None or not self.stored.snapshot.storage.is_local:
            return []
        base = self.stored.snapshot.storage.uri
        return [os.path.join(base, path) for path in self.stored.files.paths]

    def leaves(self, stored: StoredSamples) -> list[LeafColumn]:
        """Return the leaf columns that are used."""
        return stored.under([self._path(name) for name in (SID, *sorted(self.used - {SID}))])

    def _path(self, name: str) -> Parts:
        return (
            self._present[name.removesuffix(_NULL)]
            if name.endswith(_NULL)
            else self._paths[name][0]
        )

    def _duck(self, name: str) -> str:
        return "BOOLEAN" if name.endswith(_NULL) else duckdb_type(self._paths[name][1])

    def _parts(
        self, stored: StoredSamples, session: Session, wanted: list[str], numbers: list[int]
    ) -> Iterator[str]:
        """Yield a SELECT for each run of files that have the same columns: those that were added later are null."""
        if not numbers:
            columns = ", ".join(f"NULL::{self._duck(name)} AS {quoted(name)}" for name in wanted)
            yield f"SELECT {columns} LIMIT 0"
            return
        base = stored.snapshot.storage.uri
        runs: list[tuple[tuple[bool, ...], bool, tuple[bool, ...], list[str]]] = []
        needed = {name: stored.under([self._path(name)]) for name in wanted}
        known = {name: stored.without_nan(leaves) for name, leaves in needed.items()}
        for number in numbers:
            file, path = stored.files[number], stored.files.paths[number]
            here = tuple(all(file.has(leaf) for leaf in needed[name]) for name in wanted)
            nans = tuple(not known[name][number] and self._is_floating(name) for name in wanted)
            marked = stored.is_marked(number)
            if not runs or runs[-1][:3] != (here, marked, nans):
                runs.append((here, marked, nans, []))
            runs[-1][3].append(path)
        for number, (here, marked, nans, paths) in enumerate(runs):
            columns = ", ".join(
                f"{self._expression(name, nan) if there else f'NULL::{self._duck(name)}'} AS {quoted(name)}"
                for name, there, nan in zip(wanted, here, nans, strict=True)
            )
            files = ", ".join(text(os.path.join(base, path)) for path in paths)
            if not marked:
                counted = ", file_row_number=true" * any(nans)
                yield f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning=false{counted}) AS p"  # nosec B608
                continue
            gone = f"{self.name}_gone_{number}"
            session.register(gone, _deleted(stored, base, paths))
            yield (
                f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning=false, filename=true, "  # nosec B608
                f"file_row_number=true) AS p ANTI JOIN {quoted(gone)} AS g ON p.filename = g.path AND "
                "p.file_row_number = g.place"
            )

    def _is_floating(self, name: str) -> bool:
        return not name.endswith(_NULL) and pa.types.is_floating(self._paths[name][1])

    def _expression(self, name: str, may_be_nan: bool = False) -> str:
        path = "p." + ".".join(quoted(part) for part in self._path(name))
        if (
            may_be_nan
        ):  # DuckDB believes bounds of Parquet, which say nothing of NaN: it must not see them
            return f"CASE WHEN p.file_row_number < 0 THEN 'nan'::{self._duck(name)} ELSE {path} END"
        return f"({path} IS NULL)" if name.endswith(_NULL) else path

    def _table(
        self,
        stored: StoredSamples,
        wanted: list[str],
        needed: Mapping[int, Sequence[int] | None] | None,
    ) -> pa.Table:
        """Return what is used of the samples, of the files and row groups that are needed; of all where None."""
        paths = [self._path(name) for name in wanted]
        positions = np.arange(len(stored)) if needed is None else _positions(stored, needed)
        found = stored.rows(paths, positions)
        columns = [_column_at(found, path) for path in paths]
        columns = [
            column.is_null() if name.endswith(_NULL) else column
            for name, column in zip(wanted, columns, strict=True)
        ]
        return pa.table(columns, names=wanted)

    # ------------------------------------------------------------------ versions

    def at(
        self, name: str, version: int | str | None, timestamp: str | dt.datetime | None
    ) -> DatasetSource:
        """Return another version of the same dataset."""
        here = self.dataset
        opened = dataset(
            here.uri, storage_options=here._storage.options, version=version, timestamp=timestamp,
            create=False, links=here._rules,
        )  # fmt: skip
        return DatasetSource(name, opened)


def small_fields(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a stored column that a query can name, such as the height of an image.

    Examples
    --------
    >>> small_fields(pa.struct([("data", pa.binary()), ("height", pa.int32())]))
    [pyarrow.Field<height: int32>]
    """
    fields = list(kind) if pa.types.is_struct(kind) else []
    return [f for f in fields if not pa.types.is_nested(f.type) and not _is_bytes(f.type)]


def pinned(data: Dataset) -> Dataset:
    """Return a dataset that stays at the version that one shows now."""
    same = copy.copy(data)  # what is known of its files is shared
    same._pinned = True
    return same


def text(value: str) -> str:
    """Return a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _deleted(stored: StoredSamples, base: str, paths: list[str]) -> pa.Table:
    files: list[str] = []
    places: list[np.ndarray[Any, Any]] = []
    for path in paths:
        mask = stored.snapshot.kept(path)
        gone = np.flatnonzero(~np.asarray(mask)) if mask is not None else np.zeros(0, np.int64)
        places.append(gone)
        files += [os.path.join(base, path)] * len(gone)
    return pa.table({"path": pa.array(files, pa.string()), "place": np.concatenate(places)})


def _positions(
    stored: StoredSamples, groups: Mapping[int, Sequence[int] | None]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the positions of the samples in some files, or in some row groups of these, in order."""
    found = [np.zeros(0, np.int64)]
    for number, some in groups.items():
        if some is None:
            found.append(stored.positions_in(number))
            continue
        starts = stored.files[number].starts
        rows = np.concatenate([np.arange(starts[g], starts[g + 1]) for g in some])
        found.append(stored.positions_at(number, rows))
    positions = np.sort(np.concatenate(found))
    return positions[positions >= 0]


def _column_at(table: pa.Table, path: Parts) -> pa.ChunkedArray:
    column = table.column(path[0])
    chunks, kind = column.chunks, column.type
    for part in path[1:]:
        index = kind.get_field_index(part)
        chunks = [chunk.flatten()[index] for chunk in chunks]
        kind = kind.field(index).type
    return pa.chunked_array(chunks, kind)


def stored_type(schema: pa.Schema, column: str) -> pa.DataType:
    """Return the type of a column of a dataset in its table; groups are structs there."""
    first, *rest = column.split("/")
    kind = schema.field(first).type
    for part in rest:
        kind = kind.field(part).type
    return kind


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )
