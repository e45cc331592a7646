"""Region: the shape of what comes out."""

import pytest

from tensorlake_spark.loader.decoding.region import WHOLE, Region


@pytest.mark.parametrize(
    ("region", "shape"),
    [
        (WHOLE, (48, 64)),
        (Region((1, 2, 3, 4)), (3, 4)),
        (Region((1, 2, 3, 4), (5, 6)), (5, 6)),
        (Region(None, (5, 6), (0, 0, 2, 3)), (2, 3)),
        (Region(flip=True), (48, 64)),
    ],
)
def test_its_shape(region, shape):
    assert region.shape(48, 64) == shape
