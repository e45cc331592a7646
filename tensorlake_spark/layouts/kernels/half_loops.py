"""The loop that joins the halves of floats, which numba compiles.

It runs without the interpreter lock. Its other body, in NumPy, is the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]


def warm() -> None:
    """Have the loop compiled, or loaded from numba's cache."""
    half = np.zeros(1, np.uint16)
    join(half, half, np.zeros(1, np.uint32))


@compiled_loop
def join(upper: Array, lower: Array, out: Array) -> None:
    """Write the bits of floats.

    Parameters
    ----------
    upper, lower : uint16 arrays
        Their halves: a lower one of 0x8000 and more was rounded up, unless the number is NaN.
    out : uint32 array
        Where they go.
    """
    sixteen, fifteen = np.uint32(16), np.uint16(15)
    rest, endless = np.uint16(0x7FFF), np.uint16(0x7F80)
    for k in range(out.size):
        up = np.uint32(lower[k] >> fifteen) & np.uint32((upper[k] & rest) <= endless)
        out[k] = (np.uint32(np.uint32(upper[k]) - up) << sixteen) | np.uint32(lower[k])
