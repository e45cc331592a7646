"""Products of sparse tensors, with each other and with arrays.

Begin with `contraction`.
May import ``kernel_switch``, ``indexing``, ``errors`` and the modules of ``ops``.

`contraction` multiplies two tensors along labelled axes, for `numpy_products`, `einsum`, `tensor_products` (ttv, ttm,
mttkrp) and `blas`, whose triangular equations are in `triangular_equations`. `product_labels` names the axes of NumPy's
products. `product_loops` are compiled.
"""
