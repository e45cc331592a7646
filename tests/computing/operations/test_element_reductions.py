"""Reductions of sparse tensors: cells of the answer, and zeros that are not stored."""

import numpy as np
import pytest
from computed import array_of, dense, equal
from loop_taking import take_loops

import tensorlake_spark as tl
from tensorlake_spark.computing.operations import element_reductions
from tensorlake_spark.computing.operations.element_reductions import (
    elements_in,
    kept_places,
    run_starts,
)
from tensorlake_spark.ops import element_loops
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.tensor.sparse import SparseTensor


def test_a_huge_answer_takes_the_memory_of_its_elements(lake):
    n = 10**6
    st = SparseTensor([[5, 5, n - 1], [0, 9, n - 1], [3, 3, 0]], [2.0, 4.0, 8.0], (n, n, n))
    ref = lake.write("x", st, layout="coo")
    found = ref.sum(axis=1)
    assert isinstance(found, SparseTensor)
    assert (found.shape, found.nnz) == ((n, n), 2)
    assert ref.mean() == 14 / n**3
    assert ref.argmax() == ((n - 1) * n + n - 1) * n


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16", "m8[s]"])
def test_zeros_go_by_the_compiled_loop_as_by_numpy(dtype, monkeypatch):
    monkeypatch.setattr(element_reductions, "PART", 7)
    cells = np.arange(0, 90, 3)
    values = (np.arange(30) % 4).astype(dtype)
    taken = take_loops(monkeypatch, element_loops, ("keep",))
    found = elements_in(cells, values, (90,))
    kept = np.flatnonzero(np.arange(30) % 4)
    assert found.places.tolist() == cells[kept].tolist()
    assert found.values.tolist() == values[kept].tolist()
    assert found.dtype == dtype
    assert taken == ({"keep"} if dtype != "c16" else set())


def test_answers_are_canonical(lake):
    ref = lake.write("x", SparseTensor([[0, 0, 1], [0, 1, 2]], [5, -5, 0], (3, 4)), layout="coo")
    assert ref.sum(axis=1).nnz == 0
    assert ref.count_nonzero() == 2
    assert ref.nnz == 3


def test_zeros_are_left_out_of_many_cells():
    rng = np.random.default_rng(5)
    values = rng.integers(
        0, 3, 200_000
    )  # more than are taken at a time, and more than the C library keeps
    cells = np.flatnonzero(rng.random(600_000) < 0.4)[: len(values)]
    found = elements_in(cells, values, (600, 1000))
    assert found.nnz == np.count_nonzero(values)
    np.testing.assert_array_equal(found.places, cells[values != 0])
    np.testing.assert_array_equal(found.values, values[values != 0])


def test_elements_that_appends_repeat_are_one(lake):
    first = tl.SparseTensor([[0, 2], [1, 3]], [3.0, -4.0], (4, 5))
    lake.write("x", first, layout="coo", duplicates="sum")
    again = tl.SparseTensor([[0, 2], [1, 3]], [-3.0, -4.0], (4, 5))
    ref = lake.write("x", again, mode="append", axis=None)
    x = dense(ref[...])
    assert ref.max() == 0
    for name in ("var", "min", "sum", "count_nonzero", "argmin"):
        equal(np.asarray(getattr(ref, name)()), np.asarray(getattr(np, name)(x)))
    assert ref.norm() == 8
    equal(ref.view[1:].min(axis=0), x[1:].min(axis=0))
    assert ref.view[...].nnz is None


def test_axes_that_stay_may_be_any(lake):
    array = array_of("i8", (4, 5, 6, 3), 1)
    coords = np.stack(array.nonzero())
    some = Elements._trusted(coords, array[tuple(coords)], array.shape)
    for axes in ((), (0,), (3,), (1,), (0, 2), (1, 3), (2, 3), (0, 1, 2, 3)):
        kept = [k for k in range(4) if k not in axes]
        wanted = np.ravel_multi_index(coords[kept], [array.shape[k] for k in kept]) if kept else 0
        assert np.array_equal(kept_places(some, axes), np.broadcast_to(wanted, some.nnz))
    assert run_starts(np.array([], np.int64)).tolist() == []


def test_a_deviation_counts_all_zeros_where_nothing_is_stored(lake):
    array = np.zeros((4, 5))
    array[0, [1, 3]], array[2, 2] = [3, 2], 1
    ref = lake.write("x", SparseTensor.from_dense(array), layout="coo")
    for ddof in (0, 1, 2):
        found = ref.var(axis=1, ddof=ddof)
        equal(found, array.var(axis=1, ddof=ddof))
        assert found.nnz == 2
