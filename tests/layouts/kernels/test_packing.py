"""Packed words by the loops, which Python runs here; test_loops.py has them compiled."""

import numpy as np
import pytest
from kernel_law import check_packing

from tensorlake_spark.layouts.kernels import packing

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")


@pytest.mark.parametrize("word", ["u1", "<u2", "<u4", "<u8"])
def test_loops_give_the_bytes_and_words_that_numpy_gives(word):
    rng = np.random.default_rng(2)
    for _ in range(4):
        check_packing(word, rng)


@pytest.mark.parametrize("beside", [7, 31, 33])
@pytest.mark.parametrize("width", [*range(26, 36), 56, 57, 58, 63, 64])
def test_groups_of_any_width_are_unpacked_whole(width, beside):
    """Words of all ones, where each bit that is lost or taken from a neighbour is seen; the rest of the line is other."""
    words = np.zeros(128, np.uint64)
    words[16:64:2] = words[65:96:2] = 2**width - 1
    words[96:112] = 2**beside - 1
    payload = np.frombuffer(packing.encode(words), np.uint8)
    widths = payload[:8]
    assert widths.tolist() == [0, width, width, width, width, width, beside, 0]
    for line in (16, 32, 128):
        out = np.ones((128 // line, line), np.uint64)
        packing.decode_into(payload[8:], widths, np.arange(len(out)), line, out)
        assert out.reshape(-1).tolist() == words.tolist()
    if max(width, beside) <= 32:
        short = np.ones((1, 128), np.uint32)
        packing.decode_into(payload[8:], widths, np.arange(1), 128, short)
        assert short[0].tolist() == words.tolist()


def test_a_group_is_as_wide_as_its_one_bit():
    words = np.zeros(64 * packing.GROUP, np.uint64)
    words[5 :: packing.GROUP] = np.uint64(1) << np.arange(64, dtype=np.uint64)
    payload = np.frombuffer(packing.encode(words), np.uint8)
    assert payload[:64].tolist() == [*range(1, 65)]
    out = np.ones((1, words.size), np.uint64)
    packing.decode_into(payload[64:], payload[:64], np.arange(1), words.size, out)
    assert out[0].tolist() == words.tolist()


@pytest.mark.parametrize("loop", ["pack", "unpack"])
def test_warming_runs_one_direction(loop, monkeypatch):
    ran = []
    for name in ("pack", "unpack"):
        function = getattr(packing, name)
        monkeypatch.setattr(packing, name, lambda *a, n=name, f=function: (ran.append(n), f(*a))[1])
    packing.warm(loop, 4)
    assert ran == (["pack"] if loop == "pack" else ["pack", "unpack"])
