"""Records of files (CSV, Parquet, Delta, matrices) to cells of sparse tensors.

Begin with `cell_job`.
May import the modules of ``spark.ingest``, nothing of ``arrays``.

`cell_options` are what it is told, `cell_preparation` looks at the records. `axis_rules` say how a column becomes an
axis, `bins` compute its indices, `coordinates` holds them against the rules, `bad_records` says what is wrong. Read by
`record_files`, `delta_tables`, `matrices` (`matrix_market`, `sparse_npz`).
"""
