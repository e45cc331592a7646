"""SparseBuilder: whatever is done to it, NumPy's array says what it holds."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
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
    lengths = (1,) * draw(st.sampled_from([0, 0, 0, 1])) + lengths
    dense = rng.integers(-3, 4, lengths) * (
        rng.random(lengths) < draw(st.sampled_from([0, 0.3, 1]))
    )
    dense = dense.astype(draw(st.sampled_from(["f8", "i4", "f4"])))
    kind = draw(st.sampled_from(["scalar", "array", "list", "sparse", "scipy"]))
    if kind == "scalar" or not dense.ndim:
        scalar = draw(st.sampled_from([0, 0.0, 2, -1.5, np.float32(3), True]))
        return np.asarray(scalar), scalar
    if kind == "list":
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
        want[key] = dense
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
