"""DuckDB for one query: in memory, with no way out to files that the query does not read."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from tensorlake_spark.errors import InvalidQueryError, MissingDependencyError, StorageError
from tensorlake_spark.query.sources.duckdb_tables import quoted, without_half_floats
from tensorlake_spark.threads import Begun, query_threads

Result = TypeVar("Result")


_LOOK_S = 0.2

_KEEP = 2

_databases: OrderedDict[tuple[int, tuple[str, ...]], Any] = OrderedDict()
"""Empty databases by the process and by the files that they may read, which never change: to make one takes a while."""

_database_lock = threading.Lock()


def _database(duckdb: Any, files: tuple[str, ...]) -> Any:
    """Return a database in memory that may read some files, and no others, and whose settings are locked."""
    key = (os.getpid(), files)  # a forked child has none of its threads
    with _database_lock:
        found = _databases.pop(key, None)
        if found is None:
            found = duckdb.connect(":memory:")
            for setting in (  # which not every version of DuckDB has
                "parquet_metadata_cache=true",  # it looks whether a file has changed before it takes what it knows
                "error_on_division_by_zero=false",
            ):
                with suppress(duckdb.Error):
                    found.execute(f"SET GLOBAL {setting}")
            listed = "[" + ", ".join("'" + f.replace("'", "''") + "'" for f in files) + "]"
            for setting in (
                f"allowed_paths={listed}",
                "python_enable_replacements=false",
                "autoinstall_known_extensions=false",
                "autoload_known_extensions=false",
                "GLOBAL TimeZone='UTC'",
                "GLOBAL ieee_floating_point_ops=true",
                "enable_external_access=false",
                "lock_configuration=true",
            ):
                try:
                    found.execute(f"SET {setting}")
                except duckdb.IOException as error:
                    # It asks for the folder even if it needs no file there.
                    raise StorageError(
                        f"DuckDB cannot begin: {error}; the folder in which this process runs may be deleted: os.chdir "
                        "to one that is there"
                    ) from error
        _databases[key] = found
        while len(_databases) > _KEEP:
            _databases.popitem(last=False)
        return found


class DuckSession:
    """A connection to DuckDB whose tables and views nothing else sees.

    Parameters
    ----------
    files : sequence of str
        Files that may be read; no others.

    Raises
    ------
    MissingDependencyError
        If DuckDB is not there.
    """

    def __init__(self, files: Sequence[str] = ()) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise MissingDependencyError(
                "queries need DuckDB; pip install 'tensorlake-spark[query]' installs it"
            ) from error
        self._error = duckdb.Error
        self._is_old = int(duckdb.__version__.partition(".")[0]) < 2
        self._connection = _database(duckdb, tuple(files)).cursor()
        self._views: dict[str, str] = {}

    def __enter__(self) -> DuckSession:
        return self

    def __exit__(self, *error: Any) -> None:
        self._connection.close()

    def make_view(self, name: str, sql: str) -> None:
        """Give a name to a query that this package wrote."""
        # A view of DuckDB would open its files to find its columns, and again to be read.
        self._views[name] = sql

    def register(self, name: str, table: Any) -> None:
        """Give a name to a table in memory, or to an Arrow dataset.

        Raises
        ------
        InvalidQueryError
            If DuckDB does not take the type of a column.
        """
        if isinstance(table, pa.Table):
            table = without_half_floats(table)
        floats = [f.name for f in table.schema if pa.types.is_floating(f.type)]
        try:
            if self._is_old and floats:
                self._register_floats(name, table, floats)
            else:
                self._connection.register(name, table)
        except self._error as error:
            raise InvalidQueryError(
                f"DuckDB does not take {self._refused(name, table)}: {_said(error)}; cast it, or leave it out of the "
                "source"
            ) from error

    def _register_floats(self, name: str, table: Any, floats: Sequence[str]) -> None:
        """Give a name to a table whose conditions DuckDB 1 does not hand to Arrow, for which NaN is above no number."""
        inner = f"{name} in Arrow"
        self._connection.register(inner, table)
        hidden = ", ".join(
            f"CASE WHEN isnan({quoted(one)}) THEN 'nan' ELSE {quoted(one)} END AS {quoted(one)}"
            for one in floats
        )
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT * REPLACE ({hidden}) FROM {quoted(inner)}"  # nosec B608
        )

    def _refused(self, name: str, table: Any) -> str:
        """Return which column of a table DuckDB does not take; it says none itself."""
        for field in table.schema if isinstance(table, pa.Table) else ():
            try:
                self._connection.register(name, table.select([field.name]))
            except self._error:
                return f"column {field.name!r:.80}, whose type is {field.type}"
        return "the types of a source"

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Return the rows of a query, which does not begin with WITH. Ctrl-C ends it.

        Raises
        ------
        InvalidQueryError
            If DuckDB refuses it.
        """

        views = [
            f"{quoted(name)} AS NOT MATERIALIZED ({text})"
            for name, text in self._views.items()
            if re.search(rf"\b{re.escape(name)}\b", sql)
        ]
        whole = f"WITH {', '.join(views)} {sql}" if views else sql

        def work() -> pa.Table:
            found = self._connection.sql(whole, params=dict(parameters) if parameters else None)
            return found.to_arrow_table()

        try:
            return interruptible(work, self._connection.interrupt)
        except self._error as error:
            raise InvalidQueryError(self._untaken(parameters or {}) or _said(error)) from error

    def _untaken(self, parameters: Mapping[str, Any]) -> str:
        """Return which parameter is of a type that DuckDB does not take, empty if none is; it names none itself."""
        for name, value in parameters.items():
            try:
                self._connection.sql("SELECT $1", params=[value])
            except self._error as error:
                if "transform python value" not in str(
                    error
                ):  # of a number that is too large it says that
                    continue
                return (
                    f"the parameter :{name} is {type(value).__name__}, which is no value of SQL; give a number, a "
                    "text, a time, or a list of these"
                )
        return ""


def interruptible(work: Callable[[], Result], interrupt: Callable[[], None]) -> Result:
    """Return what work returns, done in another thread: signals reach this one, and then it is interrupted.

    DuckDB forgets an interrupt that comes before a query has begun, so it gets more of them until it ends.
    """
    begun = Begun()

    def counted() -> Result:
        with begun:
            return work()

    try:
        future = query_threads().submit(counted)
        # Python does not wake for a signal that comes just before it waits, so it looks now and then.
        while not future.done():
            with suppress(FutureTimeoutError):
                return future.result(_LOOK_S)
        return future.result()
    except BaseException:
        begun.stop(interrupt)
        raise


def _said(error: Exception) -> str:
    """Return what DuckDB says, without the text that this package wrote for it and what else it could call."""
    said = re.split(r"\n\nLINE |\s+Candidate functions:", str(error), maxsplit=1)[0]
    return said.strip()[:400]
