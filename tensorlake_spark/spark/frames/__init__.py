"""Datasets in Spark: samples as DataFrames, DataFrames as samples or features. Begin with `sample_frame`, which reads them.

`spark_condition` writes its conditions, `sample_decoding` is what executors do for it. `frame_writing` adds the rows of a
DataFrame to a dataset: `frame_columns` says which column is which, `partition_writing` is what a task does.
`image_functions` are for columns of images, in Python and SQL, `image_columns` what they do with Arrow. `rank_loader`
hands a dataset to processes that train. `feature_frame` writes a DataFrame as features. May import ``spark.source``,
``spark.cluster``, ``loader``, ``datasets``, ``columns`` and ``delta``.
"""
