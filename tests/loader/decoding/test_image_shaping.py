"""Cut, resized, flipped: by Pillow, by the compiled loop, for every dtype."""

import importlib

import numpy as np
import pytest
from resized_images import at_once, cut, picture, resized

from tensorlake_spark.loader.decoding import image_shaping
from tensorlake_spark.loader.decoding.image_shaping import shaped
from tensorlake_spark.loader.decoding.region import Region

loops = importlib.import_module("tensorlake_spark.loader.decoding.resize_loops")


def test_what_is_not_resized_is_a_view():
    image = picture(20, 30)
    for region in (
        Region(),
        Region((1, 2, 3, 4)),
        Region(flip=True),
        Region(None, (20, 30), (1, 2, 3, 4)),
    ):
        assert np.shares_memory(shaped(image, region), image)
    np.testing.assert_array_equal(
        shaped(image, Region((5, 5, 10, 10), (10, 10), (1, 2, 3, 4), True)),
        image[6:9, 7:11][:, ::-1],
    )


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("size", [(10, 12), (40, 70), (50, 12), (10, 100), (20, 30), (1, 1)])
def test_bytes_are_resized_as_pillow_does(channels, size):
    image = picture(20, 30, channels)
    found = shaped(image, Region(size=size))
    np.testing.assert_array_equal(found, resized(image, size))
    # Pillow's own order of the axes is of its version.
    assert np.abs(found.astype(int) - at_once(image, size)).max() <= 2


@pytest.mark.parametrize("region", [
    Region((2, 3, 12, 9), (8, 8), None, True), Region(None, (9, 40), (1, 2, 7, 30)), Region((2, 3, 12, 9), (20, 30), (5, 5, 9, 9), True),
])  # fmt: skip
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_the_loop_gives_the_same(monkeypatch, region, channels):
    image = picture(20, 30, channels)
    want = shaped(image, region)
    monkeypatch.setattr(image_shaping, "compiled", lambda *_, **__: loops)
    np.testing.assert_array_equal(shaped(image, region), want)
    out = np.zeros((3, *want.shape), np.uint8)
    assert shaped(image, region, out=out[1]).base is not None
    np.testing.assert_array_equal(out[1], want)
    assert not out[[0, 2]].any()
    assert image.flags.writeable
    np.testing.assert_array_equal(
        shaped(image[:, ::-1], Region(size=(7, 7))), resized(image[:, ::-1], (7, 7))
    )


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("channels", [None, 1, 2, 5])
def test_other_numbers_are_resized_as_float32(dtype, channels):
    rng = np.random.default_rng(1)
    image = (rng.random((20, 30) if channels is None else (20, 30, channels)) * 1.999).astype(dtype)
    found = shaped(image, Region((1, 2, 16, 24), (8, 12), flip=True))
    planes = image.astype("f4").reshape(20, 30, -1)
    want = np.stack(
        [resized(cut(p, (1, 2, 16, 24)), (8, 12)) for p in np.moveaxis(planes, 2, 0)], -1
    )
    assert found.dtype == image.dtype
    if image.dtype.kind in "iu":
        want = np.rint(want)
    elif image.dtype.kind == "b":
        want = want >= 0.5
    np.testing.assert_array_equal(found.reshape(want.shape), want[:, ::-1].astype(dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_the_largest_numbers_stay(dtype):
    bounds = np.iinfo(dtype)
    for number in (bounds.min, bounds.max):
        image = np.full((9, 9, 2), number, dtype)
        assert (shaped(image, Region(size=(4, 13))) == number).all()


def test_a_smaller_image_is_the_same_part():
    """What is decoded at a half is cut where the region would be cut in the whole."""
    image = np.repeat(np.repeat(picture(20, 30), 2, axis=0), 2, axis=1)
    half = image[::2, ::2]
    region = Region((4, 6, 20, 30), (10, 15))
    np.testing.assert_array_equal(shaped(half, region, 2, (40, 60)), cut(half, (2, 3, 10, 15)))
    odd = Region((5, 7, 20, 30), (10, 15))
    apart = shaped(half, odd, 2, (40, 60)).astype(int) - resized(cut(image, odd.box), (10, 15))
    assert np.abs(apart).mean() < 3


def test_the_last_pixel_of_an_odd_size_is_half_a_pixel():
    image = picture(21, 31)
    half = image[::2, ::2]
    assert half.shape[:2] == (11, 16)
    assert shaped(half, Region(size=(7, 8)), 2, (21, 31)).shape == (7, 8, 3)
