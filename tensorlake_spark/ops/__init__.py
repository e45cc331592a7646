"""Operations on sparse tensors in memory, as pure functions of coordinates and values. Begin with `elements`.

`elementwise` has the ufuncs, and `broadcasting` repeats their operands. `slicing` finds what a key picks.
May import ``indexing`` and ``errors``; `SparseTensor` in ``tensor`` has them as methods.
"""
