"""What becomes of a view: a dataset of its own, or something that a dataset keeps. Begin with `materialization`.

`materialization` says which columns are copied from which dataset and which are computed; `view_values` computes them,
here or with executors; `view_loading` hands them to a loader, by `view_samples`; `kept_view` is what a dataset keeps by
name, and how it becomes a view again.
May import ``query.engine`` and what that may import, and ``datasets``.
"""
