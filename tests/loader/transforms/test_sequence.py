"""Compose: the same pixels as one transform behind the other, each on an array in full."""

import numpy as np
import pytest
from resized_images import cut, resized

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader import (
    CenterCrop,
    Compose,
    RandomCrop,
    RandomFlip,
    RandomResizedCrop,
    Resize,
)
from tensorlake_spark.loader.decoding.image_shaping import shaped


class Brighter:
    """A transform of the user's, which works on pixels."""

    n_random = 1

    def region(self, height, width, random):
        return CenterCrop(height - 1, width).region(height, width, random)

    def apply(self, image, random):
        return np.minimum(image + int(20 * random[0]), 255).astype(image.dtype)


def one_by_one(transforms, image, random):
    """NumPy and Pillow only."""
    used = 0
    for transform in transforms:
        own = random[used : used + transform.n_random]
        used += transform.n_random
        region = transform.region(*image.shape[:2], own)
        assert region.window is None
        if region.box is not None:
            image = cut(image, region.box)
        if region.size is not None:
            image = resized(image, region.size)
        image = transform.apply(image[:, ::-1] if region.flip else image, own)
    return image


SEQUENCES = [
    [],
    [RandomFlip(1)],
    [Resize(40), CenterCrop(32, 24)],
    [Resize(40), RandomCrop(32, 24), RandomFlip(1), RandomCrop(9, 10)],
    [RandomFlip(1), RandomCrop(30, 40), RandomFlip(1)],
    [RandomFlip(1), RandomCrop(30, 40), Resize(20, 20), RandomCrop(7, 8)],
    [RandomResizedCrop(24, 24), RandomFlip()],
    [RandomResizedCrop(24, 24), RandomResizedCrop(12, 12), RandomFlip(1)],
    [CenterCrop(40, 50), RandomResizedCrop(24, 24), RandomFlip(), CenterCrop(10, 10)],
    [Brighter(), RandomFlip(1)],
    [RandomCrop(40, 44), Brighter(), Resize(10, 11), Brighter(), RandomFlip(1)],
    [Resize(30, 30), Brighter(), Resize(10, 11), RandomCrop(5, 6)],
    [Resize(30, 30), Compose(CenterCrop(20, 20), RandomFlip(1)), Brighter()],
]


@pytest.mark.parametrize("number", range(len(SEQUENCES)))
def test_it_is_one_transform_behind_the_other(number):
    transforms = SEQUENCES[number]
    rng = np.random.default_rng(number)
    image = rng.integers(0, 256, (48, 60, 3), np.uint8)
    both = Compose(*transforms)
    for _ in range(5):
        random = rng.random(both.n_random)
        region = both.region(48, 60, random)
        found = both.apply(shaped(image, region), random)
        wanted = one_by_one(
            [one for t in transforms for one in (t.transforms if isinstance(t, Compose) else [t])],
            image,
            random,
        )
        assert found.shape == wanted.shape
        # Pillow rounds the edges of a window to float32: what lies between two numbers may go the other way, twice.
        apart = np.abs(found.astype(int) - wanted)
        assert apart.max(initial=0) <= 2
        assert apart.sum() <= 0.3 * apart.size


def test_what_is_decoded_is_as_small_as_can_be():
    both = Compose(Resize(256), CenterCrop(224, 224), RandomFlip(1))
    region = both.region(480, 640, np.zeros(1))
    assert region == (None, (256, 341), (16, 58, 224, 224), True, False)
    assert both.apply("the image itself", np.zeros(1)) == "the image itself"


def test_exact_is_kept():
    assert Compose(RandomFlip(1), Resize(8, 8, exact=True)).region(9, 9, np.zeros(1)).exact


def test_it_is_flat_and_compares():
    inner = Compose(Resize(4, 4), RandomFlip())
    assert Compose(inner) == inner == Compose(Resize(4, 4), RandomFlip())
    assert hash(Compose(inner)) == hash(inner)
    assert Compose(inner) != Compose(Resize(4, 4))
    assert repr(inner) == "Compose(Resize(height=4, width=4, exact=False), RandomFlip(share=0.5))"


@pytest.mark.parametrize("wrong", [None, Resize, np.flipud, [Resize(4)]])
def test_what_is_no_transform_is_refused(wrong):
    with pytest.raises(InvalidOptionError, match="is not a transform of images"):
        Compose(Resize(4, 4), wrong)
