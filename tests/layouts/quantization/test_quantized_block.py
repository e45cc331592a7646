"""Blocks by codecs that quantise: their bytes as FORMAT.md has them, parts of them, and damage."""

import struct
from contextlib import suppress

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.quantization.quantized_block import (
    decode,
    decode_into,
    encode,
    sample_of,
)

STEPS = ("cast(float16)", "cast(bfloat16)", "cast(float8_e4m3fn)", "cast(float8_e5m2)", "int8", "split", "error(0.01)")  # fmt: skip
CHAINS = (
    "raw",
    "zstd",
    "lorenzo+zigzag+nibbles+zstd",
    "delta(-2)+shuffle+zstd",
    "zigzag+bins+zstd",
)


def block(shape=(5, 6, 7), dtype="f4"):
    return np.cumsum(np.random.default_rng(5).standard_normal(shape), axis=-1).astype(dtype)


def coded(x, name):
    """A block as the layout stores it: with the checksum of ``split``."""
    name, values, index = encode(x, name, "x", (0,) * x.ndim)
    return name, (b"CRC " if index is not None else b"") + values, index


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("shape", [(5, 6, 7), (9,), ()])
def test_parts_are_parts_of_the_whole(step, chain, shape):
    x = block(shape)
    name, values, index = coded(x, f"{step}+{chain}")
    whole = decode(values, index, name, x.shape, x.dtype)
    assert np.allclose(whole, x, rtol=0.13, atol=0.04)
    src = tuple(slice(k % 2, n - 1, 1 + k) for k, n in enumerate(x.shape))
    out = np.empty_like(whole[src])
    decode_into(values, index, name, x.shape, x.dtype, src, out)
    assert np.array_equal(out, whole[src])
    assert sample_of(x, step).shape == x.shape


def test_the_bytes_are_those_of_the_format():
    x = np.array([[1.0, -0.5, np.nan], [0.25, 0.0, 0.125]], "f4")
    nan = struct.pack("<I", 1), b"\1\2", b"\x47\x00\x7e"  # the same value throughout, as float16
    joined = [struct.pack("<I", len(part)) + part for part in nan[1:]]

    name, values, index = encode(x, "cast(bfloat16)+raw", "x", (0, 0))
    assert (name, index) == ("cast(bfloat16)+raw", None)
    assert values == x.astype(ml_dtypes.bfloat16).tobytes()

    _, values, _ = encode(x, "int8+raw", "x", (0, 0))
    codes = np.array([127, -64, 0, 127, 0, 64], "i1").tobytes()
    assert np.rint(-63.5) == -64
    scales = np.array([1 / 127, 0.25 / 127], "f4")
    assert values[:4] == nan[0]
    assert values[4:14] == struct.pack("<I", 6) + codes
    (length,) = struct.unpack_from("<I", values, 14)
    assert values[18] == 0, "plain floats, byte plane by byte plane"
    assert values[19 : 18 + length] == np.ascontiguousarray(scales.view("u1").reshape(2, 4).T).tobytes()  # fmt: skip
    assert values[18 + length :] == b"".join(joined)

    _, values, _ = encode(x, "error(0.125)+raw", "x", (0, 0))
    integers = np.array([4, -2, -2, 1, 0, 0], "i1").tobytes()
    assert values == b"\1" + nan[0] + struct.pack("<I", 6) + integers + b"".join(joined)

    _, values, index = encode(x, "split+raw", "x", (0, 0))
    assert values == x.astype(ml_dtypes.bfloat16).tobytes()
    lower = pa.Codec("zstd").decompress(index, decompressed_size=12)
    assert bytes(lower) == np.ascontiguousarray(x.view("<u2")[:, ::2].copy().view("u1").reshape(6, 2).T).tobytes()  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_damage_is_named_and_never_more_than_that(step):
    x = block()
    x[0, 1, 2] = np.nan
    name, values, index = coded(x, f"{step}+shuffle+zstd")
    rng = np.random.default_rng(1)
    src = tuple(slice(0, n) for n in x.shape)

    def read(values, index, shape=x.shape, dtype=x.dtype):
        out = np.empty(shape, dtype)
        decode_into(values, index, name, shape, np.dtype(dtype), src, out)

    for _ in range(150):
        broken = bytearray(values)
        for _ in range(rng.integers(1, 4)):
            broken[rng.integers(0, len(broken))] = rng.integers(0, 256)
        cut = broken[: rng.integers(0, len(broken))] if rng.integers(0, 2) else broken
        with suppress(CorruptDataError):  # any other error fails the test
            read(bytes(cut), index)
    for wrong in (b"", values[:3], values[:-1]):
        with pytest.raises(CorruptDataError):
            read(wrong, index)
    with pytest.raises(CorruptDataError):
        read(values, index, (5, 6, 8))
    if step == "split":
        with pytest.raises(CorruptDataError, match="has no index"):
            read(values, None)
        with pytest.raises(CorruptDataError):
            read(values, index[:-3])
    if not step.startswith("cast"):
        with pytest.raises(CorruptDataError):
            read(values, index, x.shape, "i4")


def test_scales_that_are_no_scales_are_damage():
    x = block((2, 3))
    _, values, _ = encode(x, "int8+raw", "x", (0, 0))
    at = 4 + 4 + 6 + 4 + 1
    for bad in (np.nan, np.inf, -1.0):
        planes = np.full(2, bad, "f4").view("u1").reshape(2, 4).T.tobytes()
        with pytest.raises(CorruptDataError, match="a scale of a row is not a finite number"):
            decode(values[:at] + planes + values[at + 8 :], None, "int8+raw", x.shape, x.dtype)


def test_a_scale_that_is_lost_is_damage():
    x = block((2, 3))
    _, values, _ = encode(x, "int8+raw", "x", (0, 0))
    start = 4 + 4 + 6
    (length,) = struct.unpack_from("<I", values, start)
    rest = values[start + 4 + length :]
    for rows in (0, 1, 3):
        scales = b"\0" + np.full(rows, 0.5, "f4").view("u1").reshape(rows, 4).T.tobytes()
        lost = values[:start] + struct.pack("<I", len(scales)) + scales + rest
        with pytest.raises(CorruptDataError):
            decode(lost, None, "int8+raw", x.shape, x.dtype)


FILLS = [
    ("float16", 0.5, True), ("float16", 0.1, False), ("float16", 1e30, False), ("float16", np.nan, True),
    ("int8", 1.0, False), ("int8", np.nan, True), ("int8", 0.0, True), ({"error": 0.5}, 7.0, True),
    ({"error": 0.5}, 0.3, False), ({"error": 0.5}, np.nan, True), ({"relative": 0.1}, 0.5, True),
    ({"relative": 0.1}, 1.1, False), ("split", 1.1, True),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fill", "kept"), FILLS)
def test_a_fill_value_is_kept_or_refused(lake, kind, fill, kept):
    """A purge writes it, and what it reads afterwards has to be that."""
    x = np.linspace(-3, 3, 24, dtype="f4").reshape(4, 6)
    options = {"quantize": kind, "fill_value": fill, "block_shape": (2, 6)}
    if not kept:
        with pytest.raises(
            tl.InvalidOptionError, match=r"fill_value=.* would be read as another value"
        ):
            lake.write("x", x, **options)
        lake.write("x", x, fill_value=fill)
        with pytest.raises(tl.InvalidOptionError, match=r"fill_value|fill value"):
            lake.convert("x", quantize=kind)
        return
    lake.write("x", x, **options)
    assert lake.purge("x", np.s_[1], now=True).verified
    np.testing.assert_array_equal(lake["x"][1], np.full(6, fill, "f4"))
