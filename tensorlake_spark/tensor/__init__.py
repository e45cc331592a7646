"""What a tensor is, in memory: `spec` (shape, dtype, layout), `sparse` (`SparseTensor`), `labels` of its axes.

May import ``indexing`` and ``errors``; knows neither files nor rows. Begin with `spec`.
"""
