"""Words of either sign as unsigned ones, and back."""

import numpy as np
import pytest

from tensorlake_spark.layouts.coding.filters import zigzag


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_every_word_comes_back(size):
    ends = np.iinfo(f"i{size}")
    signed = [0, -1, 1, -2, ends.max, ends.min, ends.min + 1]
    words = np.array(signed, f"i{size}").view(f"u{size}")
    folded = zigzag.fold(words)
    assert folded.dtype == words.dtype
    assert folded[:4].tolist() == [0, 1, 2, 3]
    assert folded[4:].tolist() == [2 ** (8 * size) - 2, 2 ** (8 * size) - 1, 2 ** (8 * size) - 3]
    zigzag.unfold(folded)
    assert np.array_equal(folded, words)


def test_all_bytes():
    words = np.arange(256, dtype=np.uint8)
    folded = zigzag.fold(words)
    assert sorted(folded.tolist()) == list(range(256))
    zigzag.unfold(folded)
    assert np.array_equal(folded, words)
