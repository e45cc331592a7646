"""Spark reads. Begin with `reader`: partitions of about equal bytes.

`sparse_reader` reads sparse tensors, `feature_reader` named features, `pushdown` takes filters, `overlapping_rows`
finds rows that belong together. May import the modules of ``spark.source``, nothing of ``write``.
"""
