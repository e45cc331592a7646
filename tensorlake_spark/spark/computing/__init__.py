"""Operations on stored tensors by executors: the folds of the room ``computing``. Begin with `spark_tensor`.

`spark_tensor` has the methods of a stored tensor. `shares` cuts a selection into what one task folds, and `tree`
combines the partials of tasks; `gathering` puts elementwise results together there, and `streaming` writes them to the
lake by tasks. May import ``spark.source``, ``spark.cluster`` and all that lies below ``spark``.
"""
