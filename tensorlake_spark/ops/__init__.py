"""Operations on sparse tensors in memory, as pure functions of coordinates and values.

Begin with `elements`.
May import ``kernel_switch``, ``indexing`` and ``errors``; `SparseTensor` in ``tensor`` has them as methods.

`elementwise` has the ufuncs, `merging` those that compiled code computes of two tensors, and `broadcasting` repeats
operands. `valuewise` changes values, `comparing` looks at all values, and `slicing` finds the elements that a key
picks. `numpy_arguments`, `lookup` and `csr_matrix` are shared. `element_loops` are compiled, and `loop_choice` says
whether they run. The rooms in it: `shapes`, `reducing`, `products`.
"""
