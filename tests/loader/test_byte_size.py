"""Sizes as people write them."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.byte_size import byte_size


@pytest.mark.parametrize(
    ("given", "nbytes"),
    [(1, 1), (np.int64(9), 9), ("1", 1), ("7B", 7), ("2kb", 2000), ("2 KiB", 2048), ("0.5GB", 500_000_000), ("1TiB", 1 << 40), ("3m", 3_000_000)],
)  # fmt: skip
def test_sizes(given, nbytes):
    assert byte_size(given, "memory") == nbytes


@pytest.mark.parametrize(
    "given",
    [
        0,
        -5,
        "0",
        "",
        "MB",
        "5XB",
        "five",
        1.5,
        True,
        None,
        "1 2MB",
        np.True_,
        np.zeros(3),
        1 << 63,
        "9" * 400,
    ],
)
def test_what_is_no_size(given):
    with pytest.raises(tl.InvalidOptionError, match=r"^memory=.* is not a size"):
        byte_size(given, "memory")
