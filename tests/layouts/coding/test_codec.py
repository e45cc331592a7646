"""Codecs: every part of every block, bit by bit."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.testing.laws import arrays, bits


def ends(size):
    """Two different positions of an axis."""
    return st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True)


@times(2)
@given(st.data())
def test_whole_blocks_parts_and_stacks(data):
    x = data.draw(arrays().filter(lambda a: a.size > 0))
    if x.ndim >= 2 and data.draw(st.booleans()):  # longer than a band
        x = np.concatenate([x] * 40, axis=-2)
    x = np.ascontiguousarray(x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("=")))
    codec = codecs.codec_of(data.draw(st.sampled_from(codecs.CODECS)))
    payload = codecs.encode(x, codec)
    assert bits(codecs.decode(payload, codec, x.shape, x.dtype)) == bits(x)
    stack = codecs.decode_stack([payload, payload], codec, x.shape, x.dtype)
    assert bits(stack) == bits(np.stack([x, x]))
    src = tuple(
        slice(a, b, s)
        for a, b, s in (
            (*sorted(data.draw(ends(n))), data.draw(st.integers(1, 3))) for n in x.shape
        )
    )
    out = np.empty(x[src].shape, x.dtype)
    codecs.decode_into(payload, codec, x.shape, x.dtype, src, out)
    assert bits(out) == bits(x[src])


@given(st.binary(max_size=60), st.sampled_from(codecs.CODECS))
def test_garbage_is_an_error_not_an_answer(garbage, name):
    codec = codecs.codec_of(name)
    if name == "raw" and len(garbage) == 24:
        return
    with pytest.raises(CorruptDataError):
        codecs.decode(garbage, codec, (3, 4), np.dtype("i2"))
