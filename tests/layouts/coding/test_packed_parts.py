"""Parts of packed blocks land where they belong, and a damaged payload is named."""

import numpy as np
import pytest
from loop_taking import take_loops

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.packed_parts import put_part, put_parts
from tensorlake_spark.layouts.kernels import dense


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_damaged_payload_among_many_is_an_error(monkeypatch):
    x = np.linspace(1, 2, 60).reshape(3, 20)
    codec = codecs.codec_of("lorenzo(float)+pack")
    _, payload = codecs.encode(x, codec)
    take_loops(monkeypatch, dense, ())
    starts = np.zeros((2, 2), np.int64)
    parts = starts, starts + x.shape, np.array([[0, 0], [3, 0]])
    out = np.empty((6, 20))
    assert put_parts([payload, payload], codec, x.shape, x.dtype, *parts, out)
    np.testing.assert_array_equal(out, np.concatenate([x, x]))
    assert not put_parts([payload], codec, x.shape, x.dtype, *parts, out[::-1])  # has no loop
    for damaged, said in [
        (payload[:2], "2 widths"),
        (payload[:-1], "bytes of packed words"),
        (b"\xff" * 9, "in 255"),
    ]:
        with pytest.raises(CorruptDataError, match=said):
            put_parts([payload, damaged], codec, x.shape, x.dtype, *parts, out)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_part_of_one_block(monkeypatch):
    x = np.linspace(1, 2, 60).reshape(3, 20)
    codec = codecs.codec_of("lorenzo(float)+pack")
    _, payload = codecs.encode(x, codec)
    out = np.empty((2, 9))
    what = payload, codec, x.shape, x.dtype
    monkeypatch.setenv("TENSORLAKE_KERNELS", "numpy")
    assert not put_part(*what, (slice(1, 3), slice(4, 13)), out)  # NumPy does it step by step
    take_loops(monkeypatch, dense, ())
    assert put_part(*what, (slice(1, 3), slice(4, 13)), out)
    np.testing.assert_array_equal(out, x[1:3, 4:13])
    assert not put_part(*what, (slice(0, 3, 2), slice(4, 13)), out)
