"""A table that is no dataset: in memory, in Parquet files, or a Delta table of others."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.lake.lake import TensorLake
from tensorlake_spark.query.sources.dataset_source import text
from tensorlake_spark.query.sources.duckdb_tables import Session, quoted
from tensorlake_spark.query.sources.source_columns import Named, Output, Parts, Stored, folded


class TableSource:
    """A table with stored columns.

    Parameters
    ----------
    name : str
        What DuckDB calls it.
    uri : str
        What users call it.
    version : int, or None
        Of a Delta table.
    schema : pyarrow.Schema
        Its columns.
    rows : int
        How many rows it has.
    table : pyarrow.Table, or None
        The rows, where they are in memory.
    paths : list of str
        Parquet files with the rows, where they are not.
    """

    def __init__(
        self,
        name: str,
        uri: str,
        version: int | None,
        schema: pa.Schema,
        rows: int,
        table: pa.Table | None = None,
        paths: list[str] | None = None,
        outputs: dict[str, Output] | None = None,
    ) -> None:
        self.name, self.uri, self.version = name, uri, version
        self.used: set[str] = set()
        self._rows, self._table, self._paths = rows, table, paths or []
        self.columns: dict[Parts, Named] = {}
        self.is_ordered = True
        self.lake: TensorLake | None = None
        self.key: tuple[Any, str] | None = None
        if outputs is not None:
            for column, output in outputs.items():
                self.columns[(column.casefold(),)] = Named(column, output)
            return
        self._struct_paths: dict[str, Parts] = {}
        for field in schema:
            known = self.columns.get(folded(field.name))
            if known is not None and known.starred:
                raise InvalidOptionError(
                    f"{uri} has columns {known.name!r:.80} and {field.name!r:.80}, whose names a query cannot tell "
                    "apart, as case does not matter; rename one"
                )
            self._add((field.name,), field.type, True)

    def _add(self, parts: Parts, kind: pa.DataType, starred: bool) -> None:
        name = ".".join(parts)
        self._struct_paths[name] = parts
        key = tuple(p for part in parts for p in folded(part))
        self.columns.setdefault(key, Named(name, Stored(("", name)), starred))
        if pa.types.is_struct(kind):
            for field in kind:
                self._add((*parts, field.name), field.type, False)

    def __len__(self) -> int:
        return self._rows

    def files(self) -> list[str]:
        """Return the files that DuckDB may read."""
        return self._paths

    def attach(self, session: Session) -> None:
        """Make a table or a view of DuckDB."""
        nested = [n for n in sorted(self.used) if len(self._paths_of(n)) > 1]
        base = quoted(self.name)
        if self._table is not None:
            if not nested:
                session.register(self.name, self._table)
                return
            session.register(f"{self.name}_all", self._table)
            base = quoted(f"{self.name}_all")
        else:
            files = ", ".join(text(path) for path in self._paths)
            base = f"read_parquet([{files}], hive_partitioning=false, union_by_name=true)"
        extra = "".join(
            f", p.{'.'.join(quoted(part) for part in self._paths_of(name))} AS {quoted(name)}"
            for name in nested
        )
        session.make_view(self.name, f"SELECT p.*{extra} FROM {base} AS p")  # nosec B608 # names are quoted

    def _paths_of(self, name: str) -> Parts:
        found: Parts = getattr(self, "_struct_paths", {}).get(name, (name,))
        return found

    def at(self, name: str, version: int | str | None, timestamp: str | dt.datetime | None) -> Any:
        """Return another version of the same table, which only Delta tables have."""
        from tensorlake_spark.query.sources.source_opening import at_version

        return at_version(self, name, version, timestamp)
