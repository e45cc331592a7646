"""Images for tests of what is cut and resized, and Pillow's answer."""

import numpy as np
from PIL import Image

BILINEAR = Image.Resampling.BILINEAR


def picture(height, width, channels=3, seed=0):
    """A smooth image with a little noise, which JPEG keeps well."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    planes = [
        128 + 80 * np.sin(y / (7 + c) + seed) * np.cos(x / (9 + c)) + rng.normal(0, 4, x.shape)
        for c in range(channels)
    ]
    image = np.clip(np.stack(planes, -1), 0, 255).astype("u1")
    return image[..., 0] if channels == 1 else image


def cut(image, box):
    return image[box[0] : box[0] + box[2], box[1] : box[1] + box[3]]


def at_once(image, size):
    """An image of another size, as Pillow gives it."""
    return np.asarray(Image.fromarray(image).resize(size[::-1], BILINEAR))


def resized(image, size):
    """The same, one axis after the other: the height first where it becomes smaller."""
    height, width = size
    if image.ndim == 3 and image.shape[2] == 4:
        return at_once(image, size)
    if image.shape[0] > height:
        return at_once(at_once(image, (height, image.shape[1])), size)
    return at_once(at_once(image, (image.shape[0], width)), size)
