"""What can be written, and every change of a tensor, each by one commit. Begin with `write`, then `pipeline`.

`source` and `stored_source` are what is written; `options` how; `append`, `assignment`, `sparse_assignment`
and `restore` are the other changes. May import ``reading`` and what lies below it.
"""
