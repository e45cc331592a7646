"""Files of an ingestion that are made to harm: pickles, bombs, headers that promise more than there is."""

import gzip
import io
import pickle
import struct
import warnings
import zipfile
import zlib

import h5py
import numpy as np
import pytest
import scipy.sparse
import zarr
from PIL import Image

import tensorlake_spark as tl
from tensorlake_spark.jobs import ingest
from tensorlake_spark.jobs.config import read_config
from tensorlake_spark.spark.ingest import limits as bounds
from tensorlake_spark.spark.ingest.arrays.array_files import members_of, opened
from tensorlake_spark.spark.ingest.records.matrices import elements_of, header_of
from tensorlake_spark.spark.ingest.text_lines import _unpack, find_line, first_line

pytestmark = pytest.mark.usefixtures("little_memory")


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return open, (str(self.mark), "w")


def read(path, member=""):
    with opened(str(path), member) as stored:
        return stored.read((0,) * len(stored.shape), stored.shape)


@pytest.fixture
def trap(tmp_path):
    """An array of an object that leaves a mark, and a look that it did not."""
    mark = tmp_path / "mark"
    array = np.array([Trap(mark)], object)
    yield array
    assert not mark.exists(), "something was unpickled"


def test_the_trap_works(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "mark"))).close()
    assert (tmp_path / "mark").exists()


def test_no_pickle_of_numpy_is_opened(tmp_path, trap):
    np.save(tmp_path / "x.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "x.npz", x=trap)
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(trap))
    for name, member in (("x.npy", ""), ("x.npz", "x"), ("bare.npy", "")):
        with pytest.raises(tl.InvalidTensorError, match="cannot be read") as caught:
            read(tmp_path / name, member)
        # NumPy advises to load it unsafely, by an option that is none of ours.
        assert "allow_pickle" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "member", "says"),
    [
        ("text.npy", "", "it is not a .npy file, as its name says"),
        ("empty.npy", "", "it is not a .npy file, as its name says"),
        (
            "cut.npy",
            "",
            "it was cut off: its header promises 800 B of elements, and 400 B are there",
        ),
        ("head.npy", "", "EOF: reading array header"),
        ("text.npz", "x", "File is not a zip file"),
        ("array.npz", "x", "File is not a zip file"),
        ("x.npz", "z", "there is no 'z' in it; its arrays are x, y"),
    ],
)
def test_what_is_wrong_with_a_file_of_numpy_is_said_in_plain_words(tmp_path, name, member, says):
    np.save(tmp_path / "x.npy", np.arange(100.0))
    whole = (tmp_path / "x.npy").read_bytes()
    np.savez(tmp_path / "x.npz", x=np.arange(3), y=np.arange(4))
    for bad, content in {
        "text.npy": b"hello world", "empty.npy": b"", "cut.npy": whole[:-400], "head.npy": whole[:20],
        "text.npz": b"hello world", "array.npz": whole,
    }.items():  # fmt: skip
        (tmp_path / bad).write_bytes(content)
    with pytest.raises(tl.InvalidTensorError, match=says):
        read(tmp_path / name, member)


def test_no_pickle_of_a_sparse_matrix_is_opened(tmp_path, trap):
    good = scipy.sparse.csr_array(np.eye(2))
    parts = {"indices": good.indices, "indptr": good.indptr, "shape": good.shape, "format": b"csr"}
    for name in ("data", "indices", "shape", "format"):
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{**parts, "data": good.data, name: trap})
        with pytest.raises((tl.InvalidTensorError, ValueError)):
            header_of(str(path)), list(elements_of(str(path)))
    np.savez(tmp_path / "coo.npz", coords=trap, data=good.data, shape=[2, 2], fill_value=0.0)
    with pytest.raises(tl.InvalidTensorError):
        list(elements_of(str(tmp_path / "coo.npz")))


def test_objects_of_hdf5_and_zarr_are_no_tensors(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.array([b"a", b"bc"], h5py.special_dtype(vlen=bytes))
        file["good"] = np.arange(3)
    assert members_of(str(tmp_path / "x.h5")) == ["good"]
    store = tmp_path / "x.zarr"
    # Written by hand, for a package that writes pickles would have to be trusted with them.
    store.mkdir()
    (store / ".zarray").write_text(
        '{"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "compressor": null, '
        '"fill_value": null, "order": "C", "filters": [{"id": "pickle"}]}'
    )
    (store / "0").write_bytes(pickle.dumps([Trap(tmp_path / "mark")]))
    assert int(zarr.__version__.split(".")[0]) >= 2
    for use in (lambda: read(store), lambda: _write(tmp_path, store)):
        with pytest.raises(tl.TensorLakeError):
            use()
    assert not (tmp_path / "mark").exists()


def _write(tmp_path, store):
    with opened(str(store)) as stored:
        if stored.dtype.hasobject:
            tl.open(tmp_path / "lake").write("x", np.empty(stored.shape, stored.dtype))


def test_a_header_may_not_promise_more_than_the_file_has(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    )
    (tmp_path / "x.npy").write_bytes(head.getvalue() + bytes(64))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", head.getvalue() + bytes(64))
    for name, member in (("x.npy", ""), ("x.npz", "x")):
        with pytest.raises(tl.InvalidTensorError, match="cannot be read"):
            read(tmp_path / name, member)


def bomb_npz(path, member, nbytes):
    """An archive with a member of zeros that is large only when it is unpacked."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(member, "w", force_zip64=True) as stream,
    ):
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "|u1", "fortran_order": False, "shape": (nbytes,)}
        )
        for _ in range(nbytes >> 20):
            stream.write(bytes(1 << 20))


def test_an_archive_is_refused_by_the_size_that_it_says(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    bomb_npz(path, "x.npy", 64 << 20)
    assert path.stat().st_size < 1 << 20
    assert read(path, "x").nbytes == 64 << 20, "below the bound it is an array like any other"
    monkeypatch.setenv(bounds.MAX_BYTES, str(16 << 20))
    with pytest.raises(tl.InvalidTensorError, match=r"unpacks to \d+, more than 16777216"):
        read(path, "x")
    bomb_npz(tmp_path / "m.npz", "data.npy", 64 << 20)
    with pytest.raises(tl.InvalidTensorError, match="more than 16777216"):
        list(elements_of(str(tmp_path / "m.npz")))
    monkeypatch.setenv(bounds.MAX_BYTES, "much")
    with pytest.raises(tl.InvalidOptionError, match="TENSORLAKE_MAX_BYTES='much'"):
        read(path, "x")


def test_an_archive_that_lies_about_its_size_gives_no_more_than_it_said(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    bomb_npz(path, "x.npy", 64 << 20)
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, directory + 24, 1 << 20)
    path.write_bytes(data)
    monkeypatch.setenv(bounds.MAX_BYTES, str(16 << 20))
    with pytest.raises(tl.InvalidTensorError):
        read(path, "x")


def png(width, height):
    """A PNG of so many pixels and few bytes: a valid head, and no pixels."""

    def chunk(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")  # fmt: skip


@pytest.mark.parametrize("side", [10_000, 100_000])
def test_an_image_is_refused_by_its_pixels(tmp_path, monkeypatch, side):
    (tmp_path / "x.png").write_bytes(png(side, side))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tl.InvalidTensorError, match=r"more than 89478485 pixels; .*MAX_PIXELS"):
            read(tmp_path / "x.png")


def test_the_bound_of_an_image_can_be_raised_and_lowered(tmp_path, monkeypatch):
    before = Image.MAX_IMAGE_PIXELS
    image = np.zeros((100, 100), np.uint8)
    Image.fromarray(image).save(tmp_path / "x.png")
    assert np.array_equal(read(tmp_path / "x.png"), image)
    monkeypatch.setenv(bounds.MAX_PIXELS, "9998")
    with pytest.raises(tl.InvalidTensorError, match="more than 9998 pixels"):
        read(tmp_path / "x.png")
    monkeypatch.setenv(bounds.MAX_PIXELS, "10000")
    assert np.array_equal(read(tmp_path / "x.png"), image)
    assert before == Image.MAX_IMAGE_PIXELS, "the limit of the rest of the program stays"


def test_a_line_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "LINE_BYTES", 1 << 20)
    text = b"1" * (8 << 20)
    (tmp_path / "x.tns.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(tmp_path / "x.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", b"a\n" + text)
    packed, zipped = str(tmp_path / "x.tns.gz"), str(tmp_path / "x.csv.zip")
    for use in (
        lambda: first_line(packed),
        lambda: find_line(packed, "2"),
        lambda: list(_unpack([(zipped, "x.csv")])),
    ):
        with pytest.raises(tl.InvalidTensorError, match="a line has more than 1048576 bytes"):
            use()


@pytest.mark.parametrize("size", ["9" * 12, "9" * 18, "9" * 40, "-1"])
def test_a_matrix_may_not_promise_elements(tmp_path, size):
    path = tmp_path / "x.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n3 3 {size}\n1 1 1.0\n")
    with pytest.raises(tl.InvalidTensorError):
        list(elements_of(str(path)))


@pytest.mark.parametrize(
    "text",
    ["table: !!python/object/apply:os.system ['touch MARK']", "!!python/name:os.system",
     "table: !!python/object/new:subprocess.Popen [[touch, MARK]]"],
)  # fmt: skip
def test_yaml_makes_no_objects(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(tl.InvalidOptionError, match=r"x\.yaml is not YAML"):
        read_config(ingest.parser, str(tmp_path / "x.yaml"))
    assert not (tmp_path / "MARK").exists()


def test_yaml_of_many_aliases_stays_small(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 12)]
    (tmp_path / "x.yaml").write_text("\n".join(lines))
    lines.append("axis: *a11")
    (tmp_path / "x.yaml").write_text("\n".join(lines))
    with pytest.raises(tl.InvalidOptionError, match="more than 100000 values, or its aliases"):
        read_config(ingest.parser, str(tmp_path / "x.yaml"))
    (tmp_path / "x.yaml").write_text("axis: &a [x, *a]")
    with pytest.raises(tl.InvalidOptionError, match="too deep"):
        read_config(ingest.parser, str(tmp_path / "x.yaml"))
    (tmp_path / "x.yaml").write_text("id: &a x\nmode: append\naxis: [*a, *a]")
    assert read_config(ingest.parser, str(tmp_path / "x.yaml"))["axis"] == ["x", "x"]
