"""The law of the compiled loops: they give the words that NumPy's body of the same steps gives.

``python tests/support/kernel_law.py`` holds the compiled loops to it; pages of tests hold the same loops, run by Python.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.block_words import steps_of
from tensorlake_spark.layouts.coding.chain import CODECS
from tensorlake_spark.layouts.coding.filters import bit_packing, float_lorenzo
from tensorlake_spark.layouts.kernels import dense, packing
from tensorlake_spark.layouts.kernels.steps import Steps

DTYPES = ("u1", "f4", "c8")
MORE = ("i2", "f8", "M8[s]", "c16")
SHAPES = ((7,), (40, 5), (3, 40, 6), (2, 1, 35, 3), (2, 3, 2, 2))
CHAINS = [
    name
    for name, codec in CODECS.items()
    if codec.places is None and not (codec.bins or codec.nibbles or codec.pco)
]


def check(dtype: str, shape: tuple[int, ...], name: str, rng: np.random.Generator) -> bool:
    """Hold one block to the law, as a whole and in parts; return whether there is a loop for it."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    block = rng.integers(0, 256, nbytes, np.uint8).view(dtype).reshape(shape)
    codec = codecs.codec_of(name)
    if codec.floats:
        if not float_lorenzo.takes(block.dtype):
            return False
        assert dense.fits(block.view(f"u{block.itemsize}")) == float_lorenzo.fits(
            block.view(f"u{block.itemsize}")
        )
        block = (
            np.cumsum(rng.standard_normal(shape), axis=0) * 10.0 ** rng.integers(-20, 30)
        ).astype(dtype)
        assert dense.fits(block.view(f"u{block.itemsize}"))
    words = codecs.words(block)
    steps = steps_of(codec, shape, block.dtype)
    if not steps.takes(words.shape, words.itemsize):
        return False
    _, payload = codecs.encode(block, codec)
    flat = dense.encode(words, steps)
    if codec.packed:
        want = bit_packing.decode(payload, (words.size,), (words.size,), words.dtype).view(np.uint8)
    else:
        want = np.frombuffer(codecs.inflate(payload, codec.compress, nbytes), np.uint8)
    np.testing.assert_array_equal(flat, want, err_msg=f"{name} {dtype} {shape}")
    whole = tuple(slice(0, n) for n in words.shape)
    parts = [
        tuple(slice(*sorted(rng.choice(n + 1, 2, replace=False))) for n in words.shape)
        for _ in range(3)
    ]
    for src, apart in product([whole, *parts], [False, True]):
        out = space(words[src].shape, words.dtype, apart)
        dense.decode_into(flat, steps, words.shape, src, out)
        np.testing.assert_array_equal(out, words[src], err_msg=f"{name} {dtype} {shape} {src}")
        if codec.packed and codec.floats and out.size:
            _check_packed(payload, steps, words, src, apart)
    return True


def _check_packed(payload: bytes, steps: Steps, words: Any, src: Any, apart: bool) -> None:
    """Hold the loop over many blocks to NumPy: a part of a block twice, one below the other."""
    held = np.frombuffer(payload, np.uint8)
    part = words[src]
    out = space((2 * len(part), *part.shape[1:]), words.dtype, apart)
    starts = np.array([[s.start for s in src]] * 2)
    stops = np.array([[s.stop for s in src]] * 2)
    places = np.zeros_like(starts)
    places[1, 0] = len(part)
    what = steps, words.shape, starts, stops, places
    assert dense.decode_packed_into([held, _fixed(held)], *what, out) == -1
    np.testing.assert_array_equal(out, np.concatenate([part, part]))
    for damaged in (held[:-1], held[:0], np.append(held, held[:1]), np.full_like(held, 255)):
        assert dense.decode_packed_into([held, _fixed(damaged)], *what, out) == 1
    assert dense.decode_packed_into([held, held], *what, out[::-1]) is None


def _fixed(held: Any) -> Any:
    """Return a copy of a payload as it is read: nothing writes into it."""
    return np.frombuffer(held.tobytes(), np.uint8)


def check_packing(word: str, rng: np.random.Generator) -> None:
    """Hold the loops over packed words to NumPy: words of few bits or many, and the beginnings of some lines."""
    kind = np.dtype(word)
    shape = tuple(int(n) for n in rng.integers(1, 70, 2))
    # Each group of 16 words has a width of its own.
    shift = rng.integers(64 - 8 * kind.itemsize, 65, -(-math.prod(shape) // 16)).clip(0, 63)
    shifts = np.repeat(shift.astype(np.uint64), 16)[: math.prod(shape)].reshape(shape)
    words = (rng.integers(0, 2**64, shape, np.uint64) >> shifts).astype(kind)
    payload = bit_packing.encode(words)
    assert packing.encode(words.reshape(-1)) == payload
    widths, data = bit_packing.parts(payload, words.size, kind)
    rows, stop = int(rng.integers(1, shape[0] + 1)), int(rng.integers(1, shape[1] + 1))
    lines = np.sort(rng.permutation(shape[0])[:rows])
    out = np.zeros((rows, stop), kind)
    packing.decode_into(data, widths, lines, shape[1], out)
    np.testing.assert_array_equal(out, words[lines, :stop])
    near = bit_packing.decode(payload, shape, (rows, stop), kind)
    np.testing.assert_array_equal(near.reshape(rows, stop), words[:rows, :stop])


def space(shape: tuple[int, ...], dtype: np.dtype, apart: bool) -> np.ndarray:
    """Return room for a result, by itself or inside of a larger one."""
    if not apart:
        return np.zeros(shape, dtype)
    return np.zeros([n + 2 for n in shape], dtype)[tuple(slice(1, -1) for _ in shape)]


def main(dtypes: Sequence[str]) -> None:
    """Hold every loop to the law."""
    rng = np.random.default_rng(0)
    found = [check(d, s, n, rng) for d, s, n in product(dtypes, SHAPES, CHAINS)]
    for word in ("u1", "<u2", "<u4", "<u8"):
        for _ in range(100):
            check_packing(word, rng)
    print(f"{sum(found)} of {len(found)} blocks went through a compiled loop")


if __name__ == "__main__":
    main(sys.argv[1:] or DTYPES)
