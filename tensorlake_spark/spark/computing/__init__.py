"""Operations on stored tensors by executors: the folds of the room ``computing``.

Begin with `spark_tensor`.
May import ``spark.source``, ``spark.cluster`` and all that lies below ``spark``.

`spark_tensor` has the methods of a stored tensor. `shares` cuts a selection into the shares of tasks, and `tree`
combines the partial results of tasks. Elementwise results are put together by `gathering`, or written to the lake by
`streaming`.
"""
