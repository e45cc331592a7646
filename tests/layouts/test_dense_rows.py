"""Blocks are decoded by one thread or by several, and the answer is NumPy's."""

import threading

import numpy as np
import pytest
from loop_taking import take_loops

import tensorlake_spark as tl
from tensorlake_spark import kernel_switch
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts import dense_rows
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.kernels import dense


@pytest.mark.parametrize("codec", ["zstd", "delta(-2)+zstd", "lorenzo(float)+zigzag+pack"])
def test_blocks_that_take_long_are_decoded_by_several_threads(tmp_path, monkeypatch, codec):
    monkeypatch.setattr(dense_rows, "_LONG", 1)
    monkeypatch.setattr(dense_rows, "_STACK_ROW", 0)
    monkeypatch.setenv(kernel_switch.SWITCH, "numpy")
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


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_packed_blocks_are_decoded_together(tmp_path, monkeypatch):
    """By the compiled loop, run by Python: runs of eight rows, whole blocks and parts of them."""
    monkeypatch.setattr(dense_rows, "_STACK_ROW", 0)
    monkeypatch.setattr(codecs, "_SHORT_FRAME", 0)
    x = np.random.default_rng(3).normal(size=(11, 10, 20)).cumsum(axis=0).astype(np.float32)
    lake = tl.open(tmp_path)
    lake.write("x", x, block_shape=(4, 3, 16), codec="lorenzo(float)+zigzag+pack")
    found = take_loops(monkeypatch, dense, ("decode_packed_into",))
    for key in [
        np.s_[:],
        np.s_[3:10, 2:9, 5:19],
        np.s_[4],
        np.s_[:, 7, 3],
        np.s_[2, 4, 6],
        np.s_[::-1, 1:4],
    ]:
        found.clear()
        np.testing.assert_array_equal(lake["x"][key], x[key])
        assert found == {"decode_packed_into"}
    for key in [np.s_[::2], np.s_[[3, 1, 3]]]:
        found.clear()
        np.testing.assert_array_equal(lake["x"][key], x[key])
        assert found == set()
    found.clear()
    np.testing.assert_array_equal(lake["x"].max(axis=(1, 2)), x.max(axis=(1, 2)))
    assert found == {"decode_packed_into"}  # a block at a time, into what takes blocks apart
    out = np.zeros_like(x[::-1])
    lake["x"].read(out=out[::-1])  # memory that descends has no loop
    np.testing.assert_array_equal(out[::-1], x)
