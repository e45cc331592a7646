"""Plans are run: scalars by DuckDB, tensors by NumPy.

Begin with `running`, which runs a plan.
May import ``query.nearest``, ``query.planning``, ``query.sources``, ``query.functions`` and ``query.language``.

`duckdb_session` is a locked DuckDB. `leaf_values` reads tensors, `image_values` decodes images, and `shape_values`
reads only shapes. `evaluation` computes expressions in batches, which `row_batches` cuts. `value_digests` has what
rows are compared by, and `row_orders` sorts rows. `neighbours` keeps the best rows. `all_samples` recognises steps that
keep every sample. `read_report` reports what was read.
"""
