"""Stored bytes as pixels and numbers, a whole batch at once. Begin with `image_batches`.

`region` says which part of an image is wanted, and how large; `resizing` makes it that large. `bad_image` is the
error for one that cannot be decoded. May import ``datasets.types`` and what lies below it.
"""
