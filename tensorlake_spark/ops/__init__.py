"""Operations on sparse tensors in memory, as pure functions of coordinates and values. Begin with `elements`.

`elementwise` has the ufuncs, and `broadcasting` repeats their operands. `slicing` finds what a key picks.
`shaping`, `joining` and `diagonals` rearrange, `valuewise` changes values, `comparing` looks at all of them.
`reductions`, `moments` and `index_reductions` go by `groups`; `numpy_arguments` and `lookup` are shared.
May import ``indexing`` and ``errors``; `SparseTensor` in ``tensor`` has them as methods.
"""
