"""The steps of a codec before the compression, each undone exactly.

Begin with `deltas`, the simplest.
May import ``layouts.coding.decompression``, ``layouts.kernels``, ``kernel_switch`` and ``errors``.

Differences: `deltas` along an axis, `lorenzo` along all, `float_lorenzo` with neighbours added as floats. Other forms
of numbers: `zigzag` without signs, `decimals` as integers. Other orders and widths: `byte_planes`, `nibbles`,
`bin_coding`, `bit_packing`.
"""
