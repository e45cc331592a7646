"""Queries: SQL on datasets, tensors and tables.

`language` reads the text, `functions` has what is computed of tensors, `duckdb_functions` gives the same functions
to a connection of DuckDB.

May import all rooms below it: `datasets`, `lake` and further down. Begin with `language`.
"""
