"""Arrays of ``.npz`` files, read by parts; NumPy, which reads them whole, is the oracle."""

import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.arrays.array_files import opened

SAVE = {"stored": np.savez, "packed": np.savez_compressed}


@pytest.mark.parametrize("how", SAVE)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7, 5, 4), (1, 1, 9), (12,), (), (0, 3), (3, 0, 2)])
def test_any_box_in_any_order(tmp_path, how, order, shape):
    x = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), order=order)
    SAVE[how](tmp_path / "x.npz", other=np.zeros(3), x=x)

    @settings(max_examples=20, deadline=None)
    @given(
        st.lists(
            st.tuples(*(st.tuples(st.integers(0, n), st.integers(0, n)) for n in shape)), max_size=4
        )
    )
    def check(boxes):
        with opened(str(tmp_path / "x.npz"), "x") as stored:
            assert (stored.shape, stored.dtype) == (x.shape, x.dtype)
            for box in boxes:
                lo, hi = [min(ends) for ends in box], [max(ends) for ends in box]
                want = x[tuple(map(slice, lo, hi))]
                np.testing.assert_array_equal(stored.read(lo, hi), want)

    check()


@pytest.mark.parametrize(("how", "order", "is_whole"), [
    ("stored", "C", False), ("packed", "C", True), ("stored", "F", True),
])  # fmt: skip
def test_executors_share_what_is_stored_as_it_is(tmp_path, how, order, is_whole):
    SAVE[how](tmp_path / "x.npz", x=np.ones((4, 5), order=order))
    with opened(str(tmp_path / "x.npz"), "x") as stored:
        assert stored.is_whole == is_whole


@pytest.mark.parametrize("how", SAVE)
def test_bands_take_little_memory(tmp_path, how):
    SAVE[how](tmp_path / "x.npz", x=np.ones((64, 1 << 20), np.uint8))
    tracemalloc.start()
    try:
        with opened(str(tmp_path / "x.npz"), "x") as stored:
            total = sum(int(stored.read((k, 0), (k + 1, 1 << 20)).sum()) for k in range(64))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert total == 64 << 20


def read_by_rows(path):
    with opened(str(path), "x") as stored:
        for k in range(50):
            stored.read((k, 0), (k + 1, 1000))


@pytest.mark.parametrize("how", SAVE)
def test_a_changed_byte_is_found_by_whoever_reads_the_end(tmp_path, how):
    path = tmp_path / "x.npz"
    SAVE[how](path, x=np.random.default_rng(0).integers(0, 256, (50, 1000), np.uint8))
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("x.npy")
    content = bytearray(path.read_bytes())
    content[info.header_offset + info.compress_size // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(tl.InvalidTensorError, match=r"x\.npz::x cannot be read"):
        read_by_rows(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_header_that_promises_more_than_the_member_has(tmp_path, compression):
    np.savez(tmp_path / "x.npz", x=np.ones(100))
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        content = archive.read("x.npy")
    with zipfile.ZipFile(tmp_path / "cut.npz", "w", compression) as archive:
        archive.writestr("x.npy", content[:-8])
        archive.writestr("more.npy", content)
    path = str(tmp_path / "cut.npz")
    says = r"cut off: its header promises 800 bytes.*792"
    with pytest.raises(tl.InvalidTensorError, match=says), opened(path, "x"):
        pass
