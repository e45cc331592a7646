"""Samples that do not lie in their row as a whole: tiles, apart columns, frames of videos.

Begin with `parts_writer`.
May import ``types``, ``lake`` and below.

`inner_tables` knows the tables inside a dataset and the versions that belong to it; `stored_parts` reads them.
`tile_writer` makes tensors of `large_samples`, and `apart_writer` writes apart columns. `pinning` decides when several
writers change one inner table. `video` reads frames: `video_sample` is a video as users see it, `video_facts` has what
its row says, and `range_file` is a file of which only ranges are read.
"""
