"""What is stored, for those who read that: which dtype, and what stands for what is kept apart."""

import ml_dtypes
import numpy as np
import pytest

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.layouts.quantization.kinds import KEY, quantization_of
from tensorlake_spark.layouts.quantization.native_blocks import (
    CODES,
    INTEGERS,
    decode_native,
    native_dtype,
    native_fill,
)
from tensorlake_spark.layouts.quantization.quantized_block import encode
from tensorlake_spark.tensor.spec import TensorSpec


def spec_of(kind, fill=0.0):
    known = quantization_of(kind)
    codec = f"{known.codec_step}+zstd" if known.codec_step else "zstd"
    fill = np.float32(fill).tobytes()
    params = {KEY: known.to_json()}
    return TensorSpec(
        "x", (4,), np.dtype("f4"), "ftsf", (4,), codec=codec, params=params, fill=fill
    )


def test_the_dtype_of_a_native_read():
    assert native_dtype(spec_of("float16"), True) == np.float16
    assert native_dtype(spec_of("float16"), "float16") == np.float16
    assert native_dtype(spec_of("int8"), True) == CODES
    assert native_dtype(spec_of({"error": 1}), True) == INTEGERS
    assert native_dtype(spec_of({"relative": 0.1}), True) is None
    assert native_dtype(spec_of("split"), True) is None
    assert native_dtype(spec_of("split"), "bfloat16") == ml_dtypes.bfloat16
    assert native_dtype(spec_of("int8"), False) is None
    assert native_dtype(spec_of({"relative": 0.1}), "float32") is None
    with pytest.raises(
        InvalidOptionError, match=r"'bfloat61' is not what is stored.*did you mean 'bfloat16'"
    ):
        native_dtype(spec_of("split"), "bfloat61")
    with pytest.raises(InvalidOptionError, match="native=None is not True"):
        native_dtype(spec_of("split"), None)


def test_the_fill_value_as_it_would_be_stored():
    assert native_fill(spec_of("float16", 1.1), np.dtype("f2")) == np.float16(1.1)
    assert native_fill(spec_of({"error": 0.5}, 7), INTEGERS) == 7
    assert native_fill(spec_of({"error": 0.5}, np.nan), INTEGERS) == 0
    assert native_fill(spec_of({"error": 0.001}, 1e30), INTEGERS) == 0
    code = native_fill(spec_of("int8", -2), CODES)
    assert code["code"] * code["scale"] == -2
    half = native_fill(spec_of("split", 1.5), np.dtype(ml_dtypes.bfloat16))
    assert half == 1.5


def test_a_row_of_another_step_is_damage():
    x = np.array([1, 2, 3, 4], "f4")
    _, values, _ = encode(x, "error(0.5)+zstd", "x", (0,))
    with pytest.raises(
        CorruptDataError, match=r"a row has codec 'error\(0.5\)\+zstd', and its tensor"
    ):
        decode_native(values, "error(0.5)+zstd", (4,), spec_of("int8"), CODES)
