"""Pcodec: what it takes, what it needs, and what is damage."""

import contextlib
import sys

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.coding import pco
from tensorlake_spark.layouts.testing.laws import DTYPES, bits
from tensorlake_spark.tensor.spec import dtype_of


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back_or_is_refused_by_name(name):
    dtype = dtype_of(name)
    raw = np.random.default_rng(0).integers(0, 256, 300 * dtype.itemsize, np.uint8)
    x = (raw % 2).view(bool) if dtype.kind == "b" else raw.view(dtype)
    if pco.number_of(dtype) is None:
        with pytest.raises(tl.InvalidOptionError, match=r"no form for dtype .*uint8 to uint64"):
            pco.encode(x)
        with pytest.raises(tl.CorruptDataError, match="no form"):
            pco.decode_to(pco.encode(np.arange(300)), np.empty(300, dtype))
        return
    out = np.empty_like(x)
    pco.decode_to(pco.encode(x), out)
    assert bits(out) == bits(x)


def test_without_the_package_the_error_names_the_extra(tmp_path, monkeypatch):
    lake = tl.open(tmp_path)
    x = np.arange(1000)
    lake.write("x", x, codec="pco")
    lake.write("y", x, codec="zstd")
    assert lake["x"].codec == "pco"
    assert np.array_equal(lake["x"][10:20], x[10:20])
    monkeypatch.setitem(sys.modules, "pcodec", None)  # as where it is not installed
    said = r"codec 'pco' needs the package pcodec; .*pip install 'tensorlake-spark\[codecs\]'"
    with pytest.raises(tl.MissingDependencyError, match=said):
        lake["x"][...]
    with pytest.raises(tl.MissingDependencyError, match=said):
        lake.write("z", x, codec="pco")
    assert list(lake) == ["x", "y"]
    assert np.array_equal(lake["y"][...], x)
    assert lake.check().ok
    assert lake.write("z", x, codec="smallest").codec != "pco"


@pytest.mark.parametrize("place", [0, 8, 12, 13, 14, 20, 40, -1])
def test_damage_is_an_error_or_other_numbers(place):
    x = np.cumsum(np.random.default_rng(0).integers(0, 100, 500))
    payload = bytearray(pco.encode(x))
    for value in range(0, 256, 7):
        payload[place] = value
        with contextlib.suppress(tl.CorruptDataError):
            pco.decode_to(bytes(payload), np.empty_like(x))


def test_another_number_of_elements_or_dtype_is_damage():
    payload = pco.encode(np.arange(100))
    for size in (99, 101):
        with pytest.raises(tl.CorruptDataError, match=f"100 elements where {size}"):
            pco.decode_to(payload, np.empty(size, np.int64))
    with pytest.raises(tl.CorruptDataError, match="is not 100 numbers of Pcodec"):
        pco.decode_to(payload, np.empty(100, np.float32))
    with pytest.raises(tl.CorruptDataError, match="None elements"):
        pco.check(b"abc", 3)
    with pytest.raises(tl.CorruptDataError):
        pco.decode_to(payload[:20], np.empty(100, np.int64))
