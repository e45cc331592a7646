"""What the sparse layouts share: `elements` gathered from many rows, `element_runs`, `blocks`, `offsets` in them.

May import ``layouts.base``, ``layouts.verification`` and ``layouts.coding``, no layout. `compressed_axes` is what CSR
and CSC have in common. Begin with `elements`.
"""
