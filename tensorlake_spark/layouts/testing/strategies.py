"""What the laws of a layout are tried on: arrays, tensors of few elements, and keys, drawn by Hypothesis."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
    "datetime64[ns]", "datetime64[D]", "timedelta64[s]",
    "bfloat16", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""Every dtype that a layout has to hold."""

KINDS = ("noise", "zeros", "steps", "blocks")
"""What elements look like: any bits, all zero, small numbers in turn, two numbers."""

_CELLS = 3000  # of a tensor of few elements, so that NumPy can hold it against an array


def elements(dtype: np.dtype[Any], size: int, kind: str, seed: int) -> Array:
    """Return elements of a kind, with bits that no arithmetic would keep where they are noise."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    if kind == "noise":
        return rng.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype)
    small = {"zeros": 0, "steps": np.arange(size) % 11, "blocks": np.arange(size) < size // 2}
    return np.broadcast_to(np.asarray(small[kind], np.int64), size).astype(dtype)


def _arrays(draw: st.DrawFn, max_rank: int = 4) -> Array:
    dtype = dtype_of(draw(st.sampled_from(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=max_rank)))
    kind = draw(st.sampled_from(KINDS))
    array = elements(dtype, math.prod(shape), kind, draw(st.integers(0, 2**32 - 1))).reshape(shape)
    if draw(st.booleans()) and dtype.kind in "iufcmM" and dtype.itemsize > 1:
        array = array.astype(dtype.newbyteorder(">"))
    if draw(st.booleans()) and array.ndim > 1:
        array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    return array


arrays = st.composite(_arrays)
"""Draw an array of any dtype, rank and byte order; ``max_rank`` bounds the rank."""


def _few(draw: st.DrawFn, max_rank: int = 9) -> SparseTensor:
    dtype = dtype_of(draw(st.sampled_from(DTYPES)))
    shape: list[int] = []
    for _ in range(draw(st.integers(0, max_rank))):
        shape.append(draw(st.integers(0 if len(shape) < 2 else 1, _CELLS)))
        shape[-1] %= 1 + min(60, _CELLS // max(1, math.prod(shape[:-1])))
    seed = draw(st.integers(0, 2**32 - 1))
    size = math.prod(shape)
    count = min(size, draw(st.integers(0, 40)))
    places = np.sort(np.random.default_rng(seed).choice(size, count, replace=False))
    coords = np.array(np.unravel_index(places, shape) if shape else (), np.int64)
    values = elements(dtype, count, draw(st.sampled_from(KINDS)), seed)
    return SparseTensor(coords.reshape(len(shape), count), values, shape)


few = st.composite(_few)
"""Draw a `SparseTensor` of a few elements, some of them or all explicit zeros, rank 0 to ``max_rank``."""


_slices = cache(st.slices)  # to build a strategy takes longer than to draw from it


def _keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = []
    for size in shape:
        if size and draw(st.integers(0, 3)) == 0:
            key.append(draw(st.integers(-size, size - 1)))
        else:
            key.append(draw(_slices(size)))
    return tuple(key[: draw(st.integers(0, len(key)))])


keys = st.composite(_keys)
"""Draw a basic key that fits a shape."""


def _array_keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    key = list(draw(keys(shape)))
    axis = draw(st.integers(0, len(shape) - 1))
    key += [slice(None)] * (axis + 1 - len(key))
    size = shape[axis]
    if draw(st.booleans()):
        key[axis] = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
        return tuple(key)
    indices = st.lists(st.integers(-size, size - 1), max_size=8) if size else st.just([])
    key[axis] = np.array(draw(indices), np.int64)
    if draw(st.booleans()) and len(key[axis]) % 2 == 0:
        key[axis] = key[axis].reshape(2, -1)
    return tuple(key)


array_keys = st.composite(_array_keys)
"""Draw a key with one integer or boolean array in it, for a shape of rank 1 or more."""


def _points(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Array, ...]:
    count = draw(st.integers(0, 12)) if 0 not in shape else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return tuple(rng.integers(-n, n, count) if count else np.zeros(0, np.int64) for n in shape)


points = st.composite(_points)
"""Draw coordinates of single elements, for a shape of rank 1 or more."""


def _mixed_keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    # By numbers of NumPy: of the draws that this takes, Hypothesis would make few keys, and empty ones.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    together = [(1,), (2,), (3,), (3,), (2, 3), (2, 1), (), (0,)][
        rng.choice(8, p=[0.15] * 6 + [0.05] * 2)
    ]
    key: list[Any] = []
    axis = 0
    while axis < len(shape):
        size = shape[axis]
        kind = rng.choice(
            ["slice", "mask", "array", "array", "integer"] if size else ["slice", "mask"]
        )
        sides = shape[axis : axis + rng.integers(1, 4)] if kind == "mask" else (size,)
        axis += len(sides)
        if kind == "slice":
            steps = slice(None, None, rng.choice([1, 1, 2, 3, -1, -2]))
            key.append(
                slice(*map(int, sorted(rng.integers(-1, size + 2, 2))))
                if rng.random() < 0.3
                else steps
            )
        elif kind == "integer":
            key.append(int(rng.integers(-size, size)))
        elif kind == "mask":
            cells = math.prod(sides)
            count = min(cells, rng.choice([1, *together[-1:] * 6, 5]))
            key.append(np.zeros(sides, bool))
            key[-1].flat[rng.choice(cells, count, replace=False)] = True
        else:
            grid = (
                together[rng.integers(0, len(together) + 1) :] if rng.random() < 0.3 else together
            )
            grid = tuple(1 if rng.random() < 0.2 else n for n in grid)
            slack = int(rng.random() < 0.03)
            key.append(rng.integers(-size - slack, size + slack, grid))
    if rng.random() < 0.4:  # what an Ellipsis stands for, it may be nothing
        spans = [k for k, part in enumerate(key) if isinstance(part, slice)]
        first = rng.choice([*spans, *spans, 0, len(key)])
        key[first : first + (first in spans)] = [...]
    for part in rng.choice(np.array([None, None, None, True, False]), rng.choice([0, 0, 1, 2])):
        key.insert(rng.integers(0, len(key) + 1), part)
    return tuple(key)


mixed_keys = st.composite(_mixed_keys)
"""Draw a key of any kind: index arrays and masks, most of which broadcast, slices, integers, None, Ellipsis, bools."""
