"""Parquet files of rows: `writer`, `footer`, `scan`, `payload`; whole files anew: `rewrite`, `merge`, `compaction`.

May import ``delta.log`` and ``delta.store``. `catalog` finds the metadata rows of tensors, `inspection` holds a
file against the log. Begin with `scan` and `writer`.
"""
