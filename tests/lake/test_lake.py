"""The Python door: write, read, change, travel; and one mistake at every turn."""

import logging

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.files.compacting.rewrite import live_batches
from tensorlake_spark.layouts.ftsf import Ftsf
from tensorlake_spark.layouts.testing.laws import DTYPES, bits
from tensorlake_spark.tensor.spec import dtype_of

both_stores = pytest.mark.both_stores  # here in `make test`, too; `make test-s3` takes all of them


def data_files(lake):
    filesystem, base = lake._storage.place
    found = filesystem.get_file_info(pafs.FileSelector(base, allow_not_found=True))
    return sorted(info.base_name for info in found if info.extension == "parquet")


@both_stores
def test_a_path_without_a_table_is_an_empty_lake(lake):
    assert list(lake) == []
    assert len(lake) == 0
    assert lake.version is None
    assert "x" not in lake
    with pytest.raises(tl.TensorNotFoundError, match="no table at"):
        lake["x"]
    with pytest.raises(tl.TableNotFoundError):
        tl.open(lake.uri, create=False)
    assert "tensors=0" in repr(lake)


FLOAT8 = [name for name in vars(ml_dtypes) if name.startswith("float8_") and name not in DTYPES]


@pytest.mark.parametrize("name", [*DTYPES, *FLOAT8, "datetime64[25s]", "timedelta64[h]"])
def test_every_dtype_comes_back_bit_by_bit(lake, name):
    dtype = dtype_of(name)
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        x = rng.integers(0, 2, (37, 5)).astype(bool)
    else:
        x = rng.integers(0, 256, 37 * 5 * dtype.itemsize, np.uint8).view(dtype).reshape(37, 5)
    ref = lake.write("x", x, block_shape=(8, 3))
    assert ref.dtype == dtype
    assert bits(ref[:]) == bits(x)
    assert bits(np.asarray(tl.open(lake.uri)["x"])) == bits(x)
    x[:] = np.zeros((), dtype)
    assert lake.write("x", x, mode="append").nnz == ref.nnz, "chunks without a bit are not stored"
    assert bits(lake["x"][37:]) == bits(x)
    tl.estimate(x)


def test_byte_order_strides_and_signed_zeros(lake):
    x = np.array([[0.0, -0.0, np.nan], [np.inf, 1e-310, -1.0]])
    x.view(np.uint64)[0, 2] = 0x7FF8DEADBEEF0001
    assert bits(lake.write("a", x.astype(">f8"))[:]) == bits(x)
    assert bits(lake.write("b", x.T)[:]) == bits(x.T)
    assert bits(lake.write("c", x[:, ::-2])[:]) == bits(x[:, ::-2])
    assert bits(lake.write("d", np.full((3, 3), -0.0))[:]) == bits(np.full((3, 3), -0.0))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5, 4, 3, 2, 1, 2, 3, 2, 2)])
def test_odd_shapes(lake, shape):
    x = np.random.default_rng(1).standard_normal(shape)
    ref = lake.write("x", x, block_shape=tuple(min(2, max(1, n)) for n in shape))
    assert ref.shape == shape
    np.testing.assert_array_equal(ref[...], x)
    if x.ndim == 9:
        np.testing.assert_array_equal(ref[1, ..., 0, :], x[1, ..., 0, :])
        ref[0, ..., 1:, 1] = 5.0
        x[0, ..., 1:, 1] = 5.0
        np.testing.assert_array_equal(ref[...], x)


def test_a_new_table_asks_no_more_of_readers_and_writers_than_it_needs(lake):
    lake.write("x", np.zeros(3))
    table = lake["x"]._snapshot.table
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert not protocol.reader_features
    assert not protocol.writer_features
    indexed = table.metadata().configuration["delta.dataSkippingStatsColumns"]
    assert indexed == "id,seq,lo,hi,nnz"


@both_stores
def test_what_can_be_written(lake, photos, tmp_path):
    np.save(tmp_path / "x.npy", photos)
    memory_map = np.load(tmp_path / "x.npy", mmap_mode="r")

    class Like:
        shape, dtype = photos.shape, photos.dtype

        def __getitem__(self, key):
            return photos[key]

    sources = {
        "array": photos,
        "map": memory_map,
        "like": Like(),
        "slabs": iter([photos[:5], photos[5:6], photos[6:]]),
        "ref": lake.write("first", photos),
    }
    for name, source in sources.items():
        ref = lake.write(name, source, block_shape=(4, 3, 32, 96))
        np.testing.assert_array_equal(ref[:], photos, err_msg=name)
    np.testing.assert_array_equal(lake.write("list", [[1, 2], [3, 4]])[:], [[1, 2], [3, 4]])
    assert lake.write("number", 3.5)[()] == 3.5


def test_slabs_along_another_axis(lake):
    x = np.arange(60).reshape(3, 20)
    ref = lake.write("x", (x[:, a : a + 3] for a in range(0, 20, 3)), axis=1, block_shape=(2, 4))
    np.testing.assert_array_equal(ref[:], x)


@both_stores
def test_modes(lake, photos):
    lake.write("x", photos)
    with pytest.raises(tl.TensorExistsError, match="mode='overwrite'"):
        lake.write("x", photos)
    np.testing.assert_array_equal(lake.write("x", photos[:2], mode="overwrite")[:], photos[:2])
    ref = lake.write("x", photos[2:7], mode="append")
    np.testing.assert_array_equal(ref[:], photos[:7])
    ref = lake.write("new", photos[:1], mode="append")
    assert ref.shape == (1, *photos.shape[1:])
    with pytest.raises(tl.InvalidOptionError, match="did you mean 'append'"):
        lake.write("x", photos, mode="apend")


@both_stores
def test_appends_along_every_axis(lake):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 99, (3, 4, 2))
    ref = lake.write("x", x, block_shape=(2, 3, 2))
    for axis in (0, 1, -1, 0, 1, 2):
        shape = list(x.shape)
        shape[axis] = int(rng.integers(1, 4))
        more = rng.integers(0, 99, shape)
        x = np.concatenate([x, more], axis)
        ref = lake.write("x", more, mode="append", axis=axis)
        np.testing.assert_array_equal(ref[:], x)
        np.testing.assert_array_equal(ref[1:, ::-1, 1], x[1:, ::-1, 1])
    ref = lake.write("x", iter([x[:1], x[1:2]]), mode="append")
    np.testing.assert_array_equal(ref[:], np.concatenate([x, x[:2]]))


@pytest.mark.parametrize(
    ("more", "axis", "says"),
    [
        (np.zeros((2, 5), "i4"), 0, "axis 1 has length 5, not 4"),
        (np.zeros((2,), "i4"), 0, "both need 2 axes"),
        (np.zeros((2, 4), "f4"), 0, "dtype float32"),
        (np.zeros((2, 4), "i4"), 2, "no axis 2"),
        ([np.zeros((1, 4), "i4"), np.zeros((1, 3), "i4")], 0, "slab 1 has shape"),
    ],
)
def test_an_append_that_does_not_fit_changes_nothing(lake, more, axis, says):
    before = lake.write("x", np.ones((3, 4), "i4"))
    files = data_files(lake)
    more = iter(more) if isinstance(more, list) else more  # slabs come once
    with pytest.raises(tl.InvalidTensorError, match=says):
        lake.write("x", more, mode="append", axis=axis)
    assert lake["x"].version == before.version
    assert data_files(lake) == files, "no orphan is left"


@pytest.mark.parametrize(
    ("data", "options", "error"),
    [
        (np.array([object()]), {}, tl.UnsupportedDtypeError),
        (np.zeros(2, "i4,f4"), {}, tl.UnsupportedDtypeError),
        (np.array(["a"]), {}, tl.UnsupportedDtypeError),
        ([[1], [2, 3]], {}, tl.InvalidTensorError),
        (iter([]), {}, tl.InvalidTensorError),
        (np.zeros(3), {"layout": "fstf"}, tl.InvalidOptionError),
        (np.zeros(3), {"codec": "lz5"}, tl.InvalidOptionError),
        (np.zeros(3), {"block_shape": (1, 1)}, tl.InvalidTensorError),
        (np.zeros(3), {"block_shape": (1,), "chunk_rank": 1}, tl.InvalidOptionError),
        (np.zeros(3), {"chunk_rank": 2}, tl.InvalidOptionError),
        (np.zeros(3), {"attrs": []}, tl.InvalidOptionError),
        (np.zeros(3), {"axes": ("a", "b")}, tl.InvalidTensorError),
        (np.zeros(3), {"axes": 5}, tl.InvalidTensorError),
        (np.zeros(3), {"mode": None}, tl.InvalidOptionError),
        (np.zeros(3), {"axis": "x"}, tl.InvalidOptionError),
        (np.zeros(3), {"axis": 1.5}, tl.InvalidOptionError),
        (np.zeros(3), {"transaction": "a"}, tl.InvalidOptionError),
        (np.zeros(3), {"transaction": ("a", "7")}, tl.InvalidOptionError),
        (np.zeros(3), {"attrs": {"k": object()}}, tl.InvalidTensorError),
        (np.zeros(3, "i4"), {"fill_value": "x"}, tl.InvalidTensorError),
        (np.zeros(3, "u1"), {"fill_value": 300}, tl.InvalidTensorError),
        (np.zeros(3, "i1"), {"fill_value": np.nan}, tl.InvalidTensorError),
    ],
)
def test_what_cannot_be_written_leaves_nothing(lake, data, options, error):
    with pytest.raises(error):
        lake.write("x", data, **options)
    assert list(lake) == []
    assert data_files(lake) == []


def test_wrong_ids(lake):
    lake.write("photos", np.zeros(3))
    with pytest.raises(tl.TensorNotFoundError, match="did you mean 'photos'"):
        lake["fotos"]
    with pytest.raises(KeyError):
        lake.delete("nope")
    for call in (lake.__getitem__, lake.delete, lake.convert):
        with pytest.raises(tl.TensorNotFoundError, match=r"no tensor 5 .* it has 'photos'"):
            call(5)
    with pytest.raises(tl.InvalidTensorError, match="segment"):
        lake.write("a//b", np.zeros(3))


@both_stores
def test_indexing_of_references(lake, photos):
    ref = lake.write("x", photos, axes=("image", "channel", "y", "x"), block_shape=(2, 3, 16, 96))
    for key in (3, (..., 5), np.s_[2:9:3, :, ::-2], np.s_[[4, 1, 1]], np.s_[:, None, 0, [3, 1], 5]):
        np.testing.assert_array_equal(ref[key], photos[key])
    np.testing.assert_array_equal(
        ref.oindex[[5, 0], 1, :, [7, 3]], photos[np.ix_([5, 0], [1], range(64), [7, 3])][:, 0]
    )
    np.testing.assert_array_equal(ref.vindex[[1, 2], 0, [5, 6], 7], photos[[1, 2], 0, [5, 6], 7])
    np.testing.assert_array_equal(ref.isel(image=slice(3, 5), y=7), photos[3:5, :, 7])
    np.testing.assert_array_equal(ref.slice("image=3:5, y=7"), photos[3:5, :, 7])
    np.testing.assert_array_equal(ref.slice("3:5, ..., ::-1"), photos[3:5, ..., ::-1])
    with pytest.raises(tl.InvalidSliceError, match=r"5 is not text.*ref\[5\]"):
        ref.slice(5)
    assert isinstance(ref[0, 0, 0, 0], np.uint8)
    assert len(ref) == 12
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        ref[12]
    with pytest.raises(tl.InvalidSliceError, match="did you mean 'image'"):
        ref.isel(imag=0)


def test_fill_values_are_not_stored_and_come_back(lake):
    x = np.full((8, 8), 7.5)
    x[5, 5] = 1
    ref = lake.write("x", x, fill_value=7.5, block_shape=(4, 4))
    assert ref.nnz == 16, "one chunk of four"
    np.testing.assert_array_equal(ref[:], x)
    ref[5, 5] = 7.5
    assert ref.nnz == 0
    np.testing.assert_array_equal(ref[:], np.full((8, 8), 7.5))
    assert ref.fill_value == 7.5


@pytest.mark.parametrize(
    "key",
    [np.s_[3], np.s_[2:9, 1], np.s_[::3, :, ::-2], np.s_[[4, 1], :, 5:9], np.s_[..., 3], np.s_[:0], np.s_[-1, -1, -1, -1]],
)  # fmt: skip
def test_assignment(lake, photos, key):
    x = photos.copy()
    ref = lake.write("x", x, block_shape=(2, 3, 16, 96))
    values = np.random.default_rng(0).integers(0, 256, x[key].shape, np.uint8)
    ref[key] = values
    x[key] = values
    np.testing.assert_array_equal(ref[:], x)
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][:], x)
    ref[key] = 9
    x[key] = 9
    np.testing.assert_array_equal(ref[:], x)


@both_stores
def test_assignment_by_oindex_and_vindex(lake):
    x = np.arange(48).reshape(6, 8)
    ref = lake.write("x", x, block_shape=(2, 3))
    ref.oindex[[0, 5], [1, 7]] = [[1, 2], [3, 4]]
    x[np.ix_([0, 5], [1, 7])] = [[1, 2], [3, 4]]
    ref.vindex[[2, 3], [2, 3]] = -1
    x[[2, 3], [2, 3]] = -1
    np.testing.assert_array_equal(ref[:], x)


def data_rows(ref):
    """The rows of a tensor's elements: ``(seq, crc)`` by lower corner."""
    batches = [live_batches(ref._snapshot, path) for path in ref._snapshot.files.path]
    rows = pa.Table.from_batches(b for found in batches for b in found)
    rows = rows.filter(pc.greater(rows["nnz"], 0)).to_pylist()
    return {tuple(r["lo"].values())[: ref.ndim]: (r["seq"], r["crc"]) for r in rows}


@both_stores
def test_assignment_rewrites_only_the_files_that_hold_its_chunks(lake, photos, monkeypatch):
    blocks = (1, 3, 16, 96)
    for start in range(0, 12, 3):
        lake.write("x", photos[start : start + 3], mode="append", block_shape=blocks)
    assert len(data_files(lake)) == 4
    ref = lake["x"]
    live, version, rows = set(ref._snapshot.files.path), ref.version, data_rows(ref)
    encoded, encode = [], Ftsf.encode

    def counted(self, values, lo, spec):
        encoded.append((tuple(lo), values.shape))
        return encode(self, values, lo, spec)

    monkeypatch.setattr(Ftsf, "encode", counted)
    ref[4, :, 20:40] = 0
    touched = [(4, 0, 16, 0), (4, 0, 32, 0)]
    assert sorted(encoded) == [(lo, blocks) for lo in touched], "two chunks of 48"
    now = lake["x"]
    assert now.version == ref.version == version + 1
    assert len(live - set(now._snapshot.files.path)) == 1, "one file of four left the table"
    after = data_rows(now)
    assert sorted(lo for lo in after if after[lo] != rows[lo]) == touched
    assert len(after) == len(rows) == 48
    want = photos.copy()
    want[4, :, 20:40] = 0
    np.testing.assert_array_equal(now[:], want)


def test_assignment_fills_gaps_after_appends_off_the_grid(lake):
    ref = lake.write("x", np.zeros((5, 5)), block_shape=(2, 2))
    ref = lake.write("x", np.zeros((4, 5)), mode="append")
    ref = lake.write("x", np.zeros((9, 3)), mode="append", axis=1)
    want = np.zeros((9, 8))
    rng = np.random.default_rng(0)
    for _ in range(12):
        a, b = sorted(rng.integers(0, 10, 2))
        c, d = sorted(rng.integers(0, 9, 2))
        value = rng.standard_normal((min(b, 9) - a, min(d, 8) - c)) if b > a and d > c else 0
        if np.size(value):
            ref[a:b, c:d] = value
            want[a:b, c:d] = value
        np.testing.assert_array_equal(ref[:], want)


def test_assignment_that_does_not_fit(lake):
    ref = lake.write("x", np.zeros((3, 4), "i4"))
    with pytest.raises(tl.InvalidTensorError, match="values of shape"):
        ref[0] = np.zeros(5, "i4")
    with pytest.raises(tl.InvalidTensorError, match="without loss"):
        ref[0] = np.zeros(4)
    with pytest.raises(tl.InvalidTensorError, match="values of shape"):
        ref[0] = [1, 2]
    with pytest.raises(IndexError):
        ref[7] = 0
    assert lake["x"].version == ref.version


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", 300), ("u1", -1), ("u1", np.int64(300)), ("u1", 2**70), ("u1", [1, 2, 256]), ("i4", np.nan), ("i4", 1.5),
        ("f8", 1 + 2j), ("f2", 1e30), ("i4", "7"), ("i4", [[1], [1, 2]]), ("i4", np.array([1, 2**40, 3])),
        ("u1", ml_dtypes.bfloat16(300)), ("bfloat16", 1e39), ("float8_e4m3fn", 1000), ("c8", 1e300),
    ],
)  # fmt: skip
def test_a_value_that_the_dtype_does_not_hold(lake, layout, dtype, value):
    """NumPy stores another one, of an array without a word."""
    ref = lake.write("x", np.zeros((3, 3), dtype), layout=layout)
    with pytest.raises(tl.InvalidTensorError, match=r"'x'"):
        ref[0] = value
    assert lake["x"].version == ref.version


@pytest.mark.parametrize(
    ("dtype", "value", "found"),
    [("u1", 255, 255), ("u1", 7.0, 7), ("u1", [1, 2, 255], [1, 2, 255]), ("f4", 0.1, np.float32(0.1)), ("f4", np.inf, np.inf), ("?", 1, True),
     ("M8[D]", "2026-01-02", np.datetime64("2026-01-02")), ("c8", 2, 2), ("i8", np.array([1, 2, 3], "u1"), [1, 2, 3])],
)  # fmt: skip
def test_a_value_that_the_dtype_holds(lake, dtype, value, found):
    ref = lake.write("x", np.zeros((3, 3), dtype))
    ref[0] = value
    np.testing.assert_array_equal(lake["x"][0], np.broadcast_to(found, 3))


class Liar:
    """Says that it is an array of one kind, and gives others."""

    shape, dtype = (4, 4), np.dtype("f8")

    def __init__(self, given):
        self.given = given

    def __getitem__(self, key):
        return self.given


@pytest.mark.parametrize(
    "given",
    [np.full((4, 4), 7), np.full((4, 4), 7, "f4"), np.zeros((2, 2)), np.zeros(4), np.float64(1)],
)
@pytest.mark.parametrize("layout", ["auto", "ftsf", "bsgs"])
def test_an_array_like_that_lies_is_refused(lake, given, layout):
    with pytest.raises(tl.InvalidTensorError, match="Liar says that it has shape"):
        lake.write("x", Liar(given), layout=layout, codec="raw" if layout == "ftsf" else "auto")
    assert list(lake) == []
    assert data_files(lake) == []


@both_stores
def test_delete_and_the_tensors_beside(lake, photos):
    lake.write("a", photos)
    lake.write("b", photos[:2])
    lake.delete("a")
    assert list(lake) == ["b"]
    np.testing.assert_array_equal(lake["b"][:], photos[:2])
    np.testing.assert_array_equal(lake.write("a", photos[3:4])[:], photos[3:4])


@both_stores
def test_time_travel(lake):
    first = lake.write("x", np.zeros(3))
    second = lake.write("x", np.ones(3), mode="append")
    old = tl.open(lake.uri, version=first.version)
    np.testing.assert_array_equal(old["x"][:], np.zeros(3))
    np.testing.assert_array_equal(first[:], np.zeros(3), err_msg="a reference stays at its version")
    assert old.version == first.version
    assert second.version > first.version
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        old.write("y", np.zeros(3))
    with pytest.raises(tl.InvalidOptionError, match="versions 0 to"):
        tl.open(lake.uri, version=99)
    with pytest.raises(tl.InvalidOptionError, match="exclude each other"):
        tl.open(lake.uri, version=1, timestamp="2026-01-01")
    with pytest.raises(tl.InvalidOptionError, match="is not of the form"):
        tl.open(lake.uri, timestamp="yesterday")
    later = tl.open(lake.uri, timestamp="2126-01-01T00:00:00Z")
    np.testing.assert_array_equal(later["x"][:], [0, 0, 0, 1, 1, 1])


def test_attributes(lake):
    ref = lake.write("x", np.zeros(3), attrs={"unit": "K"})
    assert ref.attrs == {"unit": "K"}
    ref.update_attrs({"by": ["me"], "unit": "C"})
    assert lake["x"].attrs == {"unit": "C", "by": ["me"]}
    with pytest.raises(TypeError):
        ref.attrs["unit"] = "F"
    with pytest.raises(tl.InvalidTensorError, match="not JSON"):
        ref.update_attrs({"k": float("nan")})
    with pytest.raises(tl.InvalidOptionError, match="attrs=5 is not a mapping"):
        ref.update_attrs(5)
    assert lake["x"].attrs == {"unit": "C", "by": ["me"]}


@both_stores
def test_the_catalog(lake, photos):
    lake.write("g/a", photos, axes=("i", "c", "y", "x"))
    lake.write("g/b", photos[:1].astype(ml_dtypes.bfloat16))
    table = lake.catalog()
    assert table["id"].tolist() == ["g/a", "g/b"] == list(lake)
    assert table["dtype"].tolist() == ["uint8", "bfloat16"]
    assert table["shape"].tolist() == [photos.shape, (1, *photos.shape[1:])]
    assert (table["stored_bytes"] > 0).all()


def test_how_references_show_themselves(lake):
    ref = lake.write("x", np.ones((3, 4)), attrs={"<b>": "&"}, axes=("y", "x"))
    assert repr(ref).startswith("TensorRef('x', shape=(3, 4), dtype=float64, layout='ftsf'")
    assert "&lt;b&gt;" in ref._repr_html_()
    assert "<table" in lake._repr_html_()
    assert "more" not in lake._repr_html_()


def test_a_notebook_shows_the_first_tensors_of_many(lake):
    with lake.transaction() as tx:
        for place in range(1200):
            tx.write(f"x/{place:04d}", np.arange(place % 2 + 1))
    shown = lake._repr_html_()
    assert [f"x/{place:04d}" in shown for place in (59, 60)] == [True, False]
    assert shown.endswith("1,140 more tensors; lake.catalog() has them all")
    assert len(lake.catalog()) == 1200


@both_stores
def test_a_repeated_batch_changes_nothing_and_says_so(lake, caplog):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    first = lake.write("x", np.zeros(3), mode="append", transaction=("job", 1))
    assert "committed already" not in caplog.text
    again = lake.write("x", np.ones(3), mode="append", transaction=("job", 1))
    assert again.shape == (3,)
    assert again.version == first.version
    assert "transaction ('job', 1) is committed already; nothing is written" in caplog.messages
    assert lake.write("x", np.ones(3), mode="append", transaction=("job", 2)).shape == (6,)


@both_stores
def test_the_plan_names_only_what_is_needed(lake):
    x = np.arange(100 * 64 * 8, dtype=np.int32).reshape(100, 64, 8)
    for i in range(0, 100, 10):
        lake.write("x", x[i : i + 10], mode="append", block_shape=(1, 64, 8) if i == 0 else None)
    ref = lake["x"]
    plan = ref.explain(np.s_[30:40])
    assert plan.n_files == 1
    assert plan.total_files == 10
    assert "1 read, 9 skipped of 10" in str(plan)
    assert "lo.d0 < 40 AND hi.d0 > 30" in str(plan)
    assert ref.explain("30:40").n_rows == plan.n_rows
    assert ref.explain(np.s_[:0]).n_files == 0


@pytest.mark.local_disk  # a hundred commits; test_s3.py has the same with four
def test_a_slice_opens_only_the_files_that_hold_it(lake):
    x = np.arange(100 * 32, dtype=np.int64).reshape(100, 32)
    for i in range(100):
        lake.write("x", x[i : i + 1], mode="append", block_shape=(1, 32) if i == 0 else None)
    ref = lake["x"]
    plan = ref.explain(np.s_[30:40])
    assert plan.n_files == 10
    for path in set(ref._snapshot.files.path) - {f.path for f in plan.files}:
        lake._storage.delete(path)
    np.testing.assert_array_equal(ref[30:40], x[30:40])
    with pytest.raises(tl.MissingDataError, match="in the Delta log but not there"):
        ref[29:31]
