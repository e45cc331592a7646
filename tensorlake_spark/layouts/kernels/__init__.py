"""Compiled loops that give what NumPy gives: the extra named fast.

Begin with `dense`.
May import ``kernel_switch`` and ``errors``.

`kernel_switch` decides whether they run. `steps` are the steps on the words of a dense block, which `dense` lays out
for `loops`. `sparse` does so for elements of sparse rows and `sparse_loops`. `bits` has the loops of bins and nibbles,
`packing` those of packed words, `timeline_loops` those of samples that slide, `half_loops` that of floats in two
halves. numba compiles all loops.
"""
