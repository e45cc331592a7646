"""Operations on stored tensors by executors: the folds of the room ``computing``. Begin with `spark_tensor`.

`shares` cuts a selection into shares of about equal work, `tree` folds them and combines the partials in a tree,
`spark_tensor` has the methods of a stored tensor. May import ``spark.source`` and ``spark.cluster``.
"""
