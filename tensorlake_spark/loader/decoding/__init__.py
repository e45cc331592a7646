"""From stored bytes to pixels and numbers, a whole batch at once.

Begin with `image_batches`.
May import ``datasets.types``, ``layouts.kernels``, ``kernel_switch`` and what lies below them.

`array_stacking` decodes arrays of one shape. A `region` is the part of an image that is wanted, and its size. `jpegs`
decodes JPEG files, `jpeg_tops` only their first rows. `image_shaping` cuts and resizes, with `resize_loops` if numba is
installed. `thread_limit` is the number of threads that pays. `bad_image` is the error for an image that cannot be
decoded.
"""
