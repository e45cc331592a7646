"""What views are made of, and what becomes of them.

Begin with `view_rows`, the rows of a view.
May import ``query.engine`` and what that may import, and ``datasets``.

`view_values` computes its columns, here or on executors, and `view_tables` gives it other forms. `materialization`
decides which columns are copied from which dataset and which are computed. `view_loading` makes a loader of a view,
with `view_samples`. `kept_view` stores a view in a dataset under a name, and opens it again.
"""
