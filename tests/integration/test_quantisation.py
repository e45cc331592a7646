"""Quantised tensors through every door of the library: bounds kept, slices right, damage named."""

import ml_dtypes
import numpy as np
import pytest
from floats import DTYPES, bits_of, floats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.delta.store.ranges import Remote
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.quantization import quantized_block
from tensorlake_spark.layouts.quantization.kinds import quantization_of
from tensorlake_spark.rows.row import data_batch
from tensorlake_spark.tensor.spec import dtype_of
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import ArraySource

# These pages convert signalling NaN themselves, to compare.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")

both_stores = pytest.mark.both_stores
KINDS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "split", {"error": 0.01}, {"relative": 0.01})  # fmt: skip


def field(shape=(9, 20, 33), dtype="f4"):
    rng = np.random.default_rng(3)
    return (np.cumsum(rng.standard_normal(shape), axis=1) / 4).astype(dtype)


def tolerance(kind, x):
    """By how much each element may differ, in float64."""
    x = x.astype("f8")
    if isinstance(kind, dict):
        [(name, bound)] = kind.items()
        return np.full(x.shape, bound) if name == "error" else bound * np.abs(x)
    if kind == "split":
        return np.zeros(x.shape)
    if kind == "int8":
        return np.broadcast_to(np.abs(x).max(axis=-1, keepdims=True) / 254 * (1 + 1e-5), x.shape)
    info = ml_dtypes.finfo(kind)
    return np.maximum(np.abs(x) * float(info.eps) / 2, float(info.smallest_subnormal) / 2)


@both_stores
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_tensor_is_read_within_its_bound_and_slices_are_slices_of_it(lake, kind):
    x = field()
    ref = lake.write("x", x, quantize=kind, block_shape=(4, 8, 33))
    y = ref[...]
    assert y.dtype == x.dtype
    assert (np.abs(y.astype("f8") - x.astype("f8")) <= tolerance(kind, x)).all()
    for key in (np.s_[3], np.s_[2:7, ::-3, 5], np.s_[..., [1, 30, 2]], np.s_[8, 19, 32], np.s_[:0]):
        assert np.array_equal(ref[key], y[key])
    assert np.array_equal(ref.vindex[[1, 8], [2, 3], [4, 5]], y[[1, 8], [2, 3], [4, 5]])
    out = np.empty((2, 20, 33), "f4")
    assert np.array_equal(ref.read(np.s_[3:5], out=out), y[3:5])
    assert ref.quantization == quantization_of(kind)
    assert str(ref.quantization) in str(ref.explain())
    assert lake.check(), lake.check()


@both_stores
def test_what_is_stored_can_be_read(lake):
    x = field()
    for kind in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
        ref = lake.write(kind, x, quantize=kind, block_shape=(4, 8, 33))
        native = ref.read(np.s_[1:, ::2], native=True)
        assert native.dtype == dtype_of(kind)
        assert np.array_equal(native.astype("f4"), ref[1:, ::2])
        assert np.array_equal(ref.read(0, native=kind), ref.read(0, native=True))
    x[2, 3, 4] = np.nan
    ref = lake.write("int8", x, quantize="int8", block_shape=(4, 8, 33))
    codes, scales = ref.read(np.s_[2, 3:], native=True)
    want = ref[2, 3:]
    assert codes.dtype == np.int8
    assert scales.dtype == np.float32
    assert codes[0, 4] == 0
    assert np.isnan(want[0, 4])
    keep = ~np.isnan(want)
    assert np.array_equal((codes * scales)[keep], want[keep])
    assert ref.read((2, 3, 5), native=True).codes.shape == ()
    ref = lake.write("error", x, quantize={"error": 0.01}, block_shape=(4, 8, 33))
    integers = ref.read(np.s_[2, 3:], native=True)
    assert integers.dtype == np.int64
    assert integers[0, 4] == 0
    want = ref[2, 3:]
    assert np.array_equal((integers * ref.quantization.step).astype("f4")[keep], want[keep])
    ref = lake.write("plain", x, quantize={"relative": 0.01})
    assert bits_of(ref.read(native=True)).tolist() == bits_of(ref[...]).tolist()
    ref = lake.write("none", x)
    assert ref.quantization is None
    assert bits_of(ref.read(native=True)).tolist() == bits_of(x).tolist()


@both_stores
def test_half_of_a_split_tensor_is_half_of_its_bytes(lake):
    x = np.random.default_rng(0).standard_normal((64, 256, 128)).astype("f4")
    ref = lake.write("x", x, quantize="split")
    assert np.array_equal(ref[...], x)
    half = ref.read(native="bfloat16")
    plain = (bits_of(x) & 0xFFFF).reshape(x.shape) != 0x8000  # ties go away from zero
    assert np.array_equal(half[plain], x[plain].astype(ml_dtypes.bfloat16))
    assert ref.explain(native="bfloat16").n_bytes <= 0.55 * ref.explain().n_bytes
    assert np.array_equal(ref.read(np.s_[5:7, ::-9], native="bfloat16"), half[5:7, ::-9])
    assert np.array_equal(ref.read(native=True), x)


@both_stores
def test_lower_halves_are_not_fetched(lake, monkeypatch):
    asked = []
    read = Remote.read

    def counted(self, name, start, nbytes):
        asked.append(nbytes)
        return read(self, name, start, nbytes)

    monkeypatch.setattr(Remote, "read", counted)
    x = np.random.default_rng(0).standard_normal((64, 256, 128)).astype("f4")
    ref = lake.write("x", x, quantize="split")
    ref.read(0, native="bfloat16")  # the footers are known now
    asked.clear()
    ref.read(native="bfloat16")
    assert bool(asked) == lake.uri.startswith("s3://")
    assert sum(asked) <= 0.55 * ref.explain().n_bytes


def test_blocks_that_cannot_be_split_or_counted_are_stored_without_loss(lake):
    x = field().copy()
    x.view("u4")[0, 0, 0] = 0x7F800001  # a NaN that would be infinity in bfloat16
    ref = lake.write("split", x, quantize="split", block_shape=(3, 20, 33))
    assert np.array_equal(bits_of(ref[...]), bits_of(x))
    half = ref.read(native="bfloat16")
    assert np.isnan(half[0, 0, 0].astype("f4"))
    assert np.array_equal(half[0, 0, 1:], x[0, 0, 1:].astype(ml_dtypes.bfloat16))
    x = field() * 1e9
    x[:, :, 0] = 1
    ref = lake.write("error", x, quantize={"error": 1e-3})
    assert np.array_equal(ref[...], x)
    with pytest.raises(InvalidOptionError, match=r"bound 0.001 is finer than the precision of float32"):  # fmt: skip
        ref.read(native=True)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_appends_assignments_and_conversions_quantise_too(lake, kind):
    x = field()
    lake.write("x", x[:4], quantize=kind, block_shape=(4, 8, 33))
    ref = lake.write("x", x[4:], mode="append")
    assert ref.quantization == quantization_of(kind)
    assert (np.abs(ref[...].astype("f8") - x.astype("f8")) <= tolerance(kind, x)).all()
    ref[2, 3] = x[5, 6]
    want = ref[...]
    assert (
        np.abs(want[2, 3].astype("f8") - x[5, 6].astype("f8")) <= tolerance(kind, x[5, 6])
    ).all()
    ref = lake.convert("x", block_shape=(2, 20, 33))
    assert ref.quantization == quantization_of(kind)
    again = ref[...]
    assert np.allclose(again, want, rtol=0, atol=1e-6)
    ref = lake.convert("x", quantize="none")
    assert ref.quantization is None
    assert "+" not in ref.codec.partition("cast")[1]
    assert np.array_equal(ref[...], again)
    with lake.transaction() as changes:
        changes.write("y", x, quantize=kind)
    assert lake["y"].quantization == quantization_of(kind)


def test_rows_that_are_moved_stay_quantised(lake):
    x = field()
    for i in range(3):
        lake.write(
            "x", x[3 * i : 3 * i + 3], mode="append", quantize="int8", block_shape=(2, 8, 33)
        )
    want = lake["x"][...]
    lake.optimize()
    assert np.array_equal(lake["x"][...], want)
    assert lake.check(), lake.check()
    lake.purge("x", np.s_[2, 3])
    assert not lake["x"][2, 3].any()
    assert np.array_equal(lake["x"][4:], want[4:])


def test_an_append_keeps_the_quantisation(lake):
    lake.write("x", field(), quantize="int8")
    with pytest.raises(InvalidOptionError, match=r"has quantize='int8', and an append keeps it; leave out quantize='float16'"):  # fmt: skip
        lake.write("x", field(), mode="append", quantize="float16")
    lake.write("x", field(), mode="append", quantize="int8")
    lake.write("y", field())
    with pytest.raises(InvalidOptionError, match="has quantize='none'"):
        lake.write("y", field(), mode="append", quantize={"error": 1})
    lake.write("y", field(), mode="append", quantize="none")


def test_what_cannot_be_held_is_named(lake):
    x = field().copy()
    x[3, 4, 5] = 1e6
    with pytest.raises(InvalidTensorError, match=r"tensor 'x': element \(3, 4, 5\) is 1e\+06, beyond the greatest value of float16, 65504"):  # fmt: skip
        lake.write("x", x, quantize="float16", block_shape=(2, 3, 33))
    x[3, 4, 5] = np.inf
    with pytest.raises(InvalidTensorError, match=r"\(3, 4, 5\) is inf, which float8_e4m3fn does not have"):  # fmt: skip
        lake.write("x", x, quantize="float8_e4m3fn")
    x = x.astype("f8")
    x[3, 4, 5] = 1e300
    with pytest.raises(InvalidTensorError, match=r"\(3, 4, 5\) is 1e\+300, too large for the scale"):  # fmt: skip
        lake.write("x", x, quantize="int8")
    with pytest.raises(
        InvalidTensorError, match=r"of bfloat16.*such as quantize={'relative': 0.01}"
    ):
        lake.write("x", x, quantize="bfloat16")
    assert "x" not in lake


def test_what_has_no_quantisation_is_refused(lake):
    for x in (np.arange(9), np.ones(4, bool), np.ones(3, "c8"), np.zeros(2, "M8[s]")):
        with pytest.raises(InvalidOptionError, match="is not for dtype"):
            lake.write("x", x, quantize="int8")
    with pytest.raises(InvalidOptionError, match="a sparse layout rounds values one by one"):
        lake.write("x", field(), layout="csr", quantize="int8")
    with pytest.raises(
        InvalidOptionError, match=r"give quantize=\{'error': 0.001\} and codec='zstd'"
    ):
        lake.write("x", field(), codec="error(0.001)+zstd")
    with pytest.raises(InvalidOptionError, match=r"step int8 quantises; give quantize='int8' and codec='zstd'"):  # fmt: skip
        lake.write("x", field(), codec="int8+zstd")
    ref = lake.write("x", field(), quantize="int8", codec="delta(-1)+zstd")
    assert ref.codec == "int8+delta(-1)+zstd"
    with pytest.raises(
        InvalidOptionError, match="native='float16' is not what is stored of tensor 'x'"
    ):
        ref.read(native="float16")
    with pytest.raises(InvalidOptionError, match="native=3 is not True, False or the name"):
        ref.read(native=3)
    with pytest.raises(InvalidOptionError, match="native=True is not for a read with out"):
        ref.read(native=True, out=np.empty(ref.shape, "i1"))


def test_chunks_of_the_fill_value(lake):
    x = np.full((8, 8), 2.5, "f4")
    x[5:, 5:] = 1
    for kind in KINDS:
        if not quantized_block.keeps_fill(np.float32(2.5), quantization_of(kind)):
            continue
        ref = lake.write(
            "x", x, quantize=kind, fill_value=2.5, block_shape=(4, 4), mode="overwrite"
        )
        assert ref.nnz == 16
        assert np.allclose(ref[...], x, atol=0.05)
        native = ref.read(native=True)
        found = native.codes * native.scales if kind == "int8" else native.astype("f4")
        assert np.allclose(found * (ref.quantization.step or 1), x, atol=0.05)
    ref = lake.write("scalar", np.float32(3.5), quantize="int8")
    assert abs(ref[()] - 3.5) < 0.02
    assert lake.write("empty", np.zeros((0, 3), "f4"), quantize="int8")[...].shape == (0, 3)


def test_a_fill_value_that_a_bound_is_too_fine_for_keeps_its_bits(lake):
    """Its error came from Python: the empty bound of a codec without the step."""
    x = np.full((4, 4), 0.1)
    x[0, 0] = 7.25
    ref = lake.write("x", x, quantize={"error": 1e-106}, fill_value=0.1, block_shape=(2, 2))
    assert ref[...].tobytes() == x.tobytes()
    lake.purge("x", region=(slice(0, 1), slice(0, 1)))
    assert (lake["x"][...] == 0.1).all()


def decoded(x, kind, block):
    """What a layout gives back of an array, without a table."""
    layout = layout_of("ftsf")
    options = WriteOptions(quantize=kind, block_shape=block, codec="shuffle+zstd")
    spec = new_spec("x", ArraySource(x, x.shape, x.dtype), options)
    rows = [
        row
        for part in layout.pieces(spec, select(..., x.shape).box)
        for row in layout.encode(x[part.slices()], part.lo, spec)
    ]
    selection = select(..., x.shape)
    out = layout.new_result(spec, selection, False)
    if rows:
        layout.decode(data_batch(spec, range(len(rows)), rows), spec, selection, out)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_the_absolute_bound_holds_for_all_bits(dtype, data):
    x = data.draw(floats(dtype))
    bound = data.draw(st.sampled_from([1e-300, 1e-9, 1e-3, 0.1, 3.0, 1e30, 8e307]))
    y = decoded(x, {"error": bound}, tuple(max(1, n // 2) for n in x.shape))
    finite = np.isfinite(x)
    with np.errstate(invalid="ignore", over="ignore"):
        far, near = x.astype("f8"), y.astype("f8")
    assert (np.abs(near[finite] - far[finite]) <= bound).all()
    assert np.array_equal(bits_of(y[~finite]), bits_of(x[~finite]))


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_codes_are_within_half_a_scale(dtype, data):
    x = data.draw(floats(dtype))
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(x)
        wide = np.where(finite, np.abs(x.astype("f8")), 0)
    if wide.max() > 1e38:
        return  # an error, which has a test of its own
    y = decoded(x, "int8", x.shape)
    scale = np.maximum(wide.max(axis=-1, keepdims=True) / 127 * (1 + 1e-6), 2.0**-149)
    half_ulp = np.abs(
        np.nextafter(wide.astype("f4") if dtype == "float32" else wide, np.inf) - wide
    )
    digits = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}[
        dtype
    ]
    tiny = {
        "float16": 2.0**-24,
        "bfloat16": 2.0**-133,
        "float32": 2.0**-149,
        "float64": 2.0**-1074,
    }[dtype]
    room = scale / 2 + half_ulp + np.maximum((wide + scale) * digits, tiny)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(y.astype("f8") - x.astype("f8"))
    assert (off[finite] <= np.broadcast_to(room, x.shape)[finite]).all()
    assert np.array_equal(bits_of(y[~finite]), bits_of(x[~finite]))


@given(hnp.arrays(np.uint32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9)))
def test_split_is_exact_for_all_bits(bits):
    x = bits.view("f4")
    assert np.array_equal(bits_of(decoded(x, "split", x.shape)), bits_of(x))
