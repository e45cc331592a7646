"""Floats in fewer bits, with a bound that is kept.

Begin with `kinds`, then `quantized_block`.
May import ``layouts.coding`` and what lies below the layouts.

`casts`, `row_scales`, `error_bound` and `halves` are the steps that begin a codec; `bit_rounding` needs none, and
`rounded_values` none for sparse layouts. `kept_elements` holds what a step cannot. `native_blocks` is what is stored,
for those who read that.
"""
