"""Spark writes: `writer` commits what the forms `slabs` and `cells` encode on executors. Begin with `writer`.

May import the modules of ``spark.source``, and `overlap` of ``read``. `receipts` are what tasks leave so that a job
can be resumed.
"""
