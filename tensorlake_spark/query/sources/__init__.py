"""The tables that a query reads: datasets, catalogs of lakes, Delta tables, Parquet files, tables in memory.

Begin with `source_opening`: it makes a `dataset_source` or a `table_source` of what a user gives.
May import the rooms of datasets, lakes and Delta.

`source_columns` are the columns of a source, `duckdb_tables` prepares a source for DuckDB, and `row_groups` finds the
files and row groups that a query may need.
"""
