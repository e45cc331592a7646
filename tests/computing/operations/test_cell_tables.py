"""Tables of cells: every element comes to its cell, over many tables and few, and kernels say what runs say."""

import warnings

import numpy as np
import pytest
from computed import equal

import tensorlake_spark as tl
from tensorlake_spark.computing.operations.block_reductions import KERNELS
from tensorlake_spark.computing.operations.cell_tables import can_be_tabled, in_tables, table_sums

WIDE = 1 << 17  # cells of a table


@pytest.mark.parametrize("cells", [1, 7, WIDE, WIDE + 1, 300 * WIDE])
def test_elements_come_to_their_cells_in_ascending_order(cells):
    rng = np.random.default_rng(cells)
    parts = []
    for count in (400, 1, 3000):
        some = rng.integers(0, cells, count)
        some[0] = cells - 1
        parts.append((some, rng.integers(0, 99, count), rng.random(count)))
    given, ints, floats = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    seen, rows = [], []
    for found, counts, of, *others in in_tables(lambda *table: table, parts, cells):
        assert np.array_equal(np.bincount(of), counts)
        seen.append(found)
        rows += zip(found[of].tolist(), *(array.tolist() for array in others), strict=True)
    assert np.array_equal(np.concatenate(seen), np.unique(given))
    assert sorted(rows) == sorted(zip(given.tolist(), ints.tolist(), floats.tolist(), strict=True))


def test_answers_that_would_be_almost_empty_are_not_tabled():
    assert can_be_tabled(1 << 20, 1 << 25)
    assert not can_be_tabled(1, 33)
    assert not can_be_tabled(1 << 40, 1 << 34)


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_a_kernel_finds_in_any_order_what_it_finds_in_runs(name, dtype):
    values = np.array([3, 1, 2, 4, 0, 9, 7, 7]).astype(dtype)
    of = np.array([0, 0, 1, 1, 1, 2, 3, 3])
    starts, counts = np.array([0, 2, 5, 6]), np.array([2, 3, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = KERNELS[name](np.dtype(dtype), 9)
        missing = np.array([1, 0, 4, 2])
        by = np.random.default_rng(3).permutation(8)
        runs = kernel.with_zeros(kernel.groups(values, starts), missing)
        found = kernel.with_zeros(kernel.scatter(of[by], values[by], counts), missing)
        one, other = kernel.finish(found, 9), kernel.finish(runs, 9)
    assert one.dtype == other.dtype
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_sums_take_dates_and_wrap_as_numpy_does():
    kernel = KERNELS["sum"](np.dtype("m8[s]"), 2)
    seconds = np.array([5, 7, 1], "m8[s]")
    (found,) = kernel.scatter(np.array([1, 0, 1]), seconds, np.array([1, 2]))
    assert found.tolist() == [seconds[1].item(), (seconds[0] + seconds[2]).item()]
    (found,) = KERNELS["sum"](np.dtype("i8"), 2).scatter(
        np.zeros(2, np.intp), np.array([2**62, 2**62]), np.array([2])
    )
    assert found.tolist() == [-(2**63)]
    assert table_sums(np.array([1, 1]), np.array([1 + 2j, 3j]), 2).tolist() == [0, 1 + 5j]


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2)])
def test_an_answer_of_many_tables_is_numpys(lake, axis):
    rng = np.random.default_rng(5)
    shape = (5, 700, 800)
    x = np.zeros(shape)
    at = tuple(rng.integers(0, n, 60_000) for n in shape)
    x[at] = rng.normal(size=60_000).round(1)
    ref = lake.write("x", tl.SparseTensor.from_dense(x), layout="bsgs", block_shape=(2, 256, 256))
    for name in ("sum", "var", "min", "count_nonzero", "prod"):
        equal(getattr(ref, name)(axis=axis), getattr(np, name)(x, axis=axis))
    if isinstance(axis, int):
        for name in ("argmax", "argmin"):
            equal(getattr(ref, name)(axis=axis), getattr(np, name)(x, axis=axis))
