"""The law of the compiled loops of bins and nibbles: the bytes, words and errors that NumPy's bodies give.

``python tests/support/bit_kernel_law.py`` holds the compiled loops to it; pages of tests hold the same loops, run by
Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.filters import bin_coding, nibbles
from tensorlake_spark.layouts.kernels import bits

WORDS = ("u1", "<u2", "<u4", "<u8")
Array = np.ndarray[Any, Any]


@contextmanager
def by_loops() -> Iterator[None]:
    """Decode and encode by the loops, short blocks too."""
    before = bin_coding.compiled, bin_coding.SHORT, nibbles.SHORT
    bin_coding.compiled = nibbles.compiled = lambda *_, **__: bits
    bin_coding.SHORT = nibbles.SHORT = 0
    try:
        yield
    finally:
        bin_coding.compiled, bin_coding.SHORT, nibbles.SHORT = before
        nibbles.compiled = before[0]


def compress(block: Array) -> bytes:
    return bytes(pa.Codec("zstd", 1).compress(block, asbytes=True))


def made(word: str, rng: np.random.Generator) -> Array:
    """Return words, of few bits or of many."""
    top, count = int(rng.integers(1, 8 * np.dtype(word).itemsize + 1)), int(rng.integers(1, 300))
    return (rng.integers(0, 2**64, count, np.uint64) >> np.uint64(64 - top)).astype(word)


def check(word: str, rng: np.random.Generator) -> None:
    """Hold the loops to NumPy on some words, and on damaged ones."""
    words, kind = made(word, rng), np.dtype(word)
    payload, parts = bin_coding.encode(words, compress), nibbles.part(words)
    damaged = bytearray(payload)
    damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))

    def all_of() -> list[Any]:
        out = [
            bin_coding.encode(words, compress),
            bin_coding.decode([payload, payload], len(words), kind).tolist(),
            nibbles.join(parts, len(words), kind).tolist(),
        ]
        for some in (bytes(damaged), payload[:-1], payload + b"\0"):
            try:
                out.append(bin_coding.decode([some], len(words), kind).tolist())
            except CorruptDataError as error:
                out.append(str(error))
        return out

    want = all_of()
    assert want[1:3] == [[words.tolist()] * 2, words.tolist()]
    with by_loops():
        assert all_of() == want


if __name__ == "__main__":
    source = np.random.default_rng(0)
    for name in WORDS:
        for _ in range(60):
            check(name, source)
        bits.warm("put_bins", np.dtype(name).itemsize)
        bits.warm("join", np.dtype(name).itemsize)
    bits.warm("pack", 8)
    print(len(bits.put_bins.signatures), "kinds of words")
