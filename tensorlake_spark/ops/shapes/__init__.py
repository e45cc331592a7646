"""Where elements stand: other shapes, other orders, several tensors as one.

Begin with `shaping`.
May import the modules of ``ops``, ``reducing``, ``indexing`` and ``errors``.

`joining` concatenates and chooses, `diagonals` takes parts of matrices.
"""
