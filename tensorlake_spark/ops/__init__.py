"""Operations on sparse tensors in memory, as pure functions of coordinates and values. Begin with `elements`.

`contraction` multiplies two tensors along labelled axes, for `products` (NumPy's), `einsum`, `tensor_products` (ttv,
ttm, mttkrp) and `blas`, whose triangular equations are in `triangular_equations`. `sparse_loops` are compiled.

May import ``indexing``, ``kernel_switch`` and ``errors``; `SparseTensor` in ``tensor`` has them as methods.
"""
