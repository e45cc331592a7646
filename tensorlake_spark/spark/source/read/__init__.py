"""Spark reads: `reader` (partitions of equal bytes), `sparse_reader`, `pushdown` of filters, `overlapping_rows`.

May import the modules of ``spark.source``, nothing of ``write``. Begin with `reader`.
"""
