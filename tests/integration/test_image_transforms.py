"""Transforms of images from a dataset to a batch: images and masks are cut alike, whatever makes the batches."""

import numpy as np
import pytest
from resized_images import picture, resized

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.loader import (
    CenterCrop,
    Compose,
    RandomCrop,
    RandomFlip,
    RandomResizedCrop,
    Resize,
)
from tensorlake_spark.loader.opening import loader_of_dataset

COUNT = 24


@pytest.fixture
def dataset(tmp_path):
    images = [picture(30 + n, 40, 3, n) for n in range(COUNT)]
    dataset = tl.dataset(
        str(tmp_path / "dataset"),
        {"image": types.Image("png"), "mask": types.SegmentMask(), "bright": types.BinaryMask()},
    )
    dataset.extend(
        {
            "image": images,
            "mask": [i[..., 0] for i in images],
            "bright": [i[..., 0] > 128 for i in images],
        }
    )
    return dataset


def batches(dataset, **options):
    with loader_of_dataset(dataset, 8, **options) as loader:
        return [*loader]


def test_images_and_masks_are_cut_alike(dataset):
    crop = Compose(RandomCrop(16, 20), RandomFlip())
    given = {"image": Compose(crop, RandomFlip(0)), "mask": crop, "bright": crop}
    found = batches(dataset, shuffle=True, transform=given)
    assert sum(len(batch["mask"]) for batch in found) == COUNT
    for batch in found:
        assert batch["image"].shape == (8, 16, 20, 3)
        assert (batch["mask"].dtype, batch["bright"].dtype) == (np.uint8, np.bool_)
        np.testing.assert_array_equal(batch["image"][..., 0], batch["mask"])
        np.testing.assert_array_equal(batch["bright"], batch["mask"] > 128)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_cut_does_not_depend_on_threads(dataset, workers):
    crop = RandomResizedCrop(12, 12)
    one = batches(dataset, shuffle=True, transform={"image": crop}, workers=2)
    other = batches(dataset, shuffle=True, transform={"image": crop}, workers=workers)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a["image"], b["image"])
        assert len({image.tobytes() for image in a["image"]}) == 8


def test_images_are_what_pillow_resizes(dataset):
    (first, *_) = batches(dataset, transform={"image": Resize(10, 13)})
    want = [resized(picture(30 + n, 40, 3, n), (10, 13)) for n in range(8)]
    np.testing.assert_array_equal(first["image"], np.stack(want))
    assert isinstance(first["mask"], list)  # they keep their sizes


@pytest.mark.parametrize("tile_bytes", [None, 2000])
def test_raw_images_are_cut_too(tmp_path, tile_bytes):
    images = [picture(20 + n, 30, 3, n).astype("u2") * 200 for n in range(10)]
    raw = tl.dataset(
        str(tmp_path / "raw"), {"image": types.Image("raw", dtype="uint16")}, tile_bytes=tile_bytes
    )
    raw.extend({"image": images})
    (plain, *_) = batches(raw)
    for found, image in zip(plain["image"], images):
        np.testing.assert_array_equal(found, image)
    found = batches(raw, transform={"image": Compose(CenterCrop(11, 12), RandomFlip(1))})
    want = [
        image[(n + 9) // 2 : (n + 9) // 2 + 11, 9:21][:, ::-1] for n, image in enumerate(images)
    ]
    np.testing.assert_array_equal(
        np.concatenate([batch["image"] for batch in found]), np.stack(want)
    )
