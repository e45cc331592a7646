"""Vectors near to one, found where they lie in files.

Begin with `vector_scan`, which finds the candidates.
May import ``query.planning``, ``query.sources``, ``query.functions`` and ``layouts.kernels``.

`vector_blocks` are the vectors of some row groups as matrices, and `vector_loops` multiplies them by one vector,
compiled by numba.
"""
