"""DuckDB for one query: in memory, of its own, with no way out to files that the query does not read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import pyarrow as pa

from tensorlake_spark.errors import InvalidQueryError, MissingDependencyError
from tensorlake_spark.query.sources.duckdb_tables import quoted

Result = TypeVar("Result")


class DuckSession:
    """A connection to a database that nothing else uses.

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
        self._connection = duckdb.connect(":memory:")
        self._names: list[str] = []
        listed = "[" + ", ".join("'" + f.replace("'", "''") + "'" for f in files) + "]"
        for setting in (
            f"SET allowed_paths={listed}",
            "SET python_enable_replacements=false",
            "SET autoinstall_known_extensions=false",
            "SET autoload_known_extensions=false",
            "SET TimeZone='UTC'",
            "SET ieee_floating_point_ops=true",
            "SET enable_external_access=false",
        ):
            self._connection.execute(setting)

    def __enter__(self) -> DuckSession:
        return self

    def __exit__(self, *error: Any) -> None:
        self._connection.close()

    def lock(self) -> None:
        """Let no setting change any more."""
        self._connection.execute("SET lock_configuration=true")

    def make_view(self, name: str, sql: str) -> None:
        """Give a name to a query that this package wrote."""
        self._connection.execute(f"CREATE VIEW {quoted(name)} AS {sql}")

    def register(self, name: str, table: Any) -> None:
        """Give a name to a table in memory, or to an Arrow dataset."""
        self._connection.register(name, table)

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Return the rows of a query. Ctrl-C ends it.

        Raises
        ------
        InvalidQueryError
            If DuckDB refuses it.
        """

        def work() -> pa.Table:
            found = self._connection.sql(sql, params=dict(parameters) if parameters else None)
            return found.to_arrow_table()

        try:
            return interruptible(work, self._connection.interrupt)
        except self._error as error:
            raise InvalidQueryError(f"{_said(error)}") from error


def interruptible(work: Callable[[], Result], interrupt: Callable[[], None]) -> Result:
    """Return what work returns, done in another thread: signals reach this one, and then it is interrupted."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, name="tensorlake-query", daemon=True)
    thread.start()
    try:
        return future.result()
    except BaseException:
        if not future.done():
            interrupt()
        raise
    finally:
        thread.join()


def _said(error: Exception) -> str:
    """Return what DuckDB says, without the text that this package wrote for it."""
    return str(error).split("\n\nLINE ", maxsplit=1)[0].strip()[:400]
