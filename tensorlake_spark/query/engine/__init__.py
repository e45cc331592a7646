"""Plans are run: scalars by DuckDB, tensors by NumPy.

`running` runs a plan. `duckdb_session` is DuckDB, locked; `leaf_values` reads tensors, `shape_values` only
their shapes, `evaluation` computes expressions in
batches, `row_orders` puts rows in an order. `neighbours` keeps the best rows, which `vector_scan` finds where vectors
lie, by `vector_blocks`; `all_samples` knows steps that leave none out. `read_report` says what was read.

May import ``query.planning``, ``query.sources``, ``query.functions`` and ``query.language``. Begin with `running`.
"""
