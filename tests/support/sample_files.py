"""Small files of media, for tests."""

import io

import numpy as np
import PIL.Image


def pixels(height=8, width=9, channels=3, dtype="uint8", seed=0):
    """Random pixels; of one channel where `channels` is 1."""
    rng = np.random.default_rng(seed)
    shape = (height, width) if channels == 1 else (height, width, channels)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def image_file(form="jpeg", height=8, width=9, mode="RGB", seed=0, **options):
    """The bytes of an image in a format, written by Pillow."""
    channels = 4 if mode.endswith("A") else 3
    image = PIL.Image.fromarray(pixels(height, width, channels, seed=seed)).convert(mode)
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
