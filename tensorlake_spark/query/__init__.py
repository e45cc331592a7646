"""Queries: SQL on datasets, tensors and tables.

Begin with `query`, which returns a `view`.
May import all rooms below it: ``loader``, ``datasets``, ``lake`` and further down.

``language`` parses the text, ``planning`` makes a plan, and ``engine`` runs it; ``nearest`` searches vectors for it.
``sources`` are the tables that a query reads, and ``functions`` the functions on tensors. ``views`` has what a view is
made of, and what becomes of it. `user_functions` are those of users, and `duckdb_functions` adds all functions to a
connection of DuckDB.
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
