"""Spark writes: `writer` commits what the forms `slabs` and `cells` encode on executors. Begin with `writer`.

May import the modules of ``spark.source``, and `overlapping_rows` of ``read``. `uniqueness` makes sure,
before the commit, that no element is stored twice.
"""
