"""Plans are run: scalars by DuckDB, tensors by NumPy. Begin with `running`, which runs a plan.

`duckdb_session` is a locked DuckDB. `leaf_values` reads tensors, and `shape_values` only their shapes. `evaluation`
computes expressions in batches, and `row_orders` sorts rows. `neighbours` keeps the best rows; `vector_scan` finds them
in the files, with `vector_blocks`. `all_samples` recognises steps that keep every sample. `read_report` reports what
was read.

May import ``query.planning``, ``query.sources``, ``query.functions`` and ``query.language``.
"""
