"""SparseBuilder: whatever is done to it, NumPy's array says what it holds."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import tensorlake_spark as tl
from tensorlake_spark.errors import (
    BuilderClosedError,
    InvalidKeyError,
    InvalidTensorError,
    UnsupportedDtypeError,
)

SHAPES = st.sampled_from([(4, 3, 5), (6, 7), (9,), (2, 0, 3), (2, 1, 2, 3), ()])
SEEDS = st.integers(0, 999)


def slices(n):
    bound = st.none() | st.integers(-n - 1, n + 1)
    return st.builds(slice, bound, bound, st.sampled_from([None, -3, -2, -1, 1, 2, 3]))


@st.composite
def basic_keys(draw, shape):
    """Keys of which NumPy makes views."""
    parts = [draw(slices(n) | st.integers(-n, n - 1)) if n else slice(None) for n in shape]
    parts = parts[: draw(st.integers(0, len(parts)))]
    if draw(st.booleans()):
        parts.append(...)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts)


@st.composite
def keys(draw, shape):
    """Also with an index array, which may name an index twice, or a mask."""
    key = list(draw(basic_keys(shape)))
    axes = [k for k, part in enumerate(key) if part is not None and part is not ...]
    if not axes or not draw(st.booleans()):
        return tuple(key)
    k = draw(st.sampled_from(axes))
    n = shape[axes.index(k)]
    rng = np.random.default_rng(draw(SEEDS))
    kinds = [rng.integers(-n, max(n, 1), draw(st.integers(0, 6)) if n else 0), rng.random(n) < 0.5]
    key[k] = draw(st.sampled_from(kinds))
    return tuple(key)


@st.composite
def values(draw, shape):
    """Values that NumPy assigns to a part of this shape: as an array, and as what is given."""
    rng = np.random.default_rng(draw(SEEDS))
    ones = [draw(st.integers(0, 3)) == 0 for _ in shape]
    lengths = tuple(1 if one else n for one, n in zip(ones, shape))
    lengths = lengths[draw(st.integers(0, len(lengths))) :]
    lengths = (1,) * (bool(shape) and draw(st.sampled_from([0, 0, 0, 1]))) + lengths
    dense = rng.integers(-3, 4, lengths) * (
        rng.random(lengths) < draw(st.sampled_from([0, 0.3, 1]))
    )
    dense = dense.astype(draw(st.sampled_from(["f8", "i4", "f4"])))
    kind = draw(st.sampled_from(["scalar", "array", "list", "sparse", "scipy"]))
    if kind == "scalar" or not dense.ndim:
        scalar = draw(st.sampled_from([0, 0.0, 2, -1.5, np.float32(3), True]))
        return np.asarray(scalar), scalar
    if kind == "list" and dense.size:
        return dense, dense.tolist()
    if kind == "sparse":
        return dense, tl.SparseTensor.from_dense(dense)
    if kind == "scipy" and dense.ndim == 2 and 0 not in dense.shape:
        return dense, scipy.sparse.csr_array(dense)
    return dense, dense


class BuilderMachine(RuleBasedStateMachine):
    """Views of views are pairs of ours and NumPy's; the first is the whole."""

    views = Bundle("views")

    @initialize(target=views, shape=SHAPES, seed=SEEDS, dtype=st.sampled_from(["f8", "f4", "i8"]))
    def start(self, shape, seed, dtype):
        start = np.random.default_rng(seed).integers(0, 3, shape) % 2
        self.array = np.array(start, dtype)
        if seed % 2:
            self.builder = tl.SparseTensor.from_dense(self.array).builder()
        else:
            self.array[...] = 0
            self.builder = tl.SparseBuilder(shape, dtype)
        self.read = []
        return self.builder, self.array

    @rule(view=views, data=st.data())
    def assign(self, view, data):
        ours, want = view
        key = data.draw(keys(want.shape))
        dense, given = data.draw(values(np.shape(want[key])))
        want[key] = dense
        data.draw(st.sampled_from([ours, ours.view]))[key] = given

    @rule(view=views, data=st.data())
    def assign_orthogonally(self, view, data):
        ours, want = view
        if not want.size or not want.ndim:
            return
        rng = np.random.default_rng(data.draw(SEEDS))
        key = tuple(rng.integers(-n, n, data.draw(st.integers(1, 4))) for n in want.shape)
        dense, given = data.draw(values(tuple(map(len, key))))
        want[np.ix_(*key)] = dense
        ours.oindex[key] = given
        assert np.array_equal(ours.oindex[key].todense(), want[np.ix_(*key)])

    @rule(view=views, data=st.data(), masked=st.booleans())
    def assign_points(self, view, data, masked):
        ours, want = view
        if not want.size or not want.ndim:
            return
        rng = np.random.default_rng(data.draw(SEEDS))
        key = tuple(rng.integers(-n, n, (2, 3)) for n in want.shape)
        key = rng.random(want.shape) < 0.5 if masked else key
        dense, given = data.draw(values(want[key].shape))
        want[np.nonzero(key) if masked else key] = dense  # of masks NumPy takes fewer shapes
        ours.vindex[key] = given
        assert np.array_equal(ours.vindex[key].todense(), want[key])

    @rule(target=views, view=views, data=st.data())
    def look(self, view, data):
        ours, want = view
        key = data.draw(basic_keys(want.shape))
        part = want[key]
        return ours.view[key], part if isinstance(part, np.ndarray) else want[(*key, ...)]

    @rule(target=views, view=views, data=st.data())
    def look_along(self, view, data):
        ours, want = view
        if not want.ndim or not want.size:
            return view
        axes = tuple(data.draw(st.permutations(range(want.ndim))))
        axes = axes[: data.draw(st.integers(1, want.ndim))]
        others = tuple(k for k in range(want.ndim) if k not in axes)
        turned = want.transpose(others + axes)
        along = ours.along(axes if len(axes) > 1 else axes[0])
        assert len(along) == len([*along]) == np.prod(along.shape)
        number = data.draw(st.integers(-len(along), len(along) - 1))
        at = np.unravel_index(number % len(along), along.shape)
        whole = data.draw(st.sampled_from([None, number, tuple(map(int, at))]))
        if whole is None:
            return along[...], turned
        return along[whole], turned[(*at, ...)]

    @rule(view=views, factor=st.sampled_from([2, 0, -1, np.int8(3)]))
    def scale(self, view, factor):
        ours, want = view
        np.multiply(want, factor, out=want)
        same = ours
        ours *= factor
        assert ours is same

    @rule(view=views, data=st.data())
    def add(self, view, data):
        ours, want = view
        rng = np.random.default_rng(data.draw(SEEDS))
        shape = want.shape[data.draw(st.integers(0, want.ndim)) :]
        other = (rng.integers(-2, 3, shape) * (rng.random(shape) < 0.3)).astype("i4")
        other = np.asarray(other)
        np.add(want, other, out=want)
        np.add(ours, tl.SparseTensor.from_dense(other), out=ours)

    @rule(view=views, data=st.data())
    def get(self, view, data):
        ours, want = view
        key = data.draw(keys(want.shape))
        got, expected = ours[key], want[key]
        if isinstance(expected, np.ndarray):
            assert got.shape == expected.shape
            assert np.array_equal(got.todense(), expected)
            assert got.values.all(), "zeros are not kept"
        else:
            assert type(got) is type(expected)
            assert got == expected
        if isinstance(got, tl.SparseTensor):
            self.read = [*self.read[-3:], (got, expected.copy())]

    @rule(view=views)
    def count(self, view):
        ours, want = view
        assert ours.nnz == np.count_nonzero(want)

    @invariant()
    def what_was_read_stays(self):
        for got, expected in getattr(self, "read", ()):
            assert np.array_equal(got.todense(), expected)

    def teardown(self):
        built = self.builder.build()
        assert np.array_equal(built.todense(), self.array)
        assert built.values.all()
        assert (np.diff(built.places) > 0).all()
        with pytest.raises(BuilderClosedError):
            self.builder[...]


def test_a_builder_is_numpys_array():
    run_state_machine_as_test(
        BuilderMachine,
        settings=settings(stateful_step_count=12, max_examples=settings().max_examples),
    )


def test_what_is_put_replaces_and_zeros_remove():
    b = tl.SparseTensor.from_dense(np.array([[5, 0, 7], [0, 3, 0]])).builder()
    b[0, 0] = 6
    b[0, 2] = 0
    b[1, 0] = 0
    b[-1, np.int8(-1)] = 9
    assert b.nnz == 3
    assert b.build().todense().tolist() == [[6, 0, 0], [0, 3, 9]]


def test_a_single_element_is_read_before_anything_is_sorted():
    b = tl.SparseBuilder((3, 4), "i2")
    b[1, 2] = 4
    b[1, 2] += 1
    b[2, 3] = 7
    b[2, 3] = 0
    found = [b[1, 2], b[2, 3], b[0, 0]]
    assert found == [5, 0, 0]
    assert {type(x) for x in found} == {np.int16}


def reallocations(builder, puts):
    """How many times the capacity changes while elements are put one by one."""
    count, last = 0, builder.capacity
    for place in puts:
        builder[place] = 1
        count, last = count + (builder.capacity != last), builder.capacity
    return count


def test_buffers_double_so_that_puts_cost_the_same_however_many_there_are():
    some = np.random.default_rng(0).permutation(20_000).tolist()
    assert reallocations(tl.SparseBuilder((20_000,)), some) <= 2 * np.log2(20_000)
    reserved = tl.SparseBuilder((20_000,))
    reserved.reserve(20_000)
    assert reallocations(reserved, some) == 0
    assert reserved.nnz == 20_000


def test_an_element_that_is_put_over_and_over_takes_no_more_memory():
    b = tl.SparseBuilder((9,))
    for n in range(5_000):
        b[n % 9] = n
    assert b.capacity < 200
    assert b[...].values.tolist() == [4995, 4996, 4997, 4998, 4999, 4991, 4992, 4993, 4994]


def test_the_elements_of_a_tensor_are_shared_until_they_change():
    x = tl.SparseTensor.from_dense(np.eye(4))
    b = x.builder()
    assert np.shares_memory(b[...].values, x.values)
    b[0, 0] = 5
    assert x[0, 0] == 1
    read = b[...]
    built = b.build()
    assert np.shares_memory(built.values, read.values)
    assert np.shares_memory(built.coords, read.coords)
    assert np.shares_memory(x.builder().build().coords, x.coords)


def test_explicit_zeros_of_a_tensor_are_left_out():
    b = tl.SparseTensor([[1, 2]], [0.0, 3.0], (4,)).builder()
    assert b.nnz == 1
    assert b.build().coords.tolist() == [[2]]


def test_a_date_is_zero_in_1970_and_one_that_is_none_is_not():
    dates = np.array(["2020-01-01", "1970-01-01", "NaT"], "M8[D]")
    b = tl.SparseBuilder((3,), "M8[D]")
    b[...] = dates
    assert b.nnz == 2
    b[0] = np.datetime64(0, "D")
    assert b.build().coords.tolist() == [[2]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["i1", "u8", "f4", "c8", "?", "M8[s]", "m8[ms]"])
@pytest.mark.parametrize(
    "value",
    [300, -1, 2.5, float("nan"), 1e300, 1j, True, "7", "no", None, b"8", 2**70, [1],
     np.float64(2.5), np.int64(300), np.complex128(1j), np.array(3), np.array([3]), np.str_("4"), print],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("key", [(1, 2), 1, ...], ids=str)
def test_values_are_converted_or_refused_as_by_numpys_assignment(dtype, value, key):
    array, b = np.zeros((2, 3), dtype), tl.SparseBuilder((2, 3), dtype)
    try:
        array[key] = value
    except Exception as error:
        # An array of one element for one element: NumPy is about to refuse it.
        kinds = (type(error), ValueError) if np.ndim(value) else type(error)
        with pytest.raises(kinds):
            b[key] = value
        assert b.nnz == 0, "nothing has changed"
    else:
        if np.ndim(value) and key == (1, 2):
            return
        b[key] = value
        np.testing.assert_array_equal(b.todense(), array)


@pytest.mark.parametrize(
    "values",
    [np.ones(2), np.ones((3, 2)), np.ones((2, 1, 3)), [], tl.SparseTensor.from_dense(np.ones(2))],
)
def test_values_that_do_not_stretch(values):
    array, b = np.zeros((2, 3)), tl.SparseBuilder((2, 3))
    with pytest.raises(ValueError, match="broadcast"):
        array[...] = np.asarray(values)
    with pytest.raises(InvalidTensorError, match=r"cannot be assigned to a part of shape \(2, 3\)"):
        b[...] = values


@pytest.mark.parametrize(
    "key",
    [(2, 0), (0, -4), 5, (0, 0, 0), "x", 1.5, ([5], 0), (np.int64(9), 0), (slice("a"), 0)],
    ids=str,
)
def test_keys_that_do_not_fit(key):
    b = tl.SparseBuilder((2, 3))
    for use in (lambda: b[key], lambda: b.__setitem__(key, 1), lambda: b.view[key]):
        with pytest.raises(InvalidKeyError):
            use()
    assert b.nnz == 0


def test_shapes_and_dtypes_that_cannot_be():
    with pytest.raises(InvalidTensorError, match="axis 1 has length -1"):
        tl.SparseBuilder((3, -1))
    with pytest.raises(InvalidTensorError, match="fewer than 2"):
        tl.SparseBuilder((2**32, 2**32))
    with pytest.raises(UnsupportedDtypeError, match="cannot be stored"):
        tl.SparseBuilder((3,), object)
    assert tl.SparseBuilder((3,), ">i4").dtype == np.dtype("i4")


def test_too_many_elements_for_a_sparse_tensor():
    b = tl.SparseBuilder((2**20, 2**20))
    b[5] = 1
    for value in (3, np.ones(2**20), tl.SparseTensor.from_dense(np.ones(2**20))):
        with pytest.raises(tl.DenseResultError, match="elements would be stored"):
            b[...] = value
    assert b.nnz == 2**20
    b[...] = 0
    assert b.nnz == 0


def test_a_builder_that_was_built_ends_with_its_views():
    b = tl.SparseBuilder((2, 3))
    view, along = b.view[0], b.along(0)
    b.build()
    uses = [
        b.build, lambda: b[...], lambda: b[0, 0], lambda: b.__setitem__((0, 0), 1), lambda: b.__setitem__(0, 1),
        lambda: b.nnz, lambda: b.capacity, lambda: b.reserve(5), b.copy, b.todense, lambda: pickle.dumps(b),
        lambda: view[0], lambda: view.__setitem__(0, 1), lambda: view.nnz, lambda: view.view[0][...],
        lambda: np.multiply(b, 2, out=b), lambda: along[0][...], lambda: along.__setitem__(0, 1),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(BuilderClosedError, match=r"tensor\.builder\(\)"):
            use()
    assert repr(b) == "SparseBuilder(shape=(2, 3), dtype=float64, built)"


def test_copies_have_elements_of_their_own():
    b = tl.SparseTensor.from_dense(np.eye(3)).builder()
    b[0, 1] = 5
    for made in (b.copy(), copy.copy(b), copy.deepcopy(b), pickle.loads(pickle.dumps(b))):
        assert type(made) is tl.SparseBuilder
        made[2, 2] = 7
        assert made.build().todense()[[0, 2], [1, 2]].tolist() == [5, 7]
    assert b[2, 2] == 1


def test_a_view_is_pickled_with_its_builder():
    b = tl.SparseTensor.from_dense(np.eye(3)).builder()
    again, view = pickle.loads(pickle.dumps((b, b.view[1:, 1])))
    view[...] = 4
    assert again[...].todense().tolist() == [[1, 0, 0], [0, 4, 0], [0, 4, 1]]
    assert b[2, 1] == 0


def test_a_number_that_cannot_be_reserved_is_told():
    b = tl.SparseBuilder((4, 5))
    with pytest.raises(ValueError, match=r"count=-1 .* give 0 or more"):
        b.reserve(-1)
    for count in (1.5, "a", None):
        with pytest.raises(TypeError, match=r"count=.* is not an integer"):
            b.reserve(count)
    with pytest.raises(ValueError, match=r"count=1000+ elements cannot be .* holds more than"):
        b.reserve(10**30)
    assert b.capacity == 0


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        ("a", "f4", tl.InvalidTensorError), (1j, "f4", tl.UnsupportedDtypeError), (np.nan, "i1", tl.InvalidTensorError),
        (300, "i1", tl.NumberOverflowError), (2**70, "i8", tl.NumberOverflowError), (object(), "f4", tl.UnsupportedDtypeError),
        (np.datetime64("2024-01-01"), "i4", tl.UnsupportedDtypeError), ("a", "M8[D]", tl.InvalidTensorError),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", [0, slice(None)])
def test_a_value_that_its_dtype_does_not_hold_is_named(value, dtype, error, key):
    b = tl.SparseBuilder((3,), dtype)
    with pytest.raises(
        error, match=f"cannot be assigned to elements of dtype {b.dtype}".replace("[", ".")
    ) as caught:
        b[key] = value
    with pytest.raises(type(caught.value.__cause__)):
        np.zeros(3, dtype)[key] = value
    assert isinstance(caught.value, type(caught.value.__cause__))
    assert not b.nnz


def test_what_is_no_dtype_is_told():
    with pytest.raises(UnsupportedDtypeError, match="'no_such' is no dtype of NumPy"):
        tl.SparseBuilder((4, 5), "no_such")
    with pytest.raises(UnsupportedDtypeError, match="'no_such' is no dtype of NumPy"):
        tl.SparseTensor.from_dense(np.eye(2)).astype("no_such")


@pytest.mark.parametrize("given", [5, None, "x", np.eye(2), [[1, 0]]], ids=repr)
def test_a_builder_of_what_is_no_tensor_is_told_what_to_give(given):
    with pytest.raises(InvalidTensorError, match=r"SparseTensor.from_dense"):
        tl.SparseBuilder.of(given)
