"""Changes of samples and of columns: the data files that hold them are rewritten, in one commit.

Begin with `change_methods`, the methods of a dataset.
May import ``datasets.samples`` and below.

`target_samples` finds the samples to change, and `new_values` their new values. `sample_changes` updates and deletes;
`column_changes` adds, drops and renames. `rewriting` rewrites files, and `row_conflicts` compares with the changes of
other writers. `link_copying` puts files in the place of links; `workers` says which threads or executors do it.
"""
