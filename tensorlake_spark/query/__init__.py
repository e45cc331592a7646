"""Queries: SQL on datasets, tensors and tables.

`language` reads the text, `functions` has what is computed of tensors, `user_functions` are those of users,
`duckdb_functions` gives all of them to a connection of DuckDB.

May import all rooms below it: `loader`, `datasets`, `lake` and further down. Begin with `language`.
"""
