"""Values are narrowed only where every bit of them comes back on any machine."""

import numpy as np
import pytest

from tensorlake_spark.layouts.coding.buffers import STORED, narrowest, pack_values, unpack_values


@pytest.mark.parametrize(("dtype", "word", "quiet"), [("f8", "u8", 51), ("f4", "u4", 22)])
def test_a_signalling_nan_is_not_narrowed(dtype, word, quiet):
    nan = np.array([np.inf], dtype).view(word)[0]
    signalling = np.array([nan | np.dtype(word).type(1 << quiet - 1)]).view(dtype)
    quieted = np.array([nan | np.dtype(word).type(1 << quiet)]).view(dtype)
    assert np.isnan(signalling).all()
    assert STORED[narrowest(quieted)] == "f2"
    assert STORED[narrowest(signalling)] == ""
    for values in (signalling, quieted):
        got = unpack_values([pack_values(values)], [1], np.dtype(dtype))
        assert got.tobytes() == values.tobytes()
