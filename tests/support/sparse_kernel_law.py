"""The law of the compiled loops of sparse reads: they give the elements, and the errors, that NumPy's body gives.

``python tests/support/sparse_kernel_law.py`` holds the compiled loops to it; pages of tests hold the same loops, run by
Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding.buffers import pack_ints
from tensorlake_spark.layouts.kernels import sparse
from tensorlake_spark.layouts.sparse import element_keys, offsets
from tensorlake_spark.rows.row import Row, checked, data_batch
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec

SHAPES = ((40,), (9, 7), (5, 24, 30, 33), (2**40, 2**21), (3, 2**31, 2**27))
STEPS = (1, 1, 3)


@contextmanager
def by_loops(each: int = sparse._EACH) -> Iterator[None]:
    """Read sparse rows by the loops; elements are searched where a row has so many for each place."""
    before = element_keys.compiled, offsets.compiled, sparse._EACH
    element_keys.compiled = offsets.compiled = lambda *_, **__: sparse
    sparse._EACH = each
    try:
        yield
    finally:
        element_keys.compiled, offsets.compiled, sparse._EACH = before


def made(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[TensorSpec, list[Row]]:
    """Return a tensor of blocks of small sides, and its rows."""
    coords = np.stack([rng.integers(0, min(n, 60), 300) * max(1, n // 60) for n in shape])
    values = rng.standard_normal(300)
    tensor = SparseTensor(coords, values, shape, duplicates="last")
    block = tuple(max(1, n // 3) for n in shape)
    order = {"order": rng.permutation(len(shape)).tolist()} if rng.random() < 0.5 else {}
    spec = TensorSpec("x", shape, values.dtype, "bsgs", block, params=order)
    layout = layout_of("bsgs")
    return spec, layout.encode(tensor, (0,) * len(shape), spec)


def key_of(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Return a slice on some axes."""
    ends = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in shape]
    return tuple(
        slice(*some, int(rng.choice(STEPS))) if rng.random() < 0.5 else slice(None) for some in ends
    )


def answer(spec: TensorSpec, rows: list[Row], key: Any) -> Any:
    """Return what a read of rows gives: coordinates and values, or the text of the error."""
    layout, selection = layout_of("bsgs"), select(key, spec.shape)
    result = layout.new_result(spec, selection, False)
    try:
        layout.decode(data_batch(spec, range(len(rows)), rows), spec, selection, result)
    except CorruptDataError as error:
        return str(error)
    found = layout.finish(spec, selection, result)
    return found.coords.tolist(), found.values.tobytes(), found.shape


def damaged(spec: TensorSpec, rows: list[Row], rng: np.random.Generator) -> list[Row]:
    """Return rows of which one has other offsets, with a checksum that holds."""
    place = int(rng.integers(len(rows)))
    index = pack_ints(rng.integers(0, 1 << int(rng.integers(1, 40)), rows[place].nnz))
    row = replace(rows[place], index=index, crc=None)
    return [*rows[:place], checked(spec, [row])[0], *rows[place + 1 :]]


def check(shape: tuple[int, ...], rng: np.random.Generator) -> int:
    """Hold reads of a tensor to the law; return how many were errors."""
    spec, rows = made(shape, rng)
    errors = 0
    for some in (rows, rows, damaged(spec, rows, rng)):
        key = key_of(shape, rng)
        want = answer(spec, some, key)
        for each in (1, sparse._EACH):
            with by_loops(each):
                assert answer(spec, some, key) == want, f"{shape} {spec.block_shape} {key} {each}"
        errors += isinstance(want, str)
    return errors


def main() -> None:
    """Hold the loops to the law."""
    rng = np.random.default_rng(0)
    errors = sum(check(shape, rng) for shape in SHAPES for _ in range(20))
    print(f"{errors} reads of damaged rows were errors")


if __name__ == "__main__":
    main()
