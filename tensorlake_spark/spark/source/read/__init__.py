"""Spark reads. Begin with `reader`: partitions of about equal bytes.

`sparse_reader` reads sparse tensors, `pushdown` takes filters, `overlapping_rows` finds rows that belong together. May
import the modules of ``spark.source``, nothing of ``write``.
"""
