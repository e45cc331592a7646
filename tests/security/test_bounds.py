"""Files that are small until they are unpacked: refused by what they say of themselves, before memory is taken."""

import gzip
import io
import zipfile

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import tifffile
import zarr

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest import limits as bounds
from tensorlake_spark.spark.ingest.arrays.array_files import opened
from tensorlake_spark.spark.ingest.records import matrix_market
from tensorlake_spark.spark.ingest.records.matrices import elements_of, header_of

pytestmark = pytest.mark.usefixtures("little_memory")

HEAD = b"%%MatrixMarket matrix coordinate real general\n"


def whole(path):
    """Return coordinates and values of all elements, which come some at a time."""
    pieces = list(elements_of(path))
    return tuple(np.concatenate(arrays, axis=-1) for arrays in zip(*pieces, strict=True))


BOTH = pytest.mark.parametrize("use", [header_of, whole])


def read(path, member=""):
    with opened(str(path), member) as stored:
        return stored.read((0,) * len(stored.shape), stored.shape)


def packed(path, text):
    path.write_bytes(gzip.compress(text))
    return str(path)


def save(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            stream = io.BytesIO()
            np.save(stream, array)
            archive.writestr(f"{name}.npy", stream.getvalue())
    return str(path)


def csr(shape, **others):
    good = {"indptr": [0, 1, 2], "indices": [0, 1], "data": [1.0, 2.0], "format": b"csr"}
    return {**good, "shape": shape, **others}


@BOTH
def test_a_shape_is_short(tmp_path, use):
    path = save(tmp_path / "x.npz", **csr(np.zeros(8 << 20, np.int64)))
    with pytest.raises(tl.InvalidTensorError, match=r"its shape has \d+ bytes, and no array has"):
        use(path)


@BOTH
def test_no_member_of_a_sparse_matrix_is_larger_than_it_may(tmp_path, monkeypatch, use):
    path = save(tmp_path / "x.npz", **csr([2, 2], other=np.zeros(1 << 20)))
    monkeypatch.setenv(bounds.MAX_BYTES, str(1 << 20))
    with pytest.raises(
        tl.InvalidTensorError, match=r"other\.npy .* more than 1048576; .*MAX_BYTES"
    ):
        use(path)


def test_diagonals_cost_what_they_hold(tmp_path):
    members = {"data": [[1, 0, 3]], "offsets": [-1], "format": b"dia"}
    path = save(tmp_path / "x.npz", **members, shape=[1 << 40, 3])
    coords, values = whole(path)
    assert coords.tolist() == [[1, 3], [0, 2]]
    assert values.tolist() == [1, 3]


@BOTH
@pytest.mark.parametrize(
    "lines", [b"%" + b"x" * (2 << 20), b"\n".join([b"%" + b"x" * 1000] * 3000)], ids=["one", "many"]
)
def test_a_header_has_an_end(tmp_path, monkeypatch, use, lines):
    monkeypatch.setattr(bounds, "LINE_BYTES", 1 << 20)
    monkeypatch.setattr(matrix_market, "_HEAD_BYTES", 2 << 20)
    path = packed(tmp_path / "x.mtx.gz", HEAD + lines + b"\n2 2 1\n1 1 1\n")
    with pytest.raises(tl.InvalidTensorError, match=r"more than \d+ bytes"):
        use(path)


def test_comments_and_blank_lines_of_a_header(tmp_path):
    text = HEAD + b"% one\n\n  % two\n \n2 3 1\n\n2 3 1.5\n"
    path = packed(tmp_path / "x.mtx.gz", text)
    assert header_of(path)[:2] == ((2, 3), np.float64)
    coords, values = whole(path)
    assert (coords.tolist(), values.tolist()) == ([[1], [2]], [1.5])


def test_a_line_of_elements_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_market, "LINE_BYTES", 1 << 20)
    monkeypatch.setattr(matrix_market, "_CHUNK", 1 << 20)
    path = packed(tmp_path / "x.mtx.gz", HEAD + b"2 2 1\n1 1 1" + b" " * (3 << 20) + b"\n")
    with pytest.raises(tl.InvalidTensorError, match="a line has more than 1048576 bytes"):
        whole(path)


def test_blanks_are_looked_at_once(tmp_path):
    path = packed(tmp_path / "x.mtx.gz", HEAD + b"2 2 1\n" + b" " * (1 << 20) + b"x\n")
    # Looked at again from every one of them, they would take hours.
    with pytest.raises(tl.InvalidTensorError, match="is not an element of the matrix"):
        whole(path)


@BOTH
def test_an_array_is_refused_by_its_sizes(tmp_path, monkeypatch, use):
    text = b"%%MatrixMarket matrix array real general\n30 30\n" + b"0\n" * 900
    path = packed(tmp_path / "x.mtx.gz", text)
    monkeypatch.setenv(bounds.MAX_BYTES, "7200")
    use(path)
    monkeypatch.setenv(bounds.MAX_BYTES, "7199")
    with pytest.raises(tl.InvalidTensorError, match="7200 bytes unpacked, more than 7199"):
        use(path)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_elements_of_a_matrix_come_some_at_a_time(tmp_path, monkeypatch, symmetry):
    """However many there are; no more than the head says are read, and no fewer are taken for all."""
    monkeypatch.setattr(matrix_market, "_CHUNK", 1000)
    head = HEAD.replace(b"general", symmetry.encode())
    lines = [b"%d %d %d\n" % (k, k // 2 + 1, k) for k in range(1, 301)]
    lines[150:150] = [b"\n", b" \r\n"]

    def file(count, lines):
        return packed(tmp_path / "x.mtx.gz", head + b"300 300 %d\n" % count + b"".join(lines))

    path = file(300, lines)
    pieces = list(elements_of(path))
    assert max(len(values) for _, values in pieces) < 250
    coords, values = whole(path)
    found = scipy.sparse.coo_array((values, tuple(coords)), (300, 300))
    assert (found != scipy.io.mmread(path, spmatrix=False)).nnz == 0
    assert found.nnz == len(values) == (300 if symmetry == "general" else 598)
    with pytest.raises(tl.InvalidTensorError, match="it has more than the 299 elements"):
        whole(file(299, lines))
    with pytest.raises(tl.InvalidTensorError, match="it has 300 of the 301 elements"):
        whole(file(301, lines))
    wrong = [*lines[:280], b"301 1 5\n", *lines[281:]]
    with pytest.raises(tl.InvalidTensorError, match="Line 283: Row index out of bounds"):
        whole(file(300, wrong))


def test_a_page_of_a_tiff_is_refused_by_its_pixels(tmp_path, monkeypatch):
    x = np.zeros((3, 100, 100), np.uint8)
    tifffile.imwrite(tmp_path / "x.tif", x, compression="zlib", photometric="minisblack")
    tifffile.imwrite(tmp_path / "plain.tif", x, photometric="minisblack")
    monkeypatch.setenv(bounds.MAX_PIXELS, "9999")
    with pytest.raises(tl.InvalidTensorError, match=r"more than 9999 pixels; .*MAX_PIXELS"):
        read(tmp_path / "x.tif")
    assert read(tmp_path / "plain.tif").shape == x.shape, "nothing of it is unpacked"
    monkeypatch.setenv(bounds.MAX_PIXELS, "10000")
    assert read(tmp_path / "x.tif").shape == x.shape
    monkeypatch.setenv(bounds.MAX_BYTES, "9999")
    with pytest.raises(tl.InvalidTensorError, match="a page has 10000 bytes"):
        read(tmp_path / "x.tif")


def test_a_tile_of_a_tiff_is_no_larger_than_an_image_may_be(tmp_path):
    """The default of both bounds: a tile of 256 MiB for a page of 256 pixels."""
    path = tmp_path / "x.tif"
    tifffile.imwrite(
        path, np.zeros((16, 16), np.uint8), tile=(16384, 16384), compression="zlib", metadata=None
    )
    with pytest.raises(tl.InvalidTensorError, match="more than 89478485 pixels"):
        read(path)


def test_a_strip_unpacks_to_what_its_tags_say(tmp_path):
    path = tmp_path / "x.tif"
    x = np.zeros((16 << 10, 16 << 10), np.uint8)
    tifffile.imwrite(path, x[:2048], compression="zlib", rowsperstrip=2048, metadata=None)
    with tifffile.TiffFile(path, mode="r+") as file:
        for name in ("ImageLength", "RowsPerStrip"):
            file.pages[0].tags[name].overwrite(16)
    with pytest.raises(tl.InvalidTensorError):
        read(path)


@pytest.mark.parametrize("name", ["x.h5", "x.zarr"])
def test_a_chunk_is_refused_by_its_size(tmp_path, monkeypatch, name):
    path = tmp_path / name
    if name == "x.h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.zeros((64, 64)), chunks=(32, 32), compression="gzip")
        member = "x"
    else:
        array = zarr.open_array(str(path), mode="w", shape=(64, 64), chunks=(32, 32), dtype="f8")
        array[...] = 0
        member = ""
    monkeypatch.setenv(bounds.MAX_BYTES, "8192")
    assert read(path, member).shape == (64, 64)
    monkeypatch.setenv(bounds.MAX_BYTES, "8191")
    with pytest.raises(
        tl.InvalidTensorError, match="a chunk has 8192 bytes unpacked, more than 8191"
    ):
        read(path, member)


LIES = {
    "beyond": {"indptr": [0, 1 << 30, 2]},
    "falls": {"indptr": [0, 2, 1, 2], "shape": [3, 3]},
    "short": {"indptr": [0, 2]},
    "negative": {"indptr": [0, -1, 2]},
    "late": {"indptr": [1, 1, 2]},
    "left over": {"indptr": [0, 1, 1]},
    "no integers": {"indptr": [0.0, 1.0, 2.0]},
    "half": {"indices": [0.5, 1.0]},
    "column": {"indices": [0, 1 << 40]},
    "before": {"indices": [0, -1]},
    "no indptr": {"indptr": []},
    "nested": {"indptr": [[0, 1, 2]]},
}


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "gcxs"])
@pytest.mark.parametrize("lie", LIES)
def test_what_would_be_read_outside_of_a_buffer(tmp_path, form, lie):
    """SciPy and the package sparse trust these, and the process dies, or memory that is not theirs is stored."""
    members = csr([2, 2], format=form.encode())
    if form == "bsr":
        members["data"] = np.ones((2, 1, 1))
    if form == "gcxs":
        members |= {"fill_value": 0.0, "compressed_axes": [0]}
    path = save(tmp_path / "x.npz", **members)
    assert len(whole(path)[1]) == 2
    save(tmp_path / "x.npz", **members | LIES[lie])
    with pytest.raises(tl.InvalidTensorError, match=r"x\.npz cannot be read"):
        whole(path)


@pytest.mark.parametrize(
    "others", [{"compressed_axes": [0, 0]}, {"compressed_axes": [2]}, {"shape": [1]}, {"shape": [2, 1]}]
)  # fmt: skip
def test_axes_that_the_package_sparse_did_not_write(tmp_path, others):
    members = csr([2, 2], fill_value=0.0, compressed_axes=[0], format=b"gcxs")
    with pytest.raises(tl.InvalidTensorError, match=r"x\.npz cannot be read"):
        whole(save(tmp_path / "x.npz", **members | others))


@pytest.mark.parametrize("members", [{"format": [1]}, {"format": b"lil"}, {"shape": 3}, {"format": b"coo"}])  # fmt: skip
def test_members_that_do_not_go_together_are_an_error_of_the_file(tmp_path, members):
    with pytest.raises(tl.InvalidTensorError, match=r"x\.npz cannot be read"):
        whole(save(tmp_path / "x.npz", **csr([2, 2]) | members))
