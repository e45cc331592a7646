"""Sparse reads by the loops, which Python runs here without a compiler."""

import numpy as np
import pytest
from sparse_kernel_law import SHAPES, by_loops, check

from tensorlake_spark.indexing import select
from tensorlake_spark.indexing.coords import unravel
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.kernels import sparse, sparse_loops
from tensorlake_spark.layouts.sparse.element_keys import sort_elements
from tensorlake_spark.layouts.testing.laws import SparseLaws
from tensorlake_spark.rows.row import data_batch
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")


class TestBsgsByLoops(SparseLaws):
    layout = layout_of("bsgs")

    @pytest.fixture(autouse=True)
    def loops(self):
        with by_loops():
            yield


@pytest.mark.parametrize("shape", SHAPES)
def test_loops_give_the_elements_and_errors_that_numpy_gives(shape):
    rng = np.random.default_rng(1)
    assert sum(check(shape, rng) for _ in range(5)) > 0


@pytest.mark.parametrize(
    "shape", [(3, 4), (1, 1), (7, 1, 5), (2, 3, 1140, 1717), (2**9, 2**20, 2**31)]
)
def test_keys_become_coordinates_in_any_order(shape):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, np.prod(shape, dtype=object), 200)
    for some in (keys, np.sort(keys)):
        want = np.empty((len(shape), len(some)), np.int64)
        unravel(some, shape, want)
        found = np.full((len(shape), len(some) + 5), -1)
        sparse.unravel(some, shape, found, 3)
        assert (found[:, 3:-2] == want).all()
        assert (found[:, :3] == -1).all()
        assert (found[:, -2:] == -1).all()


@pytest.mark.parametrize("count", [1, *range(sparse_loops.SLICED - 1, sparse_loops.SLICED + 3)])
def test_planes_of_few_and_of_many_keys_become_coordinates(count):
    shape = (3, 2, 5, 11)
    planes = np.arange(6)[:, None] * 55
    keys = np.concatenate((planes + np.linspace(0, 54, count, dtype=int)).tolist())
    for some in (keys, keys[:-1], keys[::-1].copy(), np.concatenate([keys[-3:], keys])):
        found = np.empty((4, len(some)), np.int64)
        sparse.unravel(some, shape, found, 0)
        assert (found == np.unravel_index(some, shape)).all()


@pytest.mark.parametrize("each", [1, 10**9])
def test_elements_in_a_range_are_searched_where_they_lie_side_by_side(each, monkeypatch):
    """An hour of every day: four places in each block, whose offsets have the days above the hours."""
    rng = np.random.default_rng(3)
    coords = np.unique(rng.integers(0, [[8], [24], [16]], (3, 4000)), axis=1)
    x = SparseTensor(coords, np.arange(coords.shape[1], dtype=float), (8, 24, 16))
    layout = layout_of("bsgs")
    spec = TensorSpec("x", x.shape, x.dtype, "bsgs", (4, 24, 8))
    rows = layout.encode(x, (0, 0, 0), spec)
    batch = data_batch(spec, range(len(rows)), rows)
    searches, real = [], sparse_loops._search
    monkeypatch.setattr(sparse_loops, "_search", lambda *args: searches.append(args) or real(*args))
    for key in (
        np.s_[:, 8],
        np.s_[3:6],
        np.s_[1:7, 20:],
        np.s_[:, :, 3:9],
        np.s_[:, 5, 2],
        np.s_[::2, 3],
    ):
        selection = select(key, x.shape)
        result = layout.new_result(spec, selection, False)
        with by_loops(each):
            layout.decode(batch, spec, selection, result)
        found = layout.finish(spec, selection, result)
        assert found.equals(x[key])
    assert bool(searches) == (each == 1)


@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f8", "?", "c8", "M8[s]"])
@pytest.mark.parametrize("long", [1, 10**6])
def test_keys_are_sorted_with_their_values(dtype, long):
    rng = np.random.default_rng(1)
    keys = np.concatenate([np.sort(rng.integers(7, 400, 50)) for _ in range(4)])
    values = rng.integers(0, 255, 200).astype("u1").astype(dtype)
    by = np.argsort(keys, kind="stable")
    want = keys[by], values[by]
    found = sparse.sort(keys.copy(), values, long)
    assert (found[0] == want[0]).all()
    assert found[1].dtype == values.dtype
    assert found[1].tobytes() == want[1].tobytes()


def test_keys_in_order_are_left_and_keys_that_leave_no_room_too():
    keys, values = np.array([1, 1, 5]), np.arange(3.0)
    found = sparse.sort(keys, values, 1)
    assert found[0] is keys
    assert found[1] is values
    wide = np.array([2**62, 0, 1])
    assert sparse.sort(wide, values, 1) is None
    assert wide.tolist() == [2**62, 0, 1]
    keys, values, _ = sort_elements(wide, values)
    assert keys.tolist() == [0, 1, 2**62]
    assert values.tolist() == [1, 2, 0]


@pytest.mark.parametrize("by", [1, 2, 3, 1717, 2**31 - 1, 2**51 + 1])
def test_keys_are_divided_as_numpy_does(by):
    rng = np.random.default_rng(by % 1000)
    keys = np.concatenate(
        [rng.integers(0, 2**52, 500), np.arange(5), by * rng.integers(0, 2**52 // by, 50)]
    )
    keys = np.concatenate([keys, np.minimum(keys + by - 1, 2**52 - 1)])
    keys.flags.writeable = False
    quotients, rests = np.empty_like(keys), np.empty_like(keys)
    sparse.divide(keys, by, quotients, rests)
    assert np.array_equal((quotients, rests), np.divmod(keys, by))
    alone = np.empty_like(keys)
    sparse.divide(keys, by, quotients[:0], alone)
    assert np.array_equal(alone, rests)
