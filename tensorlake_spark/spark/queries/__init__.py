"""Queries on tensors by Spark: the same tree as elsewhere, printed as Spark SQL. Begin with `spark_query`.

`spark_sources` makes DataFrames of what a query reads; `spark_sql` finds the parts that are about tensors, by
`result_kinds`, and puts functions in their places; `tensor_udf` is what these do with a batch. `clause_frames` takes
TQL's clauses, which `frame_rows` does with a DataFrame.
May import ``spark.frames``, ``spark.source``, ``spark.cluster`` and ``query``.
"""
