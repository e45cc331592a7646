"""What a query does, found out before anything is read.

`relation` says what a query returns: stored columns, and tensors that are computed when they are read. `names` resolves
names, `tensor_work` tells tensor work from scalar work, `selects` and `queries` turn a tree into SQL for scalars, steps
on tensors, and what is left for the reader.

May import `sources`, `functions` and `language`. Begin with `queries`.
"""
