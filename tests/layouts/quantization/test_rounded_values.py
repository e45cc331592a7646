"""Rounded values of sparse elements: NumPy and ml_dtypes are the oracle, and bounds are kept in float64."""

from dataclasses import replace

import numpy as np
import pytest
from floats import DTYPES, bits_of, floats
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.layouts.quantization.kinds import KEY, Quantization, quantization_of
from tensorlake_spark.layouts.quantization.rounded_values import rounded, rounded_for, within
from tensorlake_spark.tensor.spec import TensorSpec, dtype_of

# These pages convert signalling NaN themselves, to compare.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")

LAYOUTS = ("bsgs", "coo", "csr", "csc", "csf")


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_every_element_is_within_an_absolute_bound(dtype, data):
    x = data.draw(floats(dtype)).reshape(-1)
    bound = data.draw(st.floats(5e-324, 8e307, exclude_min=False))
    y = within(x, bound)
    assert y.dtype == x.dtype
    finite = np.isfinite(x)
    assert (np.abs(y[finite].astype("f8") - x[finite].astype("f8")) <= bound).all()
    assert np.array_equal(bits_of(x[~finite]), bits_of(y[~finite])), "NaN and infinities stay"
    assert np.array_equal(bits_of(within(y, bound)), bits_of(y)), "once is enough"


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@given(st.lists(st.floats(-400, 400, width=32), min_size=1))
def test_a_cast_is_the_nearest_of_its_dtype(kind, values):
    x = np.array(values, "f4")
    want = x.astype(dtype_of(kind)).astype("f4")
    assert np.array_equal(bits_of(rounded(x, Quantization(kind))), bits_of(want))


def test_a_bound_leaves_few_bits():
    x = np.random.default_rng(0).standard_normal(1000).astype("f4")
    y = within(x, 2.0**-9)
    assert np.array_equal(y * 256, np.rint(y * 256)), "multiples of a power of two"
    assert len(np.unique(y)) < 900


@pytest.fixture
def lake(tmp_path):
    return tl.open(tmp_path)


def few(seed=0, share=0.05):
    rng = np.random.default_rng(seed)
    chosen = rng.random((60, 70, 8)) < share
    return np.where(chosen, rng.standard_normal((60, 70, 8)), 0).astype("f4")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("quantize", ["bfloat16", "float8_e5m2", {"error": 0.01}, {"relative": 0.01}])  # fmt: skip
def test_a_sparse_tensor_reads_what_rounding_gives(lake, layout, quantize):
    x = few()
    known = quantization_of(quantize)
    want = rounded(x.reshape(-1), known).reshape(x.shape)
    plain = lake.write("plain", x, layout=layout)
    ref = lake.write("x", x, layout=layout, quantize=quantize)
    assert ref.quantization == known
    assert ref.nnz == plain.nnz, "an element that is rounded to zero stays one"
    assert ref[...].values.dtype == x.dtype
    np.testing.assert_array_equal(ref[...].todense(), want)
    np.testing.assert_array_equal(ref[7:9, ::3].todense(), want[7:9, ::3])
    np.testing.assert_array_equal(ref.read(native=True).todense(), want)
    assert ref.stored_bytes < 0.9 * plain.stored_bytes
    assert str(known) in str(ref.explain())
    more = few(1)
    lake.write("x", more, mode="append")
    lake["x"][3] = more[5]
    want = np.concatenate([want, rounded(more.reshape(-1), known).reshape(x.shape)])
    want[3] = want[60 + 5]
    np.testing.assert_array_equal(lake["x"][...].todense(), want)
    assert lake["x"].quantization == known
    lake.check()
    lake.convert("x", quantize="none")
    assert lake["x"].quantization is None
    np.testing.assert_array_equal(lake["x"][...].todense(), want)


def test_auto_keeps_few_elements_sparse(lake):
    """A tensor of 10**12 elements became dense chunks because it was quantised."""
    coords = np.array([[3, 999_999], [5, 7]])
    x = tl.SparseTensor(coords, np.array([0.1, 2.0]), (1_000_000, 1_000_000))
    ref = lake.write("x", x, quantize="bfloat16")
    assert ref.layout == "bsgs"
    assert ref[3, 5] == np.float64(np.array(0.1).astype(dtype_of("bfloat16")))
    assert lake.write("y", few(), quantize="bfloat16").layout == "ftsf", "an array becomes chunks"
    lake.write("z", few(), layout="csr")
    lake.convert("z", quantize="bfloat16")
    assert lake["z"].layout == "bsgs"
    with pytest.raises(InvalidOptionError, match="'int8' is not for layout"):
        lake.convert("z", quantize="int8", layout="csr")


def test_a_bound_holds_where_elements_become_chunks(lake):
    """They were rounded to two grids, one after the other, and were off by up to twice the bound."""
    x = few(share=0.5)
    sparse = lake.write("x", x, layout="coo", quantize={"error": 0.3})[...].todense()
    ref = lake.convert("x", layout="ftsf")
    assert ref.quantization == Quantization("error", 0.25)
    np.testing.assert_array_equal(ref[...], sparse)
    assert np.abs(ref[...] - x).max() <= 0.3
    lake.write("x", x, mode="append", quantize={"error": 0.3})
    with pytest.raises(InvalidOptionError, match=r"has quantize=\{'error': 0.25\}"):
        lake.write("x", x, mode="append", quantize={"error": 0.2})
    with lake.transaction() as changes:
        changes.write("y", x, layout="csr", quantize={"error": 0.3})
        changes.convert("y", layout="ftsf")
    assert np.abs(lake["y"][...] - x).max() <= 0.3


def test_chunks_are_not_rounded_once_more(lake):
    """Their grid is another one, unless the bound is a power of two: values were off by twice the bound."""
    x = few(share=0.5)
    chunks = lake.write("x", x, layout="ftsf", quantize={"error": 0.3})[...]
    for layout in ("coo", "bsgs"):
        with pytest.raises(
            InvalidOptionError, match=r"tensor 'x' .* past the bound; give quantize='none'"
        ):
            lake.convert("x", layout=layout)
    ref = lake.convert("x", layout="coo", quantize="none")
    assert ref.quantization is None
    np.testing.assert_array_equal(ref[...].todense(), chunks)
    lake.write("y", x, layout="ftsf", quantize={"error": 0.25})
    ref = lake.convert("y", layout="csr")
    assert ref.quantization == Quantization("error", 0.25)
    assert np.abs(ref[...].todense() - x).max() <= 0.25


def test_special_values_come_back(lake):
    values = np.array([np.nan, np.inf, -np.inf, 1.3, -0.0])
    x = tl.SparseTensor(np.arange(5)[None], values, (9,))
    for quantize in ("float16", {"error": 0.5}, {"relative": 0.5}):
        found = lake.write("x", x, layout="coo", quantize=quantize, mode="overwrite")[...]
        assert np.array_equal(np.isnan(found.values), np.isnan(values))
        assert np.array_equal(found.values[1:3], values[1:3])


def test_what_does_not_fit_is_named(lake):
    x = few()
    x[3, 4, 5] = 1e6
    with pytest.raises(InvalidTensorError, match=r"tensor 'x': element \(3, 4, 5\) is (1e\+06|1000000\.0), beyond the greatest value of float16"):  # fmt: skip
        lake.write("x", x, layout="csf", quantize="float16")
    x[3, 4, 5] = np.inf
    with pytest.raises(InvalidTensorError, match=r"\(3, 4, 5\) is inf, which float8_e4m3fn does not"):  # fmt: skip
        lake.write("x", x, layout="bsgs", quantize="float8_e4m3fn")
    x = x.astype("f8")
    x[3, 4, 5] = 1e300
    with pytest.raises(
        InvalidTensorError, match=r"of bfloat16.*such as quantize={'relative': 0.01}"
    ):
        lake.write("x", x, layout="coo", quantize="bfloat16")
    assert "x" not in lake
    ref = lake.write("x", few(), layout="coo", quantize="float16")
    with pytest.raises(InvalidOptionError, match=r"native='float16' is not what is stored.*quantised as float16"):  # fmt: skip
        ref.read(native="float16")
    with pytest.raises(InvalidOptionError, match="has quantize='float16', and an append keeps it"):
        lake.write("x", few(), mode="append", quantize={"error": 0.1})


def test_values_that_add_up_are_not_rounded_one_by_one():
    spec = TensorSpec("x", (9,), np.dtype("f4"), "coo", (), params={KEY: "float16"})
    x, coords = np.ones(1, "f4"), np.zeros((1, 1), np.int64)
    assert rounded_for(spec, x, coords) == 1
    with pytest.raises(InvalidOptionError, match="would add up to more than the bound"):
        rounded_for(replace(spec, params={**spec.params, "duplicates": "sum"}), x, coords)
    last = replace(spec, params={**spec.params, "duplicates": "last"})
    assert rounded_for(last, x, coords) == 1
