"""What a notebook shows of samples."""

import numpy as np

from tensorlake_spark.datasets.interchange.notebook import samples_table
from tensorlake_spark.datasets.types import Image, Tensor, Text


def test_values_are_short_and_escaped():
    shown = samples_table(
        "a<b",
        {"t": Text(), "x": Tensor("float32"), "im": Image("png")},
        [{"t": "<" * 200, "x": np.zeros((2, 3), np.float32), "im": np.zeros((200, 300), np.uint8)}],
    )
    assert shown.count("&lt;") == 81
    assert "float32 (2, 3)" in shown
    assert shown.count("<img") == 1
    assert len(shown) < 3000
