"""Functions of tensors on Arrow columns, without a session of Spark, beside NumPy."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.functions.aggregates import AGGREGATES
from tensorlake_spark.spark.functions.tensor_stacks import apply
from tensorlake_spark.spark.functions.udfs import FUNCTIONS
from tensorlake_spark.spark.source.schemas import arrow_type, tensor_column, tensors_of
from tensorlake_spark.tensor.spec import dtype_of

SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def call(name, *columns):
    """What a function makes of the only row of some columns."""
    function, kind = FUNCTIONS[name]
    out = apply(name, function, columns, arrow_type(kind))
    return next(tensors_of(out)) if pa.types.is_struct(out.type) else out[0].as_py()


def tensor(array):
    return tensor_column([np.asarray(array)])


def axes(*numbers):
    return pa.array([numbers], pa.list_(pa.int64()))


@pytest.mark.parametrize("name", SMALL)
def test_a_double_of_small_floats_is_added_up_as_one(name):
    """Added in their own dtype ones end at 2048, 256, 16 and 8, or in infinity."""
    ones = tensor(np.ones(100_000, dtype_of(name)))
    assert [call(f"tensor_{f}", ones) for f in ("sum", "mean")] == [100_000, 1]
    assert call("tensor_norm", ones) == pytest.approx(100_000**0.5)
    assert call("tensor_dot", ones, ones) == 100_000
    assert call("tensor_cosine", ones, ones) == pytest.approx(1)
    zeros = tensor(np.zeros(100_000, dtype_of(name)))
    assert call("tensor_distance", ones, zeros) == pytest.approx(100_000**0.5)


def test_a_double_of_float32_does_not_overflow():
    assert call("tensor_sum", tensor(np.full(8, 3e38, "f4"))) == 8 * float(np.float32(3e38))
    assert call("tensor_mean", tensor(np.full(8, 3e38, "f4"))) == float(np.float32(3e38))


def test_a_norm_of_complex64_is_float64():
    x = np.array([[3 + 4j, 3e30 + 4e30j], [0, 3e38 + 3e38j]], "c8")
    want = np.sqrt((np.abs(x.astype("c16")) ** 2).sum(axis=0))
    np.testing.assert_allclose(call("tensor_norm_axes", tensor(x), axes(0)), want, strict=True)
    assert call("tensor_norm", tensor(x)) == pytest.approx(np.linalg.norm(want))


@pytest.mark.parametrize("name", SMALL)
def test_a_tensor_of_small_floats_is_added_up_in_float32(name):
    dtype = dtype_of(name)
    x = np.ones((4096, 3), dtype) / dtype.type(32)
    want = x.astype("f8").sum(axis=0).astype(dtype), np.full(3, 1 / 32, dtype)
    for function, expected in zip(("sum", "mean"), want, strict=True):
        got = call(f"tensor_{function}_axes", tensor(x), axes(0))
        np.testing.assert_array_equal(got, expected, strict=True)
    ones = np.ones((2, 4096), dtype)
    got = call("tensor_matmul", tensor(ones), tensor(ones.T.copy()))
    assert got.dtype == (ones @ ones.T).dtype
    assert (got == 4096).all()


@pytest.mark.parametrize("name", [*SMALL, "float32"])
def test_groups_of_small_floats(name):
    dtype = dtype_of(name)
    column = tensor_column([np.full(2, 1 / 32, dtype)] * 500)
    total = AGGREGATES["tensor_sum_agg"](column for _ in range(20))
    np.testing.assert_array_equal(total, np.full(2, 312.5).astype(dtype), strict=True)
    mean = AGGREGATES["tensor_mean_agg"](column for _ in range(20))
    np.testing.assert_array_equal(mean, np.full(2, 1 / 32), strict=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint16", "int32", "uint64", "float16"])
@pytest.mark.parametrize("number", [256, -1, 1 << 40, 3, 0])
def test_any_integer_divides(dtype, number):
    x = np.array([0, 1, 7, 100]).astype(dtype)
    with np.errstate(all="ignore"):
        want = x / number, number / x
    got = call("tensor_div", tensor(x), pa.array([number]))
    np.testing.assert_array_equal(got, want[0], strict=True)
    got = call("tensor_div", pa.array([number]), tensor(x))
    np.testing.assert_array_equal(got, want[1], strict=True)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_other_integers_have_to_fit(name):
    for dtype, number in (("uint8", 256), ("uint8", -1), ("int8", 128)):
        with pytest.raises(tl.InvalidTensorError, match=f"{number} does not fit dtype {dtype}"):
            call(f"tensor_{name}", tensor(np.ones(3, dtype)), pa.array([number]))
    with pytest.raises(tl.InvalidTensorError, match="have no arithmetic here"):
        call(f"tensor_{name}", tensor(np.zeros(3, "M8[s]")), pa.array([1]))


def made(values, dtype):
    lists = pa.array([values], pa.list_(pa.float64()))
    return call("tensor_from_array", lists, axes(len(values)), pa.array([dtype]))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (300.0, "uint8"), (float("nan"), "int32"), (-1.0, "uint64"), (1.7, "int8"), (1e300, "int64"),
        (1e6, "float16"), (1e300, "float32"), (1.5, "datetime64[s]"), (float("inf"), "timedelta64[D]"),
    ],
)  # fmt: skip
def test_no_number_becomes_another(value, dtype):
    with pytest.raises(tl.InvalidTensorError, match=r"tensor_from_array: .*cannot be stored"):
        made([0.0, value], dtype)


def test_numbers_that_fit_become_tensors():
    for dtype in ("bool", "int8", "uint64", "float16", "bfloat16", "complex64", "datetime64[D]"):
        kind = dtype_of(dtype)
        np.testing.assert_array_equal(
            made([1.0, 0.0], dtype), np.array([1, 0]).astype(kind), strict=True
        )
    np.testing.assert_array_equal(made([0.1, np.nan], "float32"), np.array([0.1, np.nan], "f4"))


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("tensor_sum_axes", "axes"), ("tensor_max_axes", "axes"), ("tensor_argmax_axis", "axes"), ("tensor_get", "indices"),
        ("tensor_reshape", "lengths"),
    ],
)  # fmt: skip
def test_a_number_in_the_place_of_an_array_is_told(name, what, number):
    """As in tensor_sum_axes(t, 0): it ended in "truth value of an array is ambiguous"."""
    with pytest.raises(tl.InvalidTensorError, match=f"{what} are an array of integers; write arr"):
        call(name, tensor(np.eye(2)), pa.array([number]))


def test_a_number_in_the_place_of_a_slice_is_told():
    """It was taken for an index list."""
    with pytest.raises(tl.InvalidTensorError, match=r"slice is a text; write '1', not 1"):
        call("tensor_slice", tensor(np.eye(2)), pa.array([1]))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([3], r"cannot reshape array of size 2 into shape \(3,?\)"),
        ([None, 2], "lengths are integers, not None"),
        ([1.5], "lengths are integers, not 1.5"),
    ],
)
def test_a_shape_that_will_not_do_is_told_as_that_of_one_tensor(shape, said):
    values = pa.array([[1.0, 2.0]] * 4)
    lengths = pa.array([shape] * 4)
    with pytest.raises(tl.InvalidTensorError, match=said):
        call("tensor_from_array", values, lengths, pa.array(["float32"] * 4))
    with pytest.raises(tl.InvalidTensorError, match=said):
        call("tensor_reshape", tensor_column([np.ones(2)] * 4), lengths)
