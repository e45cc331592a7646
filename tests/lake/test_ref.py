"""One tensor of a lake: what a result is read into, and blocks; NumPy and Zarr are the oracles."""

import array
import gc
import mmap
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest
import zarr

import tensorlake_spark as tl
from tensorlake_spark.delta.files.compacting.rewrite import boxes
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import LAYOUTS
from tensorlake_spark.layouts.testing.laws import DTYPES
from tensorlake_spark.tensor.spec import dtype_of

both_stores = pytest.mark.both_stores
BLOCKED = [name for name, layout in LAYOUTS.items() if layout.has_blocks]
UNBLOCKED = [name for name in LAYOUTS if name not in BLOCKED]


def counted(shape, dtype="<i4"):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


# ---------------------------------------------------------------- read(out=)


@both_stores
def test_reading_into_an_array(lake, photos):
    ref = lake.write("x", photos)
    out = np.empty((4, *photos.shape[1:]), np.uint8)
    assert ref.read(np.s_[2:6], out) is out
    np.testing.assert_array_equal(out, photos[2:6])
    np.testing.assert_array_equal(ref.read(np.s_[6:2:-1], out), photos[6:2:-1])
    sparse = lake.write("z", np.zeros((4, 4)), fill_value=0)
    np.testing.assert_array_equal(sparse.read(out=np.ones((4, 4))), np.zeros((4, 4)))


KEYS = [
    np.s_[...], np.s_[3], np.s_[:, 2:5], np.s_[::-2, None, 1], np.s_[4, 5, 6], np.s_[4, 5, 6, None],
    np.s_[[5, 1, 1]], np.s_[2, :, [0, 3]], np.s_[..., ::-1], np.s_[:0], np.s_[:, [[1, 2], [0, 0]]],
    np.s_[None, ::3, -1, ::2],
]  # fmt: skip


@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "csr"])
def test_every_key_reads_into_an_array_and_into_a_view_with_gaps(lake, layout):
    x = counted((7, 8, 9)) % 5
    x[:3] = 0  # chunks that are not stored
    for codec in ("delta(-1)+zstd", "shuffle+zstd") if layout == "ftsf" else ("zstd",):
        ref = lake.write("x", x, layout=layout, codec=codec, mode="overwrite")
        for key in KEYS:
            want = x[key]
            out = np.full(want.shape, 99, x.dtype)
            ref.read(key, out=out)
            np.testing.assert_array_equal(out, want)
            wide = np.full((*(2 * n for n in want.shape), 3), 99, x.dtype)
            gaps = wide[(*(slice(None, None, -2) for _ in want.shape), 1)]
            gaps = gaps if want.ndim else wide[1:2].reshape(())
            ref.read(key, out=gaps)
            np.testing.assert_array_equal(gaps, want)
            assert np.count_nonzero(wide == 99) >= wide.size - want.size, "and nothing beside"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64", "bool"])
def test_reading_into_buffers(lake, tmp_path, dtype):
    x = (counted((5, 6)) * 7 % 31).astype(dtype)
    ref = lake.write("x", x, block_shape=(2, 4))
    want, key = x[1:4], np.s_[1:4]
    raw = bytearray(want.nbytes)
    assert ref.read(key, out=raw) is raw
    assert raw == want.tobytes()
    raw.append(1)  # nothing holds its memory any more
    for typed in (np.zeros_like(want), np.zeros(want.size, dtype)):
        view = memoryview(typed)
        assert ref.read(key, out=view) is view
        assert typed.tobytes() == want.tobytes()
    numbers = array.array({"bool": "B"}.get(dtype, want.dtype.char), bytes(want.nbytes))
    assert ref.read(key, out=numbers).tobytes() == want.tobytes()
    with open(tmp_path / "file", "w+b") as file:
        file.truncate(want.nbytes)
        with mmap.mmap(file.fileno(), want.nbytes) as mapped:
            ref.read(key, out=mapped)
        assert file.read() == want.tobytes()
    mapped = np.memmap(tmp_path / "file", dtype, "r+", shape=want.shape)
    np.testing.assert_array_equal(ref.read(np.s_[2:5], out=mapped), x[2:5])


def test_reading_into_shared_memory(lake):
    x = counted((40, 30))
    ref = lake.write("x", x)
    shared = SharedMemory(create=True, size=x.nbytes)
    try:
        ref.read(out=shared.buf[: x.nbytes])
        assert bytes(shared.buf[: x.nbytes]) == x.tobytes()
    finally:
        shared.close()
        shared.unlink()


@pytest.mark.parametrize("name", DTYPES)
def test_bytes_take_every_dtype(lake, name):
    """Also those that no buffer can name, such as bfloat16."""
    dtype = dtype_of(name)
    x = np.arange(24).astype("u1").view("bool") if name == "bool" else None
    x = np.arange(48, dtype="u1").repeat(dtype.itemsize).view(dtype)[:24] if x is None else x > 0
    ref = lake.write("x", x.reshape(4, 6), layout="ftsf")
    assert ref.read(out=bytearray(x.nbytes)) == x.tobytes()
    assert ref.read(3, out=memoryview(bytearray(6 * dtype.itemsize))) == x[18:].tobytes()


@pytest.mark.parametrize(
    ("out", "says"),
    [
        (np.empty((3, 6), "<i4"), "out has shape (3, 6) and dtype int32; the result wants an array of shape "
         "(5, 6) and dtype int32, or a flat buffer of 120 bytes"),
        (np.empty((5, 6), "<u4"), "out has shape (5, 6) and dtype uint32"),
        (np.empty((5, 6), ">i4"), "out has shape (5, 6) and dtype >i4"),
        (np.empty(120, "u1"), "out has shape (120,) and dtype uint8"),
        (bytearray(119), "out has shape (119,) and dtype uint8; the result wants"),
        (array.array("f", bytes(120)), "out has shape (30,) and dtype float32"),
        (memoryview(bytearray(240))[::2], "out has shape (120,) and dtype uint8"),
        (memoryview(np.empty((6, 5), "<i4")), "out has shape (6, 5) and dtype int32"),
        (bytes(120), "out, of type bytes, is read-only; the result wants an array of shape (5, 6)"),
        (memoryview(bytes(120)), "out, of type memoryview, is read-only"),
        (np.broadcast_to(np.int32(0), (5, 6)), "out, of type ndarray, is read-only"),
        ([0] * 30, "out is of type list, whose memory NumPy cannot use"),
        ("text", "out is of type str, whose memory NumPy cannot use"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_into(lake, out, says):
    ref = lake.write("x", counted((5, 6)))
    with pytest.raises(tl.InvalidTensorError) as error:
        ref.read(out=out)
    assert says in str(error.value)


def test_chunks_are_decoded_straight_into_it(lake, monkeypatch):
    """What Python and NumPy allocate: with `out` less by the whole result."""
    alone = ThreadPoolExecutor(1)  # several threads may have more or less at a time
    monkeypatch.setattr("tensorlake_spark.threads._pool_of", lambda name, count: alone)
    x = np.random.default_rng(0).integers(0, 256, (16, 512, 512), np.uint8)
    ref = lake.write("x", x, codec="zstd", block_shape=(1, 128, 512))

    def peak(**options):
        gc.collect()
        tracemalloc.start()
        try:
            ref.read(**options)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    out, raw = np.empty_like(x), bytearray(x.nbytes)
    backwards = np.empty((1, 512, 512, 16), np.uint8)
    ref.read(out=out)  # what is kept for good is there now
    without = peak()
    assert without > x.nbytes
    for given in (out, raw):
        assert peak(out=given) < without - 0.9 * x.nbytes
    moved = backwards.transpose(0, 3, 1, 2)
    assert peak(key=np.s_[None, ::-1], out=moved) < without - 0.9 * x.nbytes
    np.testing.assert_array_equal(moved[0], x[::-1])
    alone.shutdown()


def test_rows_that_were_lost_leave_fill_and_not_what_was_there(lake):
    """Where nobody checks: an array that is read into again and again shows nothing old."""
    x = counted((4, 4)) + 1
    lake.write("x", x[:2], block_shape=(2, 4))
    ref = lake.write("x", x[2:], mode="append")
    (path,) = (
        p for p, lo in zip(ref._snapshot.files.path, ref._snapshot.files.lo[:, 0]) if lo == 2
    )
    unchecked = tl.TensorRef(ref._snapshot, ref._meta, verify=False)
    kept = type(ref._snapshot).kept
    out = np.full((4, 4), 99, x.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            type(ref._snapshot),
            "kept",
            lambda self, p: np.zeros(1, bool) if p == path else kept(self, p),
        )
        unchecked.read(out=out)
    np.testing.assert_array_equal(out[2:], 0)


# ---------------------------------------------------------------- blocks


def dense(found):
    return found.todense() if isinstance(found, tl.SparseTensor) else found


@both_stores
@pytest.mark.parametrize("layout", BLOCKED)
def test_blocks_are_those_of_zarr(lake, layout):
    x = counted((10, 7)) * (counted((10, 7)) % 3 == 0)
    oracle = zarr.zeros(x.shape, chunks=(4, 3), dtype=x.dtype)
    oracle[...] = x
    ref = lake.write("x", x, layout=layout, block_shape=(4, 3))
    for key in (0, (0, 1), (-1, -1), np.s_[:, 2], np.s_[1:], np.s_[..., 1:9], np.s_[2:1], ..., ()):
        np.testing.assert_array_equal(dense(ref.blocks[key]), oracle.blocks[key])
    for number, key in enumerate([(0, 1), (-1, -1), np.s_[1:, 0], np.s_[..., -2:], np.s_[2:1]]):
        values = counted(oracle.blocks[key].shape) + 100 * number
        ref.blocks[key] = values
        oracle.blocks[key] = values
        np.testing.assert_array_equal(dense(ref[...]), oracle[...])
    ref.blocks[1, 1] = 0
    oracle.blocks[1, 1] = 0
    np.testing.assert_array_equal(dense(lake["x"][...]), oracle[...])
    with pytest.raises(
        tl.InvalidKeyError, match="block 3 is out of bounds for axis 0 with 3 blocks"
    ):
        ref.blocks[3]
    with pytest.raises(
        tl.InvalidTensorError, match=r"cannot be assigned to a selection of shape \(4, 3\)"
    ):
        ref.blocks[0, 0] = np.zeros((4, 4), x.dtype)


@pytest.mark.parametrize("layout", BLOCKED)
def test_blocks_of_an_appended_tensor_are_the_boxes_of_its_rows(lake, layout):
    x = counted((11, 4)) + 1
    lake.write("x", x[:5], layout=layout, block_shape=(4, 4))
    ref = lake.write("x", x[5:], mode="append")
    want = [x[0:4], x[4:5], x[5:9], x[9:11]]
    for number, block in enumerate(want):
        np.testing.assert_array_equal(dense(ref.blocks[number]), block)
    stored = boxes(ref._snapshot, "x", select(..., x.shape))
    corners = sorted((a, b) for _, lo, hi in stored for (a, _), (b, _) in zip(lo, hi))
    assert corners == [(0, 4), (4, 5), (5, 9), (9, 11)]
    np.testing.assert_array_equal(dense(ref.blocks[-3:-1]), x[4:9])
    ref.blocks[1] = 0
    np.testing.assert_array_equal(dense(ref[...]), np.concatenate([x[:4], 0 * x[4:5], x[5:]]))


def test_a_block_of_a_tensor_without_axes(lake):
    ref = lake.write("x", np.float64(7))
    assert ref.blocks[...] == ref.blocks[()] == 7
    ref.blocks[...] = 8
    assert ref[()] == 8


@pytest.mark.parametrize("layout", UNBLOCKED)
def test_a_layout_without_blocks_says_so(lake, layout):
    ref = lake.write("x", np.eye(5), layout=layout)
    says = (
        f"layout {layout} of tensor 'x' has no blocks; index it with ref\\[...\\], or give it blocks with "
        "lake.convert\\('x', layout='bsgs'\\)"
    )
    with pytest.raises(tl.InvalidKeyError, match=says):
        ref.blocks[0]
    with pytest.raises(tl.InvalidKeyError, match=says):
        ref.blocks[0] = 1
    assert lake.convert("x", layout="bsgs", block_shape=(2, 2)).blocks[0, 0].shape == (2, 2)
