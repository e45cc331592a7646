"""Floats of every kind for property tests: subnormal, huge, NaN with payloads, signed zeros."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.tensor.spec import dtype_of

DTYPES = ("float16", "bfloat16", "float32", "float64")


def bits_of(x):
    """The bit patterns of an array."""
    return np.ascontiguousarray(x).reshape(-1).view(f"u{x.dtype.itemsize}")


@st.composite
def floats(draw, name, shapes=None):
    """Arrays of a float dtype: any bits, or numbers as they are measured with some of any bits among them."""
    dtype = dtype_of(name)
    shape = draw(shapes or hnp.array_shapes(min_dims=1, max_dims=3, max_side=9))
    word = np.dtype(f"u{dtype.itemsize}")
    any_bits = draw(hnp.arrays(word, shape)).view(dtype)
    if draw(st.booleans()):
        return any_bits
    scale = 10.0 ** draw(st.integers(-6, 6))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    with np.errstate(over="ignore"):
        x = (np.cumsum(rng.standard_normal(shape), axis=-1) * scale).astype(dtype)
    few = rng.random(shape) < draw(st.sampled_from([0.0, 0.05, 0.5]))
    return np.where(few, any_bits, x)
