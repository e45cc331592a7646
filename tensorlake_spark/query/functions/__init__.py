"""The functions of tensors that queries have: NumPy in and out, for many rows at once.

`row_values` says what values are, `registry` finds a function by name, `expressions` evaluates a tree. `summaries`, `boxes`,
`distances`, `pixels`, `shape_functions` define functions; `operators` and `bracket_keys` are for signs and brackets;
`crops` says what part of a tensor is needed; `user_functions` are those of users.

May import `errors`. Begin with `expressions`.
"""
