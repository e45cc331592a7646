"""The functions of tensors that queries have: NumPy in and out, for many rows at once.

`row_values` says what values are, `registry` finds a function by name, `expressions` evaluates a tree. `definitions`
are made by `summaries`, `boxes`, `distances` and `pixels`; `operators` and `bracket_keys` are for signs and
brackets; `tree_names` are of nodes; `needed_parts` says what part of a tensor is needed.

May import `errors`. Begin with `expressions`.
"""
