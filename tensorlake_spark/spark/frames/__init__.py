"""Datasets in Spark: from samples to DataFrames, and back.

Begin with `sample_frame`, which reads them.
May import ``spark.source``, ``spark.cluster``, ``loader``, ``datasets``, ``columns`` and ``delta``.

`spark_condition` translates conditions, with the numbers of `wide_numbers`, and `sample_decoding` decodes on executors.
`frame_writing` adds the rows of a DataFrame to a dataset: `frame_columns` matches the columns, and `partition_writing`
is the work of a task. `named_batches` hands tasks the rows, whatever the columns are named.
`image_functions` are functions on columns of images, in Python and SQL; `image_columns` computes them. `rank_loader`
hands a dataset to processes that train. `feature_frame` writes a DataFrame as features.
"""
