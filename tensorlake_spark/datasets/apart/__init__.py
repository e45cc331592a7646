"""Samples that are read in part: what lies apart from the rows, or stays whole beside them. Begin with `parts_writer`.

`inner_tables` says where tables inside a dataset lie and which versions belong to it, `stored_parts` reads them.
`large_samples` become tensors by `tile_writer`, apart columns tables by `apart_writer`; `pinning` settles writers who
meet. `video` reads frames: `video_sample` is a stored video as users see it, `video_facts` what is kept of it in its
row, `range_file` a file of which only ranges are read. May import ``types``, ``lake`` and what lies below it.
"""
