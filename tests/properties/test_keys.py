"""A key picks and puts what NumPy's does: in memory and stored, of every layout, also inside of a transaction."""

import tracemalloc

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

    @times(1)
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
    if not shape:  # of one element, NumPy takes no array with axes
        return array_of(seed, ())
    rng = np.random.default_rng(seed)
    stretched = tuple(1 if rng.random() < 0.2 else n for n in shape)
    kinds = [shape, shape, stretched, stretched[rng.integers(0, len(shape) + 1) :], (1, *shape)]
    return array_of(seed, kinds[rng.integers(0, 5)])


@pytest.mark.parametrize("layout", LAYOUTS_OF_ANY_RANK)
def test_assignment(lake, layout):
    x = array_of(1, SHAPE)
    lake.write(layout, x, **options_of(layout))

    @times(0.5)
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


def few_true(shape, *places):
    mask = np.zeros(shape, bool)
    mask[tuple(np.transpose(places))] = True
    return mask


SLABS = (40, 6, 8)
FEW = {
    "a mask": few_true(SLABS, (9, 0, 7), (31, 5, 0)),
    "a mask of two axes": np.s_[few_true(SLABS[:2], (9, 0), (31, 5)), ::2],
    "arrays that pair": np.s_[[31, 9, 31], [5, 0, 1]],
    "arrays around a slice": np.s_[[[9], [31]], :, [0, 3]],
    "an array after a slice": np.s_[8:10, few_true(SLABS[1:], (0, 7), (5, 0))],
}


@pytest.mark.local_disk
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "csf"])
@pytest.mark.parametrize("what", FEW)
def test_files_without_a_picked_element_are_neither_read_nor_written(tmp_path, layout, what):
    key, x = FEW[what], array_of(4, SLABS)
    lake = tl.open(tmp_path)
    block = {"block_shape": (2, 6, 8)} if LAYOUTS[layout].has_blocks else {}
    for i in range(0, 40, 4):
        more = {"mode": "append"} if i else {"layout": layout, **block}
        lake.write("x", x[i : i + 4], **more)
    ref, wanted = lake["x"], {2} if what == "an array after a slice" else {2, 7}
    assert ref.explain(key).n_files == len(wanted)
    paths = {
        f.path: i
        for f in ref.explain().files
        for i in range(10)
        if f in ref.explain(np.s_[4 * i]).files
    }
    assert {paths[f.path] for f in ref.explain(key).files} == wanted
    ref[key] = 7
    x[key] = 7
    assert {i for path, i in paths.items() if path not in set(ref._snapshot.files.path)} == wanted
    for path in set(ref._snapshot.files.path) - {f.path for f in ref.explain(key).files}:
        lake._storage.delete(path)
    assert same(ref[key], x[key])
    with pytest.raises(tl.MissingDataError):
        ref[...]


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_rows_without_a_picked_element_are_not_decoded(lake, layout, monkeypatch):
    """They may lie between others, in the box around all that is picked."""
    x = np.arange(1, 8 * 8 * 8 + 1).reshape(8, 8, 8)
    ref = lake.write("rows", x, layout=layout, block_shape=(2, 2, 8), mode="overwrite")
    kind = type(LAYOUTS[layout])
    decode, decoded = kind.decode, []

    def spy(self, *args):
        decoded.append(decode(self, *args))
        return decoded[-1]

    monkeypatch.setattr(kind, "decode", spy)
    for key, rows in [
        (few_true((8, 8, 8), (0, 0, 0), (7, 7, 7)), 2),
        (np.s_[[0, 7, 3], [0, 7, 0], 2:5], 3),
        (np.s_[[0, 7], :, [1, 1]], 8),
        (np.s_[few_true((8, 8), (0, 0), (1, 1), (6, 0))], 2),
    ]:
        decoded.clear()
        assert same(ref[key], x[key])
        assert sum(done.rows for done in decoded) == rows


def test_a_mask_costs_memory_for_what_it_picks(lake):
    x = np.ones((64, 256, 256), "u1")
    ref = lake.write("large", x, mode="overwrite")
    mask = x[:] == 0
    mask[::16, 5, 7] = True
    ref[mask]
    tracemalloc.start()
    assert ref[mask].tolist() == [1] * 4
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes, "not so much as the tensor"
