"""What a query reads: datasets, lakes' catalogs, Delta tables, Parquet files and tables in memory.

`source_opening` turns what a user names into a source: a `dataset_source` or a `table_source`. `source_columns` says what a source
has, `duckdb_tables` what it needs of DuckDB, `row_groups` what its conditions rule out.

May import the rooms of datasets, lakes and Delta. Begin with `source_opening`.
"""
