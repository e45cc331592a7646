"""Codecs: every part of every block, bit by bit."""

from contextlib import contextmanager

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.block_stacks import decode_stack
from tensorlake_spark.layouts.coding.chain import TRANSPOSE
from tensorlake_spark.layouts.coding.pco import number_of
from tensorlake_spark.layouts.testing.laws import arrays, bits

NAMES = list(codecs.CODECS)


def ends(size):
    """Two different positions of an axis."""
    return st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True)


@times(4)
@given(st.data())
def test_whole_blocks_parts_and_stacks(data):
    x = data.draw(arrays().filter(lambda a: a.size > 0))
    if x.ndim >= 2 and data.draw(st.booleans()):  # longer than a band
        x = np.concatenate([x] * 40, axis=-2)
    x = np.ascontiguousarray(x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("=")))
    asked = data.draw(st.sampled_from(NAMES))
    first = data.draw(st.sampled_from(["", "", TRANSPOSE]))
    codec = codecs.codec_of(first + asked)
    if asked == "pco" and number_of(x.dtype) is None:
        with pytest.raises(InvalidOptionError, match=f"'pco' has no form for dtype {x.dtype}"):
            codecs.encode(x, codec)
        return
    name, payload = codecs.encode(x, codec)
    inner = codecs.codec_of(asked)
    fallback = "shuffle+zstd" if inner.places is not None else asked
    if inner.floats:
        fallback = asked.replace("(float)", "")
    assert name in (codec.name, first + fallback)
    codec = codecs.codec_of(name)
    assert bits(codecs.decode(payload, codec, x.shape, x.dtype)) == bits(x)
    stack = decode_stack([payload, payload], codec, x.shape, x.dtype)
    assert bits(stack) == bits(np.stack([x, x]))
    src = tuple(
        slice(a, b, s)
        for a, b, s in (
            (*sorted(data.draw(ends(n))), data.draw(st.integers(1, 3))) for n in x.shape
        )
    )
    out = np.empty(x[src].shape, x.dtype)
    codecs.decode_into(payload, codec, x.shape, x.dtype, src, out)
    assert bits(out) == bits(x[src])
    with all_beginnings():
        out = np.empty(x[src].shape, x.dtype)
        codecs.decode_into(payload, codec, x.shape, x.dtype, src, out)
    assert bits(out) == bits(x[src])


@contextmanager
def all_beginnings():
    """Blocks of any size are decompressed no further than a part of them needs."""
    before = codecs._SHORT_FRAME, codecs._BEGINNING
    codecs._SHORT_FRAME, codecs._BEGINNING = 0, 1
    try:
        yield
    finally:
        codecs._SHORT_FRAME, codecs._BEGINNING = before


@pytest.mark.parametrize(
    "name", ["delta(-2)+zstd", "zstd", "lorenzo+zigzag+zstd", "delta(-1)+shuffle+zstd"]
)
def test_a_part_at_the_beginning_is_all_that_is_decompressed(name, monkeypatch):
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.integers(0, 3, (64, 64, 64)), axis=1).astype("u1")
    name, payload = codecs.encode(x, codecs.codec_of(name))
    codec, asked = codecs.codec_of(name), []
    real = codecs.inflate_beginning

    def counted(frame, nbytes, wanted):
        asked.append(wanted)
        return real(frame, nbytes, wanted)

    monkeypatch.setattr(codecs, "inflate_beginning", counted)
    axis = 1 if "-2" in name else 0
    for stop, few in ((9, True), (48, True), (49, False), (64, False)):
        src = [slice(3, 60), slice(3, 60), slice(2, 50)]
        src[axis] = slice(5, stop)
        out = np.empty(x[tuple(src)].shape, x.dtype)
        codecs.decode_into(payload, codec, x.shape, x.dtype, tuple(src), out)
        assert np.array_equal(out, x[tuple(src)])
        assert asked == ([stop << 12] if few else [])
        asked.clear()
    broken = codecs.encode(x[:32], codec)[1]
    with pytest.raises(CorruptDataError, match="holds 131072 bytes where 262144 are needed"):
        codecs.decode_into(
            broken, codec, x.shape, x.dtype, (slice(0, 2),) * 3, x[:2, :2, :2].copy()
        )
    with pytest.raises(CorruptDataError, match=r"does not decompress|holds"):
        codecs.decode_into(
            payload[:40], codec, x.shape, x.dtype, (slice(0, 9),) * 3, x[:9, :9, :9].copy()
        )


@given(st.binary(max_size=60), st.sampled_from([*NAMES, f"{TRANSPOSE}raw", f"{TRANSPOSE}zstd"]))
def test_garbage_is_an_error_not_an_answer(garbage, name):
    codec = codecs.codec_of(name)
    if name.endswith("raw") and len(garbage) == 24:
        return
    with pytest.raises(CorruptDataError):
        codecs.decode(garbage, codec, (3, 4), np.dtype("i2"))


def test_decimals_are_stored_as_integers_and_other_blocks_as_they_are():
    codec = codecs.codec_of("decimal(2)+delta(-1)+zigzag+shuffle+zstd")
    x = np.round(np.linspace(-50, 50, 1000), 2)
    x[x == 0] = 0  # no -0.0
    name, payload = codecs.encode(x, codec)
    assert name == codec.name
    assert len(payload) < len(codecs.encode(x, codecs.codec_of("shuffle+zstd"))[1]) / 4
    for odd in (np.nan, np.inf, -0.0, 0.001, 1e300):
        y = np.append(x, odd)
        name, payload = codecs.encode(y, codec)
        assert name == "shuffle+zstd"
        assert bits(codecs.decode(payload, codecs.codec_of(name), y.shape, y.dtype)) == bits(y)


def test_floats_that_are_none_are_damage():
    _, payload = codecs.encode(np.arange(3), codecs.codec_of("zstd"))
    for dtype in ("i8", "c16", "M8[s]"):
        with pytest.raises(CorruptDataError, match="stores floats"):
            codecs.decode(payload, codecs.codec_of("decimal(1)+zstd"), (3,), np.dtype(dtype))


def test_parts_of_a_lorenzo_block_land_in_views_of_a_result():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 40, 30)).astype(np.float32)
    x[0, 0, :3] = np.nan, -0.0, -np.inf
    codec = codecs.codec_of("lorenzo+zigzag+bins+zstd")
    _, payload = codecs.encode(x, codec)
    whole = np.zeros((9, 50, 90), np.float32)
    part = whole[1:4, 5:25, 60:85]
    src = np.s_[2:5, 0:20, 5:30]
    codecs.decode_into(payload, codec, x.shape, x.dtype, src, part)
    assert bits(part) == bits(x[src])
    assert np.count_nonzero(whole) == np.count_nonzero(x[src])


@pytest.mark.parametrize(
    "name", [n for n, codec in codecs.CODECS.items() if codec.places is None and not codec.pco]
)
@pytest.mark.parametrize("first", ["", TRANSPOSE])
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8", "c8"])
def test_a_part_that_indices_choose_is_that_of_the_whole(name, first, dtype):
    x = np.random.default_rng(0).integers(0, 99, (70, 16)).astype(dtype)
    taken, payload = codecs.encode(x, codecs.codec_of(first + name))
    codec = codecs.codec_of(taken)
    for src in ((slice(3, 70, 2), np.array([1, 4, 5])), np.ix_([3, 69], [0, 15])):
        assert np.array_equal(codecs.decode_part(payload, codec, x.shape, x.dtype, src), x[src])
    out = np.zeros((5, 60), dtype).T  # features lie in one piece
    codecs.decode_into(payload, codec, x.shape, x.dtype, (slice(2, 62), slice(4, 9)), out)
    assert np.array_equal(out, x[2:62, 4:9])


def test_paired_indices_beside_a_slice_are_numpys_of_a_transposed_block():
    x = np.random.default_rng(0).integers(0, 99, (5, 6, 7)).astype("i4")
    for name in ("raw", "shuffle+zstd", "lorenzo+zigzag+shuffle+zstd", "bins+zstd"):
        codec = codecs.codec_of(TRANSPOSE + name)
        _, payload = codecs.encode(x, codec)
        for src in (
            (np.array([1, 4]), slice(1, 6), np.array([0, 6])),
            (slice(0, 5, 2), np.array([5, 0]), np.array([3, 3])),
            (np.array([1, 4]), np.array([5, 0]), np.array([3, 3])),
        ):
            got = codecs.decode_part(payload, codec, x.shape, x.dtype, src)
            assert got.shape == x[src].shape
            assert np.array_equal(got, x[src])


def test_columns_of_a_transposed_block_lie_in_one_piece():
    x = np.random.default_rng(0).standard_normal((100, 3))
    name, payload = codecs.encode(x, codecs.codec_of("transpose+raw"))
    assert (name, payload) == ("transpose+raw", x.T.tobytes())
    # An array in Fortran's order is not copied twice, and says the same.
    assert codecs.encode(np.asfortranarray(x), codecs.codec_of(name)) == (name, payload)
    y = np.append(x, np.nan)[None]
    assert codecs.encode(y, codecs.codec_of("transpose+decimal(2)+zstd"))[0] == "transpose+shuffle+zstd"  # fmt: skip


@pytest.mark.parametrize("name", [n for n in NAMES if n != "pco"])
def test_a_transposed_scalar_is_itself(name):
    x = np.array(-2.25)
    written, payload = codecs.encode(x, codecs.codec_of(TRANSPOSE + name))
    found = codecs.decode(payload, codecs.codec_of(written), x.shape, x.dtype)
    assert found.reshape(()).tobytes() == x.tobytes()
