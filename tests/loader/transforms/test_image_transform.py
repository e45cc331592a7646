"""What transforms of images have in common."""

import numpy as np

from tensorlake_spark import loader
from tensorlake_spark.loader.transforms.image_transform import ImageTransform, regions_of


def test_all_of_the_package_are_transforms():
    for transform in (
        loader.Resize(4, 4),
        loader.CenterCrop(4, 4),
        loader.RandomCrop(4, 4),
        loader.RandomResizedCrop(4, 4),
        loader.RandomFlip(),
        loader.Compose(loader.Resize(4, 4), loader.RandomFlip()),
    ):
        assert isinstance(transform, ImageTransform)
        random = np.random.default_rng(0).random((3, transform.n_random))
        regions = regions_of(transform, np.array([9, 10, 11]), np.array([12, 13, 14]), random)
        assert [r.shape(9 + n, 12 + n) for n, r in enumerate(regions)] == [
            transform.region(9 + n, 12 + n, random[n]).shape(9 + n, 12 + n) for n in range(3)
        ]
