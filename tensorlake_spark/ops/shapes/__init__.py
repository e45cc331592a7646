"""Where elements stand: other shapes, other orders, several tensors as one. Begin with `image_shaping`.

`joining` concatenates and chooses, `diagonals` takes parts of matrices. May import the
modules of ``ops``, ``reducing``, ``indexing`` and ``errors``.
"""
