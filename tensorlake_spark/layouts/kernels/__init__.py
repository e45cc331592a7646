"""Compiled loops for dense blocks, which give the bytes that NumPy gives: the extra named fast. Begin with `dense`.

`kernel_switch` says whether they run. `steps` says what is done to the words of a block. `dense` lays a block out for
`loops`, which numba compiles. May import ``errors``.
"""
