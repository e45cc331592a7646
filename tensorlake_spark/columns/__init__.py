"""Wide tables: named features, kept as tensors of shape (row, feature), one for each dtype. Begin with `feature_table`.

`feature_reads` is what a table shows, `feature_changes` what alters it in one commit, `feature_cut` how features leave it,
`feature_set` what a version of the lake says of it. `feature_types` says which Arrow types a tensor holds,
`feature_input` what may be written; `feature_values` turns Arrow columns into arrays and back. `feature_encoding` is for
rows that others encode, part by part, `feature_parts` what a part has to know. `access_log` counts which features are read
together. May import ``writing`` and what lies below it.
"""
