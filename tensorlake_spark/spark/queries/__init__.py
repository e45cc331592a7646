"""Queries with Spark: the same tree as elsewhere, printed as Spark SQL.

Begin with `spark_query`.
May import ``spark.frames``, ``spark.source``, ``spark.cluster`` and ``query``.

`spark_sources` makes DataFrames of the tables of a query, and `tables_in_reach` finds columns in them. `spark_sql`
finds the parts on tensors, with `result_kinds`, and replaces them by functions; `batch_functions` are what they do with
a batch. `equal_tensors` lets Spark compare tensors, `group_values` collects those of a group, `group_orders` puts
groups in order, `in_queries` gives ``IN (SELECT ...)`` its nulls, and `divisions` are by zero as NumPy has them.
`select_checks` refuses what Spark would not understand, and says in our words what Spark refuses. `clause_frames` makes
DataFrames of TQL's clauses.
"""
