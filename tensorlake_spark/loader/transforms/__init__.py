"""Transforms of the images of a batch.

Begin with `image_transform`, their interface.
May import ``loader.decoding`` and what lies below it.

`crops`, `resizing` and `flips` choose what is decoded, and `sequence` applies several, one after the other.
"""
