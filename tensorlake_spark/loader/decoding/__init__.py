"""Stored bytes as pixels and numbers, a whole batch at once. Begin with `image_batches`.

`array_stacking` is for arrays of one shape. `region` says which part of an image is wanted, and how large. `jpegs` decodes
JPEG, `image_shaping` cuts and resizes, by `resize_loops` where numba is there. `thread_limit` says how many threads gain.
`bad_image` is the error for one that cannot be decoded. May import ``datasets.types``, ``layouts.kernels``,
``kernel_switch`` and what lies below them.
"""
