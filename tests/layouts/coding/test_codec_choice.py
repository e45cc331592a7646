"""The codec of a tensor is chosen by trying."""

import sys

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding import codec_choice
from tensorlake_spark.layouts.coding.codec_choice import candidates, choose_codec, smallest_codec


def test_the_codec_is_chosen_by_trying():
    rng = np.random.default_rng(0)
    smooth = np.cumsum(rng.integers(-2, 3, (256, 512)), axis=0).astype(np.uint8)
    assert choose_codec(smooth).startswith("delta(-2)")
    assert choose_codec(rng.integers(0, 256, (64, 64), np.uint8)) == "raw"
    assert choose_codec(rng.random((64, 64)).astype(np.float32)).startswith(
        ("shuffle", "delta", "bins")
    )
    assert choose_codec(np.zeros((0, 3))) == "zstd"
    with pytest.raises(InvalidOptionError, match="did you mean 'zstd'"):
        codecs.codec_of("zst")


def walk(shape):
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    for axis in range(x.ndim):
        np.cumsum(x, axis=axis, out=x)
    return x / x.std()


@pytest.mark.parametrize(
    ("made", "chosen"),
    [
        (lambda rng: walk((64, 64, 128))[-16:, -16:], "lorenzo(float)+zigzag+shuffle+zstd"),
        (lambda rng: (1e6 * walk((64, 64, 128))[-16:, -16:]).astype(int), "lorenzo+zigzag+shuffle+zstd"),
        (lambda rng: np.cumsum(rng.poisson(300, 30_000)), "delta(-1)+shuffle+zstd"),
        (lambda rng: np.minimum(rng.zipf(1.3, 30_000), 10**7), "bins+zstd"),
        (lambda rng: np.round(rng.lognormal(4, 1, 30_000), 2), "decimal(2)+bins+zstd"),
        (lambda rng: rng.integers(0, 2, (100, 100)).astype(bool), "zstd"),
    ],
)  # fmt: skip
def test_what_suits_each_kind_of_numbers(made, chosen):
    assert choose_codec(made(np.random.default_rng(0))) == chosen


def test_floats_are_packed_where_loops_are_sure_to_decode_them(monkeypatch):
    x = walk((64, 64, 128)).astype(np.float32)[-16:, -16:]
    packed = "lorenzo(float)+zigzag+pack"
    sizes = {name: len(codecs.encode(x, codecs.codec_of(name))[1]) for name in (packed, "lorenzo(float)+zigzag+shuffle+zstd")}  # fmt: skip
    assert choose_codec(x) == min(sizes, key=sizes.get) != packed
    monkeypatch.setattr(codec_choice, "choice", lambda: "fast")
    assert choose_codec(x) == packed
    assert sizes[packed] < 1.1 * min(sizes.values())
    noise = np.random.default_rng(0).standard_normal((64, 1024)).astype(np.float32)
    assert choose_codec(noise) != packed, "more than a tenth larger than others"
    assert choose_codec(x.astype(np.int32)) != packed


def test_what_is_slow_to_decode_must_earn_it():
    gaps = np.random.default_rng(0).exponential(260, 30_000).astype(np.int64)
    times = np.cumsum(gaps)
    fast, slow = (
        len(codecs.encode(times, codecs.codec_of(f"delta(-1)+{group}+zstd"))[1])
        for group in ("shuffle", "zigzag+bins")
    )
    assert 0.97 * fast < slow
    assert choose_codec(times) == "delta(-1)+shuffle+zstd"
    assert slow > len(codecs.encode(times, codecs.codec_of(smallest_codec(times)))[1])


def test_bytes_are_not_tried_with_steps_for_wider_words():
    for ndim in range(4):
        names = "".join(name for name, _ in candidates(np.dtype("uint8"), ndim))
        assert not any(step in names for step in ("zigzag", "shuffle", "bins"))


def test_the_smallest_is_the_smallest_of_all_that_can_be_tried(monkeypatch):
    ids = np.minimum(np.random.default_rng(0).zipf(1.3, 30_000), 10**7)
    assert smallest_codec(ids) == "pco"
    assert smallest_codec(ids.astype(np.complex64)) not in ("pco", "raw")
    assert smallest_codec(np.zeros((0, 3))) == "zstd"
    assert smallest_codec(np.array(3.5)) == "raw"
    monkeypatch.setitem(sys.modules, "pcodec", None)  # as where it is not installed
    assert smallest_codec(ids) == "bins+zstd"
