"""Stored tensors that operations are tried on: arrays, how they are stored, keys, and NumPy's answer."""

import itertools

import numpy as np
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.ops.elements import Elements

DTYPES = ("u1", "i2", "i8", "f4", "f8", "?", "c16")
LAYOUTS = ("ftsf", "bsgs", "coo")
_names = (f"x{number}" for number in itertools.count())


def array_of(dtype, shape, seed, density=0.5):
    """An array of small numbers, about half of them zeros, some negative, and of floats some NaN."""
    rng = np.random.default_rng(seed)
    out = rng.integers(-4, 5, shape) * (rng.random(shape) < density)
    dtype = np.dtype(dtype)
    if dtype.kind in "ub":
        out = np.abs(out)
    out = out.astype(dtype)
    if dtype.kind in "fc" and seed % 3 == 0:
        out[rng.random(shape) < 0.05] = np.nan
    return out


def put(lake, array, layout):
    """A reference to the array, stored in several rows."""
    options = {}
    if layout in ("ftsf", "bsgs"):
        options["block_shape"] = tuple(max(1, -(-n // 3)) for n in array.shape)
    return lake.write(next(_names), array, layout=layout, **options)


def dense(answer):
    """An answer as an array or a scalar."""
    if isinstance(answer, Elements):
        out = np.zeros(answer.shape, answer.dtype)
        out.reshape(-1)[answer.places] = answer.values
        return out
    return answer


def equal(answer, wanted):
    """Whether an answer is NumPy's: values, shape, dtype."""
    found = dense(answer)
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def arrays():
    """Arrays of every dtype and of up to three axes, some of length 0."""
    shapes = st.lists(st.integers(0, 7), min_size=1, max_size=3).map(tuple)
    return st.builds(array_of, st.sampled_from(DTYPES), shapes, st.integers(0, 99))


@st.composite
def basic_keys(draw, shape):
    """Keys of slices with steps of either sign, integers, newaxis and Ellipsis."""
    items = []
    for n in shape:
        kind = draw(st.integers(0, 5))
        if kind == 0 and n:
            items.append(draw(st.integers(-n, n - 1)))
        elif kind <= 3:
            bound = st.none() | st.integers(-n - 1, n + 1)
            items.append(
                slice(draw(bound), draw(bound), draw(st.sampled_from((None, 1, 2, -1, -2))))
            )
        else:
            items.append(slice(None))
        if kind == 5:
            items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items = items[: draw(st.integers(0, len(items)))]
    return (*items, ...)


@st.composite
def keys(draw, shape):
    """Keys with at most one index array."""
    key = [*draw(basic_keys(shape))]
    if shape and draw(st.integers(0, 3)) == 0:
        axis = draw(st.integers(0, len(shape) - 1))
        if shape[axis]:
            key = [slice(None)] * len(shape)
            key[axis] = draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=4))
    return tuple(key)


@st.composite
def axes(draw, ndim):
    """None, an axis or several."""
    if not ndim or draw(st.booleans()):
        return None
    some = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    return some[0] if len(some) == 1 else tuple(some)


def open_lake(folder):
    return tl.open(str(folder))
