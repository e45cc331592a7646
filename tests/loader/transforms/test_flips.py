"""RandomFlip: about as many as were asked for."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader import RandomFlip


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 1])
def test_a_share_of_the_images_is_flipped(share):
    flip = RandomFlip(share)
    random = np.linspace(0, 1, 1000, endpoint=False)[:, None]
    found = [flip.region(4, 4, row).flip for row in random]
    assert sum(found) == round(1000 * share)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "0.5", None, True])
def test_a_share_is_a_probability(share):
    with pytest.raises(InvalidOptionError, match="share="):
        RandomFlip(share)
