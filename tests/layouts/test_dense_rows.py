"""Blocks are decoded by one thread or by several, and the answer is NumPy's."""

import threading

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts import dense_rows
from tensorlake_spark.layouts.coding import codec as codecs


@pytest.mark.parametrize("codec", ["zstd", "delta(-2)+zstd", "lorenzo(float)+zigzag+pack"])
def test_blocks_that_take_long_are_decoded_by_several_threads(tmp_path, monkeypatch, codec):
    monkeypatch.setattr(dense_rows, "_LONG", 1)
    monkeypatch.setattr(dense_rows, "_STACK_ROW", 0)
    x = np.random.default_rng(3).normal(size=(12, 10, 9)).cumsum(axis=0).astype(np.float32)
    lake = tl.open(tmp_path)
    lake.write("x", x, block_shape=(5, 4, 9), codec=codec)
    met, both, decode_into = set(), threading.Barrier(2), codecs.decode_into

    def meet(*args):
        if threading.current_thread() not in met:  # so that one thread cannot do all of it
            met.add(threading.current_thread())
            both.wait(30)
        decode_into(*args)

    with monkeypatch.context() as patched:
        patched.setattr(codecs, "decode_into", meet)
        np.testing.assert_array_equal(lake["x"][:], x)
    assert len(met) == 2
    for key in [np.s_[2:9, 1:], np.s_[::3, :, 4], np.s_[[7, 0, 7]], np.s_[:, [1, 8], ::-2], 11]:
        np.testing.assert_array_equal(lake["x"][key], x[key])


def test_a_damaged_block_is_named_by_whichever_thread_finds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(dense_rows, "_LONG", 1)
    monkeypatch.setattr(dense_rows, "_STACK_ROW", 0)
    x = np.arange(400, dtype=np.int32).reshape(20, 20)
    lake = tl.open(tmp_path)
    lake.write("x", x, block_shape=(5, 20), codec="zstd")
    decode_into = codecs.decode_into

    def damaged(payload, codec, shape, dtype, src, part):
        decode_into(b"no frame" if part[0, 0] == 0 else payload, codec, shape, dtype, src, part)

    monkeypatch.setattr(codecs, "decode_into", damaged)
    with pytest.raises(CorruptDataError, match="tensor 'x': a payload does not decompress"):
        lake["x"].read(out=np.zeros_like(x))
