"""What a tensor is, in memory.

Begin with `spec`: shape, dtype, layout.
May import ``ops``, ``indexing`` and ``errors``; knows neither files nor rows.

`sparse` has `SparseTensor`, `labels` what stands for the indices of an axis, and `label_input` reads labels that a
user gives.
"""
