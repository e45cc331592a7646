"""The functions on tensors that queries have: from NumPy to NumPy, for many rows at once.

Begin with `expressions`.
May import ``errors``.

`expressions` evaluates a tree, and `registry` finds a function by its name. `row_values` are the values of rows. The
functions are `definitions` of `summaries`, `boxes`, `distances` and `pixels`; `operators` and `bracket_keys` are those
of signs and brackets. `tree_names` has the names of nodes, and `needed_parts` the part of a tensor that is needed.
"""
