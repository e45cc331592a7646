"""Loops over vectors in data files that numba compiles: products with one vector, and squares of lengths.

The vectors are multiplied where they lie, at whatever address, without the interpreter lock. Sums are taken in an order
that suits the processor; `vector_scan` allows for that. The other body is NumPy's ``vecdot``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import types

from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]

_WORDS = types.Array(types.float32, 1, "C", readonly=True, aligned=False)
_VECTOR = types.Array(types.float32, 1, "C", readonly=True)
_OUT = types.Array(types.float32, 1, "C")
_SUMS = {"reassoc", "contract"}  # in any order, by several accumulators


def warm() -> None:
    """Have the loops compiled, or loaded from numba's cache: that is done with the module."""


@partial(compiled_loop, signatures=[types.void(_WORDS, types.int64, _VECTOR, _OUT)], fastmath=_SUMS)
def products(words: Array, step: int, vector: Array, out: Array) -> None:
    """Write the product of each vector with one.

    Parameters
    ----------
    words : float32 ndarray
        The vectors, at any address.
    step : int
        How many words lie from the beginning of one vector to that of the next.
    vector : float32 ndarray
        The one.
    out : float32 ndarray
        Where the products go.
    """
    for row in range(out.size):
        here = words[row * step : row * step + vector.size]
        total = np.float32(0)
        for k in range(vector.size):
            total += here[k] * vector[k]
        out[row] = total


@partial(
    compiled_loop, signatures=[types.void(_WORDS, types.int64, types.int64, _OUT)], fastmath=_SUMS
)
def squares(words: Array, step: int, size: int, out: Array) -> None:
    """Write the square of the length of each vector, of so many words."""
    for row in range(out.size):
        here = words[row * step : row * step + size]
        total = np.float32(0)
        for k in range(size):
            total += here[k] * here[k]
        out[row] = total
