"""Samples that do not lie in their row as a whole: tiles and apart columns.

Begin with `parts_writer`.
May import ``types``, ``lake`` and below.

`inner_tables` knows the tables inside a dataset and the versions that belong to it; `stored_parts` reads them.
`tile_writer` makes tensors of `large_samples`, and `apart_writer` writes apart columns. `pinning` decides when several
writers change one inner table.
"""
