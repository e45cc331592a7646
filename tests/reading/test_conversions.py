"""References and views as arrays, numbers, truths and sequences: NumPy's arrays are the oracle."""

import operator

import numpy as np
import pytest
from computed import LAYOUTS, array_of, dense, put

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError

NUMBERS = (int, float, complex, bool, operator.index)


def of_numpy(convert, array):
    try:
        return convert(array)
    except TypeError:
        return TypeError


@pytest.mark.parametrize(
    "value",
    [3, -2.5, True, np.int8(7), 2 + 1j, np.float16(0), np.uint64(2**64 - 1), float("nan"), np.inf],
)
@pytest.mark.parametrize("convert", NUMBERS)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_one_without_axes_is_a_number(lake, value, convert):
    array = np.array(value)
    ref = lake.write("x", array)
    whole = lake.write("y", np.stack([array, np.zeros_like(array)]))
    if convert is int and not np.isfinite(array):
        for x in (ref, ref.view, whole.view[0]):
            with pytest.raises((ValueError, OverflowError)):
                convert(x)
        return
    wanted = of_numpy(convert, array)
    for x in (ref, ref.view, ref.view[...], whole.view[0]):
        if wanted is TypeError:
            with pytest.raises(UnsupportedFunctionError, match="no number for"):
                convert(x)
        else:
            assert type(convert(x)) is type(wanted)
            np.testing.assert_equal(convert(x), wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_of_every_layout_are_numbers(lake, layout):
    array = array_of("i8", (3, 4), 1)
    ref = put(lake, array, layout)
    for at in np.ndindex(3, 4):
        view = ref.view[at]
        assert (int(view), float(view), bool(view)) == (array[at], array[at], array[at] != 0)
        assert operator.index(view) == array[at]
    assert bool(ref.view[1:2, 2:3]) == bool(array[1, 2])


@pytest.mark.parametrize("convert", [int, float, complex, operator.index])
def test_one_with_axes_is_no_number(lake, convert):
    ref = lake.write("x", np.array([[4]]))
    for x in (ref, ref.view):
        with pytest.raises(UnsupportedFunctionError, match=r"'x' of shape \(1, 1\).*x\[0, 0\]"):
            convert(x)


def test_the_truth_of_one_element_is_its_own(lake):
    ref = lake.write("x", np.array([[0], [2]]))
    assert not ref.view[:1]
    assert ref.view[1:]
    assert not lake.write("zero", np.array([0]))
    for x in (ref, ref.view, ref.view[:0], lake.write("none", np.zeros(0))):
        with pytest.raises(InvalidTensorError, match="ambiguous"):
            bool(x)


def test_one_without_axes_has_no_length_and_no_parts(lake):
    ref = lake.write("x", np.array(2.5))
    for x in (ref, ref.view, ref.view[...]):
        for call in (len, list, iter, reversed, tuple):
            with pytest.raises(TypeError, match="tensor 'x' has no axis") as error:
                call(x)
            assert isinstance(error.value, tl.TensorLakeError)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_along_the_first_axis(lake, layout):
    array = array_of("f8", (4, 3), 2)
    ref = put(lake, array, layout)
    for x in (ref, ref.view[...]):
        assert len(x) == 4
        np.testing.assert_array_equal([dense(part) for part in x], array)
        np.testing.assert_array_equal([dense(part) for part in reversed(x)], array[::-1])
    assert [part.shape for part in ref.view] == [(3,)] * 4, "a composer gives views"


def test_an_array_is_a_copy(lake):
    ref = lake.write("x", np.arange(3))
    for x in (ref, ref.view):
        with pytest.raises(InvalidTensorError, match="without a copy"):
            np.array(x, copy=False)
        assert np.asarray(x, np.float32).dtype == np.float32
