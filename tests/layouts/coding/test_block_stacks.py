"""Many blocks at once: what each of them gives alone."""

import numpy as np
import pytest

from tensorlake_spark.layouts.coding.block_stacks import decode_stack
from tensorlake_spark.layouts.coding.codec import codec_of, decode, encode


@pytest.mark.parametrize("first", ["", "transpose+"])
@pytest.mark.parametrize("name", ["raw", "zstd", "bins+zstd", "delta(-2)+shuffle+zstd", "decimal(1)+nibbles+zstd", "pco"])  # fmt: skip
def test_a_stack_is_its_blocks(name, first):
    rng = np.random.default_rng(0)
    blocks = [np.round(rng.standard_normal((5, 40, 3)), 1) + 0.0 for _ in range(3)]
    codec = codec_of(first + name)
    found = [encode(block, codec) for block in blocks]
    assert {name for name, _ in found} == {codec.name}
    payloads = [payload for _, payload in found]
    stack = decode_stack(payloads, codec, (5, 40, 3), np.dtype("f8"))
    assert np.array_equal(stack, blocks)
    assert np.array_equal(decode(payloads[1], codec, (5, 40, 3), np.dtype("f8")), blocks[1])
