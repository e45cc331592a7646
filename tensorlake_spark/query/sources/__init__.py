"""What a query reads: datasets, lakes' catalogs, Delta tables, Parquet files and tables in memory.

`opening` turns what a user names into a source; `dataset_source` and `table_source` are the kinds of them, `columns`
says what a source has.

May import `datasets`, `lake` and `delta`. Begin with `opening`.
"""
