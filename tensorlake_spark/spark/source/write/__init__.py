"""Spark writes.

Begin with `source_writer`: executors encode, the driver commits.
May import the modules of ``spark.source``, and `read.overlapping_rows`.

An `input_format` is how tensors arrive: `slabs` (with their `extents`) or `cells` (with a `cell_buffer`); `grouping`
sorts cells by block, `uniqueness` finds elements stored twice, `conversion` writes them in another layout,
`dense_cells` makes chunks of cells, `direct_write` spares a detour; `feature_writer` writes named features.
"""
