"""The law of the loops that reduce dense blocks into states: whatever the blocks, they give what NumPy gives.

``python tests/support/reduction_law.py`` holds the compiled loops to it; a page of tests holds the same loops, run by
Python.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator

import numpy as np

from tensorlake_spark import kernel_switch
from tensorlake_spark.computing.operations import accumulation, dense_loops
from tensorlake_spark.computing.operations.block_reductions import KERNELS, BlockReduction
from tensorlake_spark.computing.operations.index_searches import BlockSearch

DTYPES = ("?", "u1", "i1", "u2", "i2", "i4", "u8", "i8", "f4", "f8")
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "var": np.var, "std": np.std, "norm": np.linalg.norm}
SEARCHES = {"argmax": np.argmax, "argmin": np.argmin}
LOOPS = (
    "add", "add_squares", "add_moments", "add_variance", "best", "add_runs", "add_squares_runs", "add_moments_runs",
    "best_runs", "variances",
)  # fmt: skip


def array_of(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array over the whole range of short integers; of floats some are NaN, and one slice infinite."""
    of = np.dtype(dtype)
    if of.kind == "b":
        return rng.random(shape) < 0.5
    if of.kind in "iu":
        info = np.iinfo(of)
        low, high = (info.min, info.max) if of.itemsize <= 2 else (max(info.min, -99), 99)
        return rng.integers(low, high, shape, of, endpoint=True)
    out = rng.integers(-3, 4, shape).astype(of)
    if rng.random() < 0.5:
        out[rng.random(shape) < 0.02] = np.nan
        out[..., -1] = np.inf
    return out


def blocks(array: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[tuple, np.ndarray]]:
    """Yield contiguous blocks of an array, in any order, each with its place."""
    cuts = []
    for n in array.shape:
        inner = sorted(set(rng.integers(1, n, rng.integers(0, 3)).tolist())) if n > 1 else []
        cuts.append([slice(a, b) for a, b in itertools.pairwise([0, *inner, n])])
    places = [*itertools.product(*cuts)]
    for number in rng.permutation(len(places)).tolist():
        yield places[number], np.ascontiguousarray(array[places[number]])


def folded(fold, parts):
    """The answer of a fold that adds one block after the other."""
    partial = None
    for place, block in parts:
        partial = fold.add(partial, place, block)
    return fold.finish(partial)


def check(dtype: str, seed: int, longest: int) -> None:
    """Hold the loops for a dtype to the law, with an array of three axes."""
    rng = np.random.default_rng([seed, DTYPES.index(dtype)])
    shape = (int(rng.integers(1, 7)), int(rng.integers(1, 7)), int(rng.integers(1, longest)))
    array = array_of(rng, dtype, shape)
    parts = [*blocks(array, rng)]
    for axes in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]:
        axis = axes[0] if len(axes) == 1 else axes
        kept = tuple(n for k, n in enumerate(shape) if k not in axes)
        for name, function in REDUCTIONS.items():
            if name == "norm" and len(axes) > 1:
                continue
            count = array.size // max(1, int(np.prod(kept)))
            kernel = KERNELS[name](array.dtype, count)
            wanted = np.asarray(function(array, axis=axis))
            # NumPy adds up floats of four bytes in four bytes.
            exact = function(array.astype("f8"), axis=axis) if dtype == "f4" else wanted
            got = np.asarray(folded(BlockReduction(kernel, shape, axes), parts))
            assert got.dtype == wanted.dtype, (name, axes)
            assert got.shape == kept, (name, axes)
            if dtype in ("i8", "u8", "i4") and name == "sum":
                np.testing.assert_array_equal(got, wanted)
            np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-6, err_msg=f"{name} {axes}")
        if len(axes) == 1:
            for name, function in SEARCHES.items():
                fold = BlockSearch(shape, axes, array.dtype, name == "argmax")
                np.testing.assert_array_equal(folded(fold, parts), function(array, axis=axis))


def counted(names: set[str]):
    """Have the loops leave their names in a set, and return what puts them back."""
    before = {name: getattr(dense_loops, name) for name in LOOPS}
    for name, loop in before.items():

        def call(*args, loop=loop, name=name):
            names.add(name)
            return loop(*args)

        setattr(dense_loops, name, call)
    return lambda: [setattr(dense_loops, name, loop) for name, loop in before.items()]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    accumulation._SHORT = 2
    assert kernel_switch.choice() == "fast"
    taken: set[str] = set()
    counted(taken)
    for dtype in sys.argv[1:]:
        for seed in range(6):
            check(dtype, seed, 5000)
    print(*sorted(taken))
