"""Resize: one size for all, or the shorter side."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader import Resize

NONE = np.empty(0)


@pytest.mark.parametrize(
    ("size", "image", "wanted"),
    [
        ((224, 200), (480, 640), (224, 200)),
        ((256,), (480, 640), (256, 341)),
        ((256,), (640, 480), (341, 256)),
        ((10,), (1000, 1), (10000, 10)),
        ((1,), (7, 7), (1, 1)),
    ],
)
def test_a_size_or_the_shorter_side(size, image, wanted):
    region = Resize(*size).region(*image, NONE)
    assert region.size == wanted
    assert (region.box, region.window, region.flip) == (None, None, False)


@pytest.mark.parametrize("value", [0, -1, 2.5, "224", None, True, 1 << 31])
def test_a_length_is_a_number_above_0(value):
    with pytest.raises(InvalidOptionError, match="height="):
        Resize(value, 4)
    if value is not None:
        with pytest.raises(InvalidOptionError, match="width="):
            Resize(4, value)


def test_numbers_of_numpy_are_taken():
    assert Resize(np.int64(4), np.uint8(5)).region(9, 9, NONE).size == (4, 5)
