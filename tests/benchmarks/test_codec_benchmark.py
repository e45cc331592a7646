"""The benchmark of codecs runs, checks every answer, and says what is missed."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bench_codecs
from bench_codecs import Coded, Figure, measure, speed, verdicts
from number_kinds import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_answers(kind):
    x = KINDS[kind](16, 3000)
    figures = measure(x, 1)
    assert [f.engine for f in figures] == ["ours, auto", "ours, smallest", *bench_codecs.PEERS]
    assert all(0 < f.share < 1.5 and f.speed > 0 for f in figures)
    text = bench_codecs.table(kind, x, figures)
    assert all(f"| {f.engine} |" in text for f in figures)


def test_a_wrong_answer_is_no_figure():
    x = np.arange(5)
    with pytest.raises(AssertionError, match="bad: the answer is not the array"):
        speed(Coded("bad", 1, lambda: x[::-1]), x, 1)


def test_what_is_missed_is_said():
    share = {**dict.fromkeys(bench_codecs.PEERS, 0.5), "pcodec": 0.25}
    share |= {"ours, auto": 0.51, "ours, smallest": 0.25}
    figures = [Figure(name, "", size, 1) for name, size in share.items()]
    (_, auto, _, bound), (_, smallest, peer, _) = verdicts(figures)
    assert auto > bound
    assert (smallest, peer) == (1, "pcodec")
    assert "MISSED" in bench_codecs.table("x", np.zeros(3), figures)
