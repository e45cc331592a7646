"""The codec of a tensor is chosen by trying."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.codec_choice import choose_codec


def test_the_codec_is_chosen_by_trying():
    rng = np.random.default_rng(0)
    smooth = np.cumsum(rng.integers(-2, 3, (256, 512)), axis=0).astype(np.uint8)
    assert choose_codec(smooth).startswith("delta(-2)")
    assert choose_codec(rng.integers(0, 256, (64, 64), np.uint8)) == "raw"
    assert choose_codec(rng.random((64, 64)).astype(np.float32)).startswith(("shuffle", "delta"))
    assert choose_codec(np.zeros((0, 3))) == "zstd"
    with pytest.raises(InvalidOptionError, match="did you mean 'zstd'"):
        codecs.codec_of("zst")
