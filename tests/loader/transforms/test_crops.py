"""Crops lie within their image, everywhere in it, and have the area and proportions that were asked for."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader import CenterCrop, RandomCrop, RandomResizedCrop
from tensorlake_spark.loader.transforms.image_transform import regions_of


def draws(transform, count, seed=0):
    return np.random.default_rng(seed).random((count, transform.n_random))


@pytest.mark.parametrize(
    ("image", "top", "left"), [((10, 10), 3, 2), ((4, 6), 0, 0), ((5, 7), 0, 0)]
)
def test_the_middle(image, top, left):
    region = CenterCrop(4, 6).region(*image, np.empty(0))
    assert region.box == (top, left, 4, 6)


@pytest.mark.parametrize("transform", [CenterCrop(4, 6), RandomCrop(4, 6)])
@pytest.mark.parametrize("image", [(3, 6), (4, 5), (1, 1)])
def test_a_crop_that_does_not_fit_says_what_to_do(transform, image):
    with pytest.raises(InvalidOptionError, match=r"4 x 6 does not fit .* put Resize before it"):
        transform.region(*image, np.full(2, 0.5))


def test_a_random_crop_is_everywhere_in_the_image():
    crop = RandomCrop(4, 6)
    boxes = [crop.region(7, 8, row).box for row in draws(crop, 500)]
    assert {box[0] for box in boxes} == {0, 1, 2, 3}
    assert {box[1] for box in boxes} == {0, 1, 2}
    assert {box[2:] for box in boxes} == {(4, 6)}


def test_the_largest_random_number_stays_inside():
    most = np.full(22, np.nextafter(1, 0))
    assert RandomCrop(4, 6).region(7, 8, most).box == (3, 2, 4, 6)
    top, left, height, width = RandomResizedCrop(4, 4).region(7, 8, most).box
    assert (top + height <= 7) & (left + width <= 8)


@pytest.mark.parametrize("image", [(375, 500), (500, 375), (32, 32), (1, 1), (1, 50), (2000, 3)])
def test_random_resized_crops_lie_within_the_image(image):
    crop = RandomResizedCrop(224, 192)
    regions = regions_of(crop, *np.full((2, 300), [[image[0]], [image[1]]]), draws(crop, 300))
    for region in regions:
        top, left, height, width = region.box
        assert 0 <= top <= image[0] - height
        assert 0 <= left <= image[1] - width
        assert height > 0
        assert width > 0
        assert region.size == (224, 192)


def test_area_and_proportions_are_as_asked_for():
    crop = RandomResizedCrop(8, 8, scale=(0.2, 0.3), ratio=(0.5, 2))
    boxes = np.array([crop.region(1000, 1000, row).box for row in draws(crop, 400)])
    areas, ratios = boxes[:, 2] * boxes[:, 3] / 1e6, boxes[:, 3] / boxes[:, 2]
    assert 0.199 < areas.min() < 0.21
    assert 0.29 < areas.max() < 0.301
    assert 0.49 < ratios.min() < 0.53
    assert 1.9 < ratios.max() < 2.01
    assert abs(np.log(ratios).mean()) < 0.1


def test_what_never_fits_is_the_middle():
    crop = RandomResizedCrop(8, 8, scale=(1, 1), ratio=(1, 1))
    assert crop.region(10, 30, np.full(crop.n_random, 0.5)).box == (0, 10, 10, 10)
    assert crop.region(30, 10, np.full(crop.n_random, 0.5)).box == (10, 0, 10, 10)


def test_all_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(3)
    heights, widths = rng.integers(1, 900, (2, 400))
    for crop in (
        RandomResizedCrop(9, 7),
        RandomResizedCrop(9, 7, scale=(0.9, 1), ratio=(2, 3), exact=True),
    ):
        random = draws(crop, 400)
        at_once = regions_of(crop, heights, widths, random)
        sizes = zip(heights.tolist(), widths.tolist(), random)
        assert at_once == [crop.region(*size) for size in sizes]
        assert {type(n) for region in at_once for n in region.box} == {int}


@pytest.mark.parametrize(
    "scale", [(0, 1), (0.5, 1.1), (0.9, 0.1), 0.5, (1,), None, ("a", "b"), (float("nan"), 1)]
)
def test_a_scale_is_a_range_of_areas(scale):
    with pytest.raises(InvalidOptionError, match="scale="):
        RandomResizedCrop(4, 4, scale=scale)


@pytest.mark.parametrize("ratio", [(0, 1), (2, 1), (1, float("inf")), "ab"])
def test_a_ratio_is_a_range_of_proportions(ratio):
    with pytest.raises(InvalidOptionError, match="ratio="):
        RandomResizedCrop(4, 4, ratio=ratio)


@pytest.mark.parametrize("kind", [CenterCrop, RandomCrop, RandomResizedCrop])
def test_a_length_is_a_number_above_0(kind):
    with pytest.raises(InvalidOptionError, match="width="):
        kind(4, 0)
