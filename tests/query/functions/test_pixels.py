"""Clipped, resized and gray images, against NumPy and Pillow."""

import numpy as np
import pytest
from PIL import Image

from tensorlake_spark.query.functions.pixels import LARGEST, clip, resize, to_gray
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.row_values import Constant, RowError, expanded


@pytest.fixture
def image():
    return np.random.default_rng(3).integers(0, 256, (24, 30, 3)).astype(np.uint8)


def test_clip_is_that_of_numpy(image):
    assert np.array_equal(clip(image, 20, 200), np.clip(image, 20, 200))
    stack = np.stack([image[:4, :4], image[4:8, :4]])
    found = expanded(find("clip")([stack, Constant(5), Constant(99)], 2), 2)
    assert np.array_equal(found, np.clip(stack, 5, 99))
    bounds = expanded(find("clip")([stack, np.array([0, 50]), Constant(99)], 2), 2)
    assert np.array_equal(bounds[1], np.clip(stack[1], 50, 99))


def test_clip_of_small_arrays_with_bounds_of_other_dtypes():
    assert clip(np.array([1, 200], np.uint8), 0, 255).dtype == np.uint8
    assert clip(np.array([1.5, np.nan]), 0, 1)[0] == 1


def test_gray_is_near_pillows(image):
    wanted = np.asarray(Image.fromarray(image).convert("L")).astype(int)
    found = to_gray(image)
    assert found.dtype == np.uint8
    assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.bool_])
def test_gray_keeps_the_dtype(dtype):
    x = np.ones((2, 2, 3), dtype)
    assert to_gray(x).dtype == dtype
    assert np.allclose(to_gray(x), 1)


def test_gray_of_other_channels():
    x = np.arange(16).reshape(2, 2, 4)
    assert np.array_equal(to_gray(x), to_gray(x[..., :3]))
    assert np.array_equal(to_gray(x[..., :1]), x[..., 0])
    assert np.array_equal(to_gray(x[..., 0]), x[..., 0])
    for shape in [(3,), (2, 2, 2), (1, 2, 2, 3)]:
        with pytest.raises(ValueError, match="an image has the shape"):
            to_gray(np.zeros(shape))


@pytest.mark.parametrize("size", [(48, 60), (24, 30), (31, 45)])
def test_enlarging_is_pillows_bilinear(image, size):
    wanted = np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))
    found = resize(image, *size)
    assert found.shape == (*size, 3)
    assert found.dtype == np.uint8
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64, np.bool_]
)
def test_a_plain_image_stays_plain(dtype):
    x = np.ones((5, 4), dtype)
    found = resize(x, 3, 9)
    assert found.dtype == dtype
    assert (found == 1).all()


def test_resize_of_rows_with_sizes_of_their_own(image):
    found = find("resize")([[image, None, image], np.array([2, 3, 4]), Constant(5)], 3)
    assert [None if one is None else one.shape for one in found] == [(2, 5, 3), None, (4, 5, 3)]


@pytest.mark.parametrize(
    ("x", "size"),
    [
        (np.zeros(3), (2, 2)),
        (np.zeros((0, 3)), (2, 2)),
        (np.zeros((3, 3)), (0, 2)),
        (np.zeros((3, 3)), (2, -1)),
        (np.zeros((3, 3)), (LARGEST, 2)),
        (np.zeros((3, 3)), (2.5, 2)),
    ],
)
def test_sizes_that_make_no_sense(x, size):
    with pytest.raises(RowError) as caught:
        find("resize")([[x], Constant(size[0]), Constant(size[1])], 1)
    assert caught.value.row == 0
