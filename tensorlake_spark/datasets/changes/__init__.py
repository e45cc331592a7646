"""Changes of samples that are there, and of columns: data files that hold them are written again, in one commit.

Begin with `change_methods`, the methods of a dataset. `target_samples` says which samples are meant and `new_values`
what they get, `sample_changes` updates and deletes, `column_changes` adds, drops and renames. `rewriting` writes
files again, `row_conflicts` compares with what other writers did. May import ``datasets.samples`` and below.
"""
