"""Views that are stored, or become a dataset. Begin with `view_methods`, the methods of a view.

`materialization` decides which columns are copied from which dataset and which are computed; `view_values` computes
them, here or on executors. `view_loading` makes a loader of a view, with `view_samples`. `kept_view` stores a view in a
dataset under a name, and opens it again. May import ``query.engine`` and what that may import, and ``datasets``.
"""
