"""Where elements stand: other shapes, other orders, several tensors as one. Begin with `shaping`.

`joining` concatenates and chooses, `diagonals` takes parts of matrices. May import the
modules of ``ops``, ``reducing``, ``indexing`` and ``errors``.
"""
