"""Words in as few bits as each sixteen need."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.filters import bit_packing


@pytest.mark.parametrize("word", ["u1", "<u2", "<u4", "<u8"])
@given(data=st.data())
def test_words_and_the_beginnings_of_lines_come_back(word, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=40))
    words = data.draw(hnp.arrays(word, shape))
    words >>= words.dtype.type(data.draw(st.integers(0, 8 * words.itemsize - 1)))
    payload = bit_packing.encode(words)
    near = tuple(data.draw(st.integers(1, n)) for n in shape)
    found = bit_packing.decode(payload, shape, near, words.dtype)
    assert np.array_equal(found.reshape(near), words[tuple(slice(0, n) for n in near)])


def test_the_bytes_are_those_of_the_format():
    words = np.array([1, 2, 3, 0, 1] + [0] * 11 + [0x1234], "<u2")
    assert bit_packing.encode(words).hex(" ") == "02 0d 39 01 00 00" + " 34 12" + " 00" * 24
    assert len(bit_packing.encode(np.zeros(1000, "u8"))) == 63, "only widths"
    assert len(bit_packing.encode(np.full(16, 2**64 - 1, "u8"))) == 129


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "0 widths of packed words where 2 are needed"),
        (b"\2", "1 widths"),
        (b"\x11\2" + bytes(38), "words of 16 bits are packed in 17"),
        (b"\2\2" + bytes(7), "7 bytes of packed words where 8 are needed"),
        (b"\2\2" + bytes(9), "9 bytes"),
    ],
)
def test_a_payload_of_other_words_is_refused(payload, said):
    with pytest.raises(CorruptDataError, match=said):
        bit_packing.decode(payload, (20,), (1,), np.dtype("<u2"))
