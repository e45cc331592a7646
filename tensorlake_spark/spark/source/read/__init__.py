"""Spark reads.

Begin with `reader`: partitions of about equal bytes.
May import the modules of ``spark.source``, nothing of ``write``.

`sparse_reader` reads sparse tensors, `feature_reader` named features, `pushdown` takes filters, `overlapping_rows`
finds rows that belong together.
"""
