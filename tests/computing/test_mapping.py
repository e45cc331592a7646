"""Elementwise operations, region by region; what is interrupted leaves nothing."""

from pathlib import Path

import numpy as np
import pytest
from computed import array_of, arrays, dense, equal, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.computing import regions
from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.errors import (
    DenseResultError,
    InvalidTensorError,
    NumberOverflowError,
    UnsupportedFunctionError,
)
from tensorlake_spark.indexing import Box
from tensorlake_spark.writing import source


@pytest.fixture
def small_regions(monkeypatch):
    """Regions of a few elements."""
    monkeypatch.setattr(source, "REGION_BYTES", 64)
    monkeypatch.setattr(regions, "REGION_BYTES", 64)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy says so of complex NaN
@given(st.data(), arrays(), st.sampled_from((np.add, np.multiply, np.greater, np.maximum)))
@times(0.6)
def test_a_ufunc_is_numpys(shared, data, array, ufunc):
    key = data.draw(keys(array.shape))
    view = put(shared, array, "ftsf").view[key]
    other = data.draw(st.sampled_from((2, 2.5, True)))
    equal(view.map(ufunc, other), ufunc(array[key], other))
    equal(ufunc(view, view), ufunc(array[key], array[key]))


def test_small_regions_make_the_same(lake, small_regions):
    array = array_of("f8", (9, 7), 1)
    ref = lake.write("x", array, block_shape=(2, 3))
    assert np.array_equal(ref.view[::-1, 1:] * 2, array[::-1, 1:] * 2)
    found = ref.map(np.add, np.arange(7.0), into="y")
    assert np.array_equal(found[...], array + np.arange(7.0))
    assert np.array_equal(
        ref.view[:, None, :2] + ref.view[None, :3, :2], array[:, None, :2] + array[None, :3, :2]
    )


@pytest.mark.local_disk
def test_an_interrupted_result_leaves_nothing(lake, small_regions, monkeypatch):
    ref = lake.write("x", np.random.default_rng(0).random((8192, 128)))

    def there():
        return sorted(lake), lake.version, sorted(Path(lake.uri).rglob("*.parquet"))

    before = there()
    part, calls = Mapped.part, []

    def broken(self, box: Box):
        calls.append(box)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return part(self, box)

    monkeypatch.setattr(Mapped, "part", broken)
    with pytest.raises(KeyboardInterrupt):
        ref.map(np.negative, into="y")
    assert there() == before


def test_dtypes_and_shapes_that_do_not_go_together_are_refused(lake):
    ref = lake.write("x", np.ones((3, 4)))
    with pytest.raises(InvalidTensorError, match="do not broadcast"):
        ref.view + np.ones(3)
    with pytest.raises(TypeError):
        np.bitwise_and(ref, 1)
    for layout in ("ftsf", "coo"):
        ref = lake.write(layout, np.eye(4, dtype="u1"), layout=layout)
        with pytest.raises(NumberOverflowError, match=r"np\.multiply of .*-1 out of bounds for uint8; astype"):  # fmt: skip
            ref * -1
        with pytest.raises(InvalidTensorError, match=r"np\.power of .* negative integer powers are not allowed; astype"):  # fmt: skip
            ref.map(np.power, np.array([1, 1, -1, 1]))


@pytest.mark.parametrize(
    ("ufunc", "others", "says"),
    [
        (np.add, (), r"^np\.add takes 2 operands, and got 1; the tensor is the first of them$"),
        (np.sqrt, (2,), r"^np\.sqrt takes 1 operand, and got 2;"),
    ],
)
def test_a_wrong_number_of_operands_is_told(lake, ufunc, others, says):
    ref = lake.write("x", np.arange(6.0))
    with pytest.raises(UnsupportedFunctionError, match=says):
        ref.map(ufunc, *others)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "c8"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 2.0, 0.5])
@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_powers_have_the_dtype_of_numpys_operator(lake, dtype, exponent, layout):
    array = array_of(dtype, (5, 4), 3)
    ref = put(lake, array, layout)
    if exponent == 0 and layout == "bsgs":
        with pytest.raises(DenseResultError):
            ref**exponent
        return
    # NumPy before 2.4 makes int8 of a bool to the power 2.0.
    is_odd = dtype == "?" and exponent == 2.0 and isinstance(exponent, float)
    wanted = np.power(array, exponent) if is_odd else array**exponent
    for x in (ref, ref.view):
        found = dense(x**exponent)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-3 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize("name", ["where", "out", "no_such"])
def test_keywords_of_whole_arrays_are_refused(lake, small_regions, name):
    array = array_of("f8", (9, 7), 1)
    ref = lake.write("x", array, block_shape=(2, 3))
    with pytest.raises(UnsupportedFunctionError, match=f"np.negative with {name}= of a stored"):
        ref.map(np.negative, into="y", **{name: np.ones((9, 7), bool)})
    assert "y" not in lake
    assert np.array_equal(ref.map(np.negative, dtype="f4"), np.negative(array, dtype="f4"))


@pytest.mark.filterwarnings("error")
def test_only_what_is_in_a_tensor_gives_warnings(lake):
    array = np.array([1.0, np.inf, 2.0])
    ref = lake.write("x", array, layout="ftsf")
    for ufunc, others in ((np.log, ()), (np.reciprocal, ()), (np.divide, (array[:1] * 2,))):
        np.testing.assert_array_equal(ref.map(ufunc, *others), ufunc(array, *others))
    np.testing.assert_array_equal(ref.view[1:2] / np.zeros(1), [np.inf])
    assert np.remainder(ref.view[:0], np.zeros(1)).shape == (0,)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(lake.write("y", array - 1, layout="ftsf"))
