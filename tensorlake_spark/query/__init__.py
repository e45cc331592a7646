"""Queries: SQL on datasets, tensors and tables.

`query` is the door, and `view` what it returns. `language` reads the text, `functions` has what is computed of tensors,
`sources` what is read, `planning` what is done, `engine` does it. `views` makes
datasets of views, and keeps them. `duckdb_functions` gives the same functions to a
connection of DuckDB.

May import all rooms below it: `datasets`, `lake` and further down. Begin with `query`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View


class _Door(ModuleType):
    """The room by the name of its door: ``tensorlake_spark.query`` is both, and is called as the door."""

    def __call__(self, sql: str, /, **options: Any) -> View:
        from tensorlake_spark.query.query import query

        return query(sql, **options)


sys.modules[__name__].__class__ = _Door
