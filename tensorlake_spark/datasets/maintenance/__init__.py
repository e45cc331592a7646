"""Versions, compaction, vacuum, check and purge of a dataset.

Begin with `maintenance_methods`.
May import ``datasets.samples``, ``datasets.apart``, ``lake``, ``upkeep``, ``audit`` and ``delta``.

`sample_versions` restores a version, and `inner_versions` the tables inside it. `optimization` merges small files of
all tables, with `sample_compaction`. `dataset_vacuum` deletes files, but not those of `kept_versions`. `dataset_check`
compares all parts with each other, and `value_check` checks values. `dataset_purge` removes `purged_samples` from every
file, with `purged_rows`.
"""
