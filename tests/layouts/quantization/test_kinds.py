"""What `quantize=` takes, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.layouts.coding.chain import is_known
from tensorlake_spark.layouts.quantization.kinds import (
    KEY,
    KINDS,
    Quantization,
    check_quantization,
    quantization_in,
    quantization_of,
)
from tensorlake_spark.tensor.spec import TensorSpec


def test_every_kind_is_understood_and_told_in_the_same_words():
    for given in (*KINDS[:-2], {"error": 0.5}, {"relative": 0.5}):
        known = quantization_of(given)
        assert quantization_of(known.to_json()) == known
        assert quantization_of(known) is known
        assert str(known)
        assert is_known(f"{known.codec_step}+zstd" if known.codec_step else "zstd")
    assert quantization_of(None) is None
    assert quantization_of('{"error": 1e-3}') == Quantization("error", 0.001)
    assert quantization_of({"error": np.float32(0.5)}) == Quantization("error", 0.5)
    assert quantization_of({"error": 2}).step == 4
    assert quantization_of("int8").step is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("float61", "'float61' is not a kind of quantisation; did you mean 'float16'"),
        ("error", "'error' is not complete: it needs a bound"),
        (7, "quantize=7 is not a kind of quantisation"),
        (True, "quantize=True is not a kind"),
        ('{"error": ', "is not JSON"),
        ({}, "is not one bound"),
        ({"error": 1, "relative": 1}, "is not one bound"),
        ({"eror": 1}, "'eror' is not one of error, relative; did you mean 'error'"),
        ({"error": "0.1"}, "'0.1'} is not a number"),
        ({"error": True}, "True} is not a number"),
        ({"error": None}, "None} is not a number"),
        *[({"error": bad}, "is not above 0 and below 8.99e") for bad in (0, -0.0, -1e-3, np.nan, np.inf, 1e308, 10**400)],
        *[({"relative": bad}, "is not above 0 and below 1") for bad in (0.0, -1, 1, np.nan, np.inf)],
    ],
)  # fmt: skip
def test_what_is_no_quantisation_is_refused(given, words):
    with pytest.raises(InvalidOptionError, match="quantize=") as caught:
        quantization_of(given)
    assert words in str(caught.value)


def test_what_is_nested_too_deeply_is_refused():
    with pytest.raises(InvalidOptionError, match="is not JSON"):
        quantization_of('{"a":' * 10**5)


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "datetime64[s]", "uint8"])
def test_only_floats_are_quantised(dtype):
    with pytest.raises(InvalidOptionError, match=r"is not for dtype .*float16, bfloat16, float32, float64"):  # fmt: skip
        check_quantization(quantization_of("int8"), "x", np.dtype(dtype), "ftsf", True)


def test_what_saves_nothing_or_needs_dense_chunks_is_refused():
    with pytest.raises(InvalidOptionError, match="'float16' is not smaller than dtype float16"):
        check_quantization(quantization_of("float16"), "x", np.dtype("f2"), "ftsf", True)
    with pytest.raises(InvalidOptionError, match="'split' is not for dtype float64"):
        check_quantization(quantization_of("split"), "x", np.dtype("f8"), "ftsf", True)
    with pytest.raises(InvalidOptionError, match=r"'int8' is not for layout csr.*rows of the last"):
        check_quantization(quantization_of("int8"), "x", np.dtype("f4"), "csr", False)
    with pytest.raises(
        InvalidOptionError, match=r"'split' is not for layout coo.*give one of these"
    ):
        check_quantization(quantization_of("split"), "x", np.dtype("f4"), "coo", False)
    for kind in ("float16", "float8_e5m2", {"error": 0.1}, {"relative": 0.1}):
        check_quantization(quantization_of(kind), "x", np.dtype("f4"), "csr", False)


def test_a_metadata_row_that_does_not_fit_itself_is_damaged():
    def spec(codec, found):
        params = {} if found is None else {KEY: found}
        return TensorSpec("x", (4,), np.dtype("f4"), "ftsf", (4,), codec=codec, params=params)

    assert quantization_in(spec("zstd", None)) is None
    sparse = replace(spec("zstd", "float16"), layout="csr")
    assert quantization_in(sparse) == Quantization("float16"), (
        "its values are rounded, no step is needed"
    )
    with pytest.raises(CorruptDataError, match="metadata row of tensor 'x'"):
        quantization_in(replace(sparse, codec="cast(float16)+zstd"))
    assert quantization_in(spec("zstd", {"relative": 0.5})) == Quantization("relative", 0.5)
    for codec, found in (("int8+zstd", None), ("zstd", "int8"), ("int8+zstd", "split"), ("zstd", 5), ("zstd", "none")):  # fmt: skip
        with pytest.raises(CorruptDataError, match="metadata row of tensor 'x'"):
            quantization_in(spec(codec, found))
