"""Words as bins and bits."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.filters import bin_coding


def compress(block):
    return pa.Codec("zstd", 1).compress(block, asbytes=True)


@given(st.data())
def test_all_words_come_back(data):
    size = data.draw(st.sampled_from([1, 2, 4, 8]))
    word = np.dtype(f"<u{size}")
    top = data.draw(st.integers(0, 8 * size))
    numbers = st.lists(st.integers(0, (1 << top) - 1), min_size=1, max_size=80)
    words = np.array(data.draw(numbers), word)
    payload = bin_coding.encode(words, compress)
    got = bin_coding.decode([payload, payload], len(words), word)
    assert got.dtype == word
    assert got.tolist() == [words.tolist()] * 2


def test_powers_of_two_and_their_neighbours():
    powers = [1 << k for k in range(64)]
    words = np.array([n for p in powers for n in (p - 1, p, p + 1)] + [2**64 - 1], np.uint64)
    payload = bin_coding.encode(words, compress)
    assert bin_coding.decode([payload], len(words), np.dtype("<u8"))[0].tolist() == words.tolist()


def test_small_numbers_need_no_bits():
    words = np.arange(256, dtype=np.uint64)
    payload = bin_coding.encode(words, compress)
    fine, length = struct.unpack_from("<BI", payload)
    assert (fine, 5 + length) == (7, len(payload))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p[:4], "has 4 bytes"),
        (lambda p: p[:20], "ends too early"),
        (lambda p: b"\x08" + p[1:], "begins with 8"),
        (lambda p: p + b"\0", "bytes of bits follow where"),
        (lambda p: p[:-1], "bytes of bits follow where"),
        (lambda p: b"\x00" + p[1:], "lies in bin"),
    ],
)
def test_damage(change, said):
    words = np.arange(0, 1 << 20, 999, dtype=np.uint32)
    payload = change(bin_coding.encode(words, compress))
    with pytest.raises(CorruptDataError, match=said):
        bin_coding.decode([payload], len(words), np.dtype("<u4"))


def test_another_number_of_words_is_damage():
    words = np.arange(1000, dtype=np.uint32)
    payload = bin_coding.encode(words, compress)
    for count in (999, 1001, 1 << 40):
        with pytest.raises(CorruptDataError):
            bin_coding.decode([payload], count, np.dtype("<u4"))


def test_more_words_than_are_looked_at_together():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 40, 70_000).astype(np.uint64) >> rng.integers(
        0, 40, 70_000
    ).astype(np.uint64)
    words[:30_000] >>= np.uint64(38)  # few have bits
    payload = bin_coding.encode(words, compress)
    assert np.array_equal(bin_coding.decode([payload], len(words), words.dtype)[0], words)
