"""Batches of images: the same pixels as decoding each in full, cutting by NumPy and resizing by Pillow."""

import zlib

import numpy as np
import pytest
from PIL import Image

from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.loader.decoding.bad_image import BadImage
from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.loader.decoding.region import Region


def picture(height, width, channels=3, seed=0):
    """A smooth image with some noise: JPEG keeps it well."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    planes = [
        128
        + 80 * np.sin(y / (7 + c) + seed) * np.cos(x / (9 + c))
        + rng.normal(0, 4, (height, width))
        for c in range(channels)
    ]
    image = np.clip(np.stack(planes, -1), 0, 255).astype("u1")
    return image[..., 0] if channels == 1 else image


def facts_of(form, images, files, **more):
    shapes = np.array([i.shape if i.ndim == 3 else (*i.shape, 1) for i in images]).T
    return ImageFacts(form, *shapes, np.array([zlib.crc32(f) for f in files]), **more)


def batch(form, sizes, channels=3):
    images = [picture(h, w, channels, seed) for seed, (h, w) in enumerate(sizes)]
    if form == "raw":
        files = [image.tobytes() for image in images]
    else:
        files = [image_codecs.encoded(image, form, 90) for image in images]
        images = [image_codecs.decoded(file, form) for file in files]
    return images, files, facts_of(form, images, files)


def resized(image, size):
    return np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "raw"])
@pytest.mark.parametrize("channels", [1, 3])
def test_whole_images_of_one_shape_are_one_array(form, channels):
    if form == "webp" and channels == 1:
        channels = 4
    images, files, facts = batch(form, [(20, 31)] * 5, channels)
    found = decode_images([memoryview(f) for f in files], facts)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, np.stack(images))


def test_a_region_is_what_numpy_cuts_and_pillow_resizes():
    images, files, facts = batch("png", [(40, 50), (60, 33)])
    wanted = [Region((3, 5, 20, 24), (16, 16)), Region((0, 1, 60, 30), (16, 16), flip=True)]
    found = decode_images(files, facts, wanted)
    np.testing.assert_array_equal(found[0], resized(images[0][3:23, 5:29], (16, 16)))
    np.testing.assert_array_equal(found[1], resized(images[1][:, 1:31], (16, 16))[:, ::-1])


def test_a_damaged_image_is_named():
    _, files, facts = batch("jpeg", [(20, 31)] * 3)
    files[1] = files[1][:50] + b"?" + files[1][51:]
    with pytest.raises(BadImage, match=r"image 1 of the batch .*\(CRC-32") as caught:
        decode_images(files, facts)
    assert caught.value.number == 1
