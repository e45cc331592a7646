"""Fewer axes: sums, extremes, moments and indices over axes.

Begin with `reductions`.
May import the modules of ``ops``, ``indexing`` and ``errors``.

`groups` finds the elements of each result, `reduction_mask` those of them that take part; `moments` has means,
variances and norms, `index_reductions` argmax and its like.
"""
