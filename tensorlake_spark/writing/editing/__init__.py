"""Changes of what a tensor has already.

Begin with `assignment`.
May import the modules of ``writing`` around it, and what lies below them.

`assignment` puts values into a region, `sparse_assignment` into one of a sparse tensor, `removal` takes boxes out and
is also done by executors, `restore` brings back what an earlier version had.
"""
