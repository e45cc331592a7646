"""A key picks and puts what NumPy's does: in memory and stored, of every layout, also inside of a transaction."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.layouts import LAYOUTS
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.layouts.testing.strategies import mixed_keys

SHAPE = (7, 4, 5, 6)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return tl.open(tmp_path_factory.mktemp("keys"))


def array_of(seed, shape, dtype="i4"):
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 100, shape) * (rng.random(shape) < 0.4)).astype(dtype)


def options_of(layout):
    options = {"layout": layout, "mode": "overwrite"}
    return {**options, "block_shape": (2, 3, 5, 4)} if LAYOUTS[layout].has_blocks else options


def answer(pick):
    """Return what is picked, or the type of NumPy's error; ours are those too."""
    try:
        return pick()
    except IndexError:
        return IndexError


def same(got, want):
    if isinstance(want, type) or isinstance(got, type):
        return got is want
    return bits(got.todense() if isinstance(got, tl.SparseTensor) else got) == bits(want)


LAYOUTS_OF_ANY_RANK = [name for name in LAYOUTS if name != "window"]


@pytest.mark.parametrize("layout", LAYOUTS_OF_ANY_RANK)
def test_reading(lake, layout):
    x = array_of(0, SHAPE)
    ref = lake.write(layout, x, **options_of(layout))

    @times(0.5)
    @given(mixed_keys(SHAPE))
    def picks(key):
        want = answer(lambda: x[key])
        assert same(answer(lambda: ref[key]), want)
        if not isinstance(want, type):
            out = np.full(want.shape, 99, x.dtype)
            assert bits(ref.read(key, out=out)) == bits(want)

    picks()


def test_reading_samples_that_slide(lake):
    x = np.lib.stride_tricks.sliding_window_view(np.arange(200) % 7, 9).astype("i4")
    ref = lake.write("window", x, layout="window", mode="overwrite")

    @given(mixed_keys(x.shape))
    def picks(key):
        assert same(answer(lambda: ref[key]), answer(lambda: x[key]))

    picks()


@times(2)
@given(st.lists(st.integers(0, 5), max_size=4).map(tuple), st.data())
def test_reading_in_memory(shape, data):
    x = array_of(data.draw(st.integers(0, 99)), shape)
    key = data.draw(mixed_keys(shape))
    want = answer(lambda: x[key])
    got = answer(lambda: tl.SparseTensor.from_dense(x)[key])
    assert same(got, want)
    if isinstance(got, tl.SparseTensor) and got.ndim:
        assert bits(got.coords) == bits(np.array(np.nonzero(want), np.int64)), "in C order"


def put(x, key, seed):
    """Return values for a key, of its shape or of one that NumPy stretches to it."""
    shape = x[key].shape
    rng = np.random.default_rng(seed)
    stretched = tuple(1 if rng.random() < 0.2 else n for n in shape)
    kinds = [shape, shape, stretched, stretched[rng.integers(0, len(shape) + 1) :], (1, *shape)]
    return array_of(seed, kinds[rng.integers(0, 5)])


@pytest.mark.parametrize("layout", LAYOUTS_OF_ANY_RANK)
def test_assignment(lake, layout):
    x = array_of(1, SHAPE)
    lake.write(layout, x, **options_of(layout))

    @times(0.25)
    @given(mixed_keys(SHAPE), st.integers(0, 2**31))
    def puts(key, seed):
        if isinstance(answer(lambda: x[key]), type):
            with pytest.raises(tl.InvalidKeyError):
                lake[layout][key] = 0
            return
        values = put(x, key, seed)
        x[key] = values
        if seed % 2:
            lake[layout][key] = values
        else:
            with lake.transaction() as changes:
                changes[layout][key] = values
                assert same(changes[layout][...], x)
        assert same(lake[layout][...], x)

    puts()


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_of_an_element_that_is_named_twice_the_last_value_stays(lake, layout):
    x = array_of(2, (9, 8))
    ref = lake.write(layout, x, **options_of(layout) | {"block_shape": None})
    for key, values in [
        (([3, 5, 3], [1, 1, 1]), [7, 8, 0]),
        (np.s_[[3, 3], [[1], [1]]], [[1, 2], [3, 4]]),
    ]:
        ref[key] = values
        x[key] = values
        assert same(ref[...], x)


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_values_that_do_not_fit_change_nothing(lake, layout):
    x = array_of(3, (5, 6, 4))
    ref = lake.write(layout, x, **options_of(layout) | {"block_shape": None})
    version = ref.version
    for key in [np.s_[[0, 1], :, [2, 3]], x > 50, np.s_[0, [[1], [2]], [0, 1]]]:
        for error, values in (
            (ValueError, np.ones(5, "i4")),
            (tl.InvalidTensorError, np.ones(3, "i4")),
        ):
            with pytest.raises(error, match="cannot be assigned to a selection of shape"):
                ref[key] = values
    assert lake.version == version
