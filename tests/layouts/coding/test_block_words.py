"""What a codec sees of a block."""

import numpy as np
import pytest

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.block_words import (
    rows_first,
    shape_of_words,
    steps_of,
    stored_dtype,
    words,
)
from tensorlake_spark.layouts.coding.chain import codec_of


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "c8", "M8[s]"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_words_have_the_bits_of_the_elements(shape, dtype):
    x = np.arange(6)[: int(np.prod(shape, dtype=int))].reshape(shape).astype(dtype)
    found = words(x)
    assert (found.shape, found.dtype) == shape_of_words(shape, x.dtype)
    assert found.tobytes() == x.tobytes()


def test_steps_that_a_block_has_no_axes_for_do_nothing():
    for name in ("delta(-1)+zstd", "lorenzo+zstd", "lorenzo(float)+zstd"):
        steps = steps_of(codec_of(name), (), np.dtype("f4"))
        assert (steps.axis, steps.lorenzo, steps.floats) == (0, False, False)
    assert steps_of(codec_of("delta(-2)+zstd"), (5,), np.dtype("f4")).axis == 0
    assert rows_first((2, 3, 4, 5)) == (4, 2, 3, 5)


def test_floats_with_decimal_places_are_stored_as_integers():
    assert stored_dtype(codec_of("decimal(2)+zstd"), np.dtype("f4")) == np.dtype("i4")
    assert stored_dtype(codec_of("zstd"), np.dtype("f4")) == np.dtype("f4")
    with pytest.raises(CorruptDataError, match="stores floats"):
        stored_dtype(codec_of("decimal(2)+zstd"), np.dtype("i4"))
