"""The law of the compiled loops: they give the words that NumPy's body of the same steps gives.

``python tests/support/kernel_law.py`` holds the compiled loops to it; pages of tests hold the same loops, run by Python.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import product

import numpy as np

from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.chain import CODECS
from tensorlake_spark.layouts.kernels import dense

DTYPES = ("u1", "f4", "c8")
MORE = ("i2", "M8[s]", "c16")
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
    words = codecs.words(block)
    codec = codecs.codec_of(name)
    steps = codecs.steps_of(codec, shape, block.dtype)
    if not steps.takes(words.shape, words.itemsize):
        return False
    _, payload = codecs.encode(block, codec)
    flat = dense.encode(words, steps)
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
    return True


def space(shape: tuple[int, ...], dtype: np.dtype, apart: bool) -> np.ndarray:
    """Return room for a result, by itself or inside of a larger one."""
    if not apart:
        return np.zeros(shape, dtype)
    return np.zeros([n + 2 for n in shape], dtype)[tuple(slice(1, -1) for _ in shape)]


def main(dtypes: Sequence[str]) -> None:
    """Hold every loop to the law."""
    rng = np.random.default_rng(0)
    found = [check(d, s, n, rng) for d, s, n in product(dtypes, SHAPES, CHAINS)]
    print(f"{sum(found)} of {len(found)} blocks went through a compiled loop")


if __name__ == "__main__":
    main(sys.argv[1:] or DTYPES)
