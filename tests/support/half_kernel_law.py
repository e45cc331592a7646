"""The law of the compiled loop of halves: it gives the bits that NumPy's body gives.

``python tests/support/half_kernel_law.py`` holds the compiled loop to it; pages of tests hold the same loop, run by
Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tensorlake_spark.layouts.kernels import half_loops as loops
from tensorlake_spark.layouts.quantization import halves


@contextmanager
def by_loops() -> Iterator[None]:
    """Join halves by the loop, few of them too."""
    before = halves.compiled, halves.SHORT
    halves.compiled, halves.SHORT = lambda *_, **__: loops, 0
    try:
        yield
    finally:
        halves.compiled, halves.SHORT = before


def check(upper: np.ndarray, lower: np.ndarray) -> None:
    """Hold the loop to NumPy, for any halves, those too that no float has."""
    want = halves.join(upper, lower)
    with by_loops():
        found = halves.join(upper, lower)
    assert found.shape == want.shape
    assert found.dtype == want.dtype == np.float32
    assert np.array_equal(found.view(np.uint32), want.view(np.uint32))


if __name__ == "__main__":
    every = np.arange(1 << 16, dtype=np.uint16)
    for lowest in (0, 1, 0x7FFF, 0x8000, 0xFFFF):
        check(every, np.full_like(every, lowest))
    for uppermost in (0, 1, 0x3F80, 0x7F7F, 0x7F80, 0x7F81, 0x8000, 0xFF80, 0xFFFF):
        check(np.full_like(every, uppermost), every)
    rng = np.random.default_rng(0)
    for shape in ((3,), (0, 4), (5, 1, 7)):
        check(*rng.integers(0, 1 << 16, (2, *shape), np.uint16))
    loops.warm()
    print(len(loops.join.signatures), "kind of halves")
