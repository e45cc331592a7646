"""Words by four bits: exact, and small where words are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.block_stacks import decode_stack
from tensorlake_spark.layouts.coding.chain import codec_of
from tensorlake_spark.layouts.coding.codec import decode, encode
from tensorlake_spark.layouts.coding.filters import nibbles


@pytest.mark.parametrize("word", ["u1", "<u2", "<u4", "<u8"])
@given(data=st.data())
def test_words_come_back(word, data):
    words = data.draw(hnp.arrays(word, st.integers(1, 70)))
    parts = nibbles.part(words)
    assert parts.nbytes == nibbles.size_of(len(words), words.dtype)
    assert np.array_equal(nibbles.join(parts.reshape(-1), len(words), words.dtype), words)


def test_the_bytes_are_those_of_the_format():
    assert nibbles.part(np.array([0x1234, 0x5678, 0x9ABC], "<u2")).tolist() == [
        [0x84, 0x0C], [0x73, 0x0B], [0x62, 0x0A], [0x51, 0x09],
    ]  # fmt: skip


def test_small_differences_take_half_a_byte_and_less():
    x = np.random.default_rng(0).integers(-3, 4, (64, 64, 8), np.int16)
    codec = codec_of("zigzag+nibbles+zstd")
    name, payload = encode(x, codec)
    assert len(payload) < 0.37 * x.size, "2.8 bits each"
    assert np.array_equal(decode(payload, codec_of(name), x.shape, x.dtype), x)
    stack = decode_stack([payload, payload], codec, x.shape, x.dtype)
    assert np.array_equal(stack, np.stack([x, x]))
    with pytest.raises(CorruptDataError, match="bytes"):
        decode(payload, codec, (64, 64, 7), x.dtype)
