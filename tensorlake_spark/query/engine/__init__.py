"""Plans are run: scalars by DuckDB, tensors by NumPy.

`session` is DuckDB, locked; `leaf_values` reads tensors, `evaluation` computes expressions in batches, `row_orders` puts
rows in an order, `neighbours` finds the nearest vectors, `running` runs a plan, `read_report` says what was read.

May import `planning`, `sources`, `functions` and `language`. Begin with `running`.
"""
