"""Keeping a dataset in order for years. Begin with `maintenance_methods`.

`sample_versions` restores a version, with what `inner_versions` brings back of its parts. `optimization` makes fewer
files of all tables by `sample_compaction`, `dataset_vacuum` deletes those that nobody needs, by what `kept_versions`
knows of the log. `dataset_check` holds all against each other, values by `value_check`. `dataset_purge` takes
`purged_samples` out of every file, by `purged_rows`.
May import ``datasets.samples``, ``datasets.apart``, ``lake``, ``upkeep``, ``audit`` and ``delta``.
"""
