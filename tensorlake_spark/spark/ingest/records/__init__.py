"""Records of files (CSV, Parquet, Delta, matrices) to cells of sparse tensors. Begin with `cell_job`.

`axis_rules` say how a column becomes an axis, `bins` compute its indices, `coordinates` holds them against the
rules. May import the modules of ``spark.ingest``, nothing of ``arrays``.
"""
