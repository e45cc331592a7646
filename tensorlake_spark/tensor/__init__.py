"""What a tensor is, in memory. Begin with `spec`: shape, dtype, layout.

`sparse` has `SparseTensor`, `labels` what stands for the indices of an axis. May import ``ops``, ``indexing`` and
``errors``; knows neither files nor rows.
"""
