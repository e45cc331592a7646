"""Wide tables: named features, stored as tensors of shape (row, feature), one for each dtype.

Begin with `feature_table`.
May import ``writing`` and what lies below it.

`feature_reads` reads a table, `feature_changes` changes it, `feature_commits` commits that or goes back to a version,
`feature_cut` drops and moves blocks of features, and `feature_set` is the table in one version of the lake.
`feature_types` are the Arrow types that a tensor can hold, `feature_input` checks tables of users, and `feature_values`
converts Arrow columns to arrays and back. `feature_encoding` changes a table with rows that others encode, `elsewhere`
has these rows. `access_log` counts which features are read together.
"""
