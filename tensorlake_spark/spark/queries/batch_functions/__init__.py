"""What Python does with a batch of rows while Spark runs a query.

Begin with `tensor_udf`, which runs a function of tensors on a batch.
May import what ``spark.queries`` may.

`frame_rows` are the steps of TQL's clauses, `view_columns` the columns of views.
"""
