"""``.npz`` files of sparse arrays by parts: SciPy, which reads them whole, is the oracle."""

import itertools
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from sparse_files import dense, random, saved

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.records import matrices
from tensorlake_spark.spark.ingest.records.matrices import elements_of, header_of
from tensorlake_spark.spark.ingest.records.sparse_npz import open_sparse


def save_cube(path, order):
    """Write coordinates as the package sparse does; return what they are, dense."""
    cube = random("coo", np.int16, (24, 35)).toarray().reshape(4, 6, 35)
    coords = np.asarray(np.nonzero(cube), order=order)
    np.savez(path, coords=coords, data=cube[tuple(coords)], shape=cube.shape, fill_value=0)
    return cube


FORMS = [
    "coo", "coo packed", "csr", "csr packed", "csc", "bsr", "bsr packed", "dia", "dia packed",
    "dia fortran", "cube C", "cube F",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_an_npz_file_are_the_whole(tmp_path, monkeypatch, form):
    path = str(tmp_path / "x.npz")
    want = save_cube(path, form[-1]) if form.startswith("cube") else saved(path, form)
    monkeypatch.setattr(matrices, "_PART_BYTES", 700)
    monkeypatch.setattr(matrices, "_ROWS", 17)
    shape, dtype, parts = header_of(path)
    assert (shape, dtype) == (want.shape, want.dtype)
    assert len(parts) > 3
    assert parts[0][0] == 0
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    pieces = [list(elements_of(path, *part)) for part in parts]
    width = max(len(values) for some in pieces for _, values in some)
    with open_sparse(path) as found:
        assert width <= max(17, found.width)
        assert parts[-1][1] == found.count
    np.testing.assert_array_equal(dense(itertools.chain(*pieces), shape, dtype), want)
    np.testing.assert_array_equal(dense(elements_of(path), shape, dtype), want)


def test_a_large_file_is_read_in_little_memory(tmp_path):
    count = 4_000_000
    places = np.arange(count)
    matrix = scipy.sparse.coo_array((np.ones(count), (places, places)), (count, count))
    path = str(tmp_path / "x.npz")
    scipy.sparse.save_npz(path, matrix, compressed=False)
    tracemalloc.start()
    try:
        assert sum(len(values) for _, values in elements_of(path)) == count
        assert tracemalloc.get_traced_memory()[1] < 32 << 20, "of 64 MB in the file"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", ["coo", "csr packed"])
def test_a_changed_byte_is_found_by_whoever_reads_the_end(tmp_path, monkeypatch, form):
    path = tmp_path / "x.npz"
    saved(path, form)
    monkeypatch.setattr(matrices, "_PART_BYTES", 700)
    parts = header_of(str(path)).parts
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("data.npy")
    content = bytearray(path.read_bytes())
    content[info.header_offset + 200 + info.compress_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(tl.InvalidTensorError, match=r"x\.npz cannot be read"):
        list(elements_of(str(path), *parts[-1]))


def test_an_array_that_ends_too_early(tmp_path):
    path = tmp_path / "x.npz"
    saved(path, "coo")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content[:-5] if name == "data.npy" else content)
    with pytest.raises(tl.InvalidTensorError, match="its data end before the last one"):
        list(elements_of(str(path)))
