"""Which samples become tiles, and how they are taken: arrays of any library, files, Arrow."""

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.large_samples import (
    LargeSample,
    NumpyFile,
    large_ones,
    opened,
    tile_bytes_of,
)
from tensorlake_spark.datasets.types.base import Place

BYTES = tl.types.Tensor("uint8")
PLACE = Place("scan", 3)


class Lazy:
    """An array of some other library: its parts are read when they are asked for."""

    def __init__(self, array):
        self.array, self.asked = array, []
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, key):
        self.asked.append(key)
        return self.array[key]


def test_samples_above_the_bound_are_large():
    values = [
        np.zeros(100, "u1"),
        None,
        np.zeros(101, "u1"),
        [1, 2],
        Lazy(np.zeros((20, 10), "u1")),
    ]
    assert list(large_ones(values, BYTES, 100)) == [2, 4]
    assert large_ones(np.zeros((3, 101), "u1"), BYTES, 100).keys() == {0, 1, 2}
    assert large_ones(np.zeros((3, 100), "u1"), BYTES, 100) == {}


def test_the_bound_is_of_what_is_stored():
    assert list(large_ones([np.zeros(60, "u1")], tl.types.Tensor("int16"), 100)) == [0]
    points = np.zeros((20, 3), "f8")
    assert large_ones([points], tl.types.PointCloud(), 300) == {}


def test_images_of_pillow_are_arrays():
    raw = tl.types.Image("raw")
    image = PIL.Image.new("RGB", (50, 40), (1, 2, 3))
    found = large_ones([image, PIL.Image.new("1", (90, 70), 1)], raw, 1000)
    assert found[0].shape == (40, 50, 3)
    assert found[1].max() == 255


def test_arrays_of_arrow_are_decoded_where_one_is_large():
    column = BYTES.encode([np.zeros(10, "u1"), np.arange(200, dtype="u1")], "scan")
    assert large_ones(column, BYTES, 1000) == {}
    ((number, array),) = large_ones(column, BYTES, 100).items()
    assert number == 1
    assert array.tolist() == list(range(200))


def test_files_of_numpy_are_read_part_by_part(tmp_path):
    array = np.arange(60, dtype=">i4").reshape(3, 4, 5)
    np.save(tmp_path / "x.npy", np.asfortranarray(array))
    file = NumpyFile(tmp_path / "x.npy")
    assert (file.shape, file.nbytes) == ((3, 4, 5), 240)
    assert np.array_equal(file[1:, 2], array[1:, 2])
    assert np.array_equal(np.asarray(file), array)
    (found, other) = opened([str(tmp_path / "x.npy"), None], BYTES, PLACE)
    assert isinstance(found, NumpyFile)
    assert other is None


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00v\x00", b"not an array"])
def test_a_file_that_is_none_is_an_error_that_names_the_sample(tmp_path, content):
    (tmp_path / "bad.npy").write_bytes(content)
    with pytest.raises(
        tl.InvalidSampleError, match=r"column 'scan', sample 4: expected a file of NumPy.*bad\.npy"
    ):
        opened([np.zeros(1, "u1"), tmp_path / "bad.npy"], BYTES, PLACE)
    with pytest.raises(tl.InvalidSampleError, match=r"sample 3.*No such file"):
        opened([tmp_path / "gone.npy"], BYTES, PLACE)


def test_pickles_and_archives_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    with open(tmp_path / "z.npy", "wb") as file:
        np.savez(file, a=np.zeros(2))
    for name in ("o.npy", "z.npy"):
        with pytest.raises(tl.InvalidSampleError, match=name):
            opened([tmp_path / name], BYTES, PLACE)


def test_what_has_no_elements_is_refused():
    tiled = tl.types.Tiled((200,), "uint8")
    with pytest.raises(tl.InvalidSampleError, match=r"sample 4.*tiles of another dataset"):
        opened([None, tiled], BYTES, PLACE)
    column = BYTES.encode([np.zeros(3, "u1"), None, tiled], "scan")
    for given in (column, pa.chunked_array([column])):
        with pytest.raises(tl.InvalidSampleError, match=r"sample 5.*tiles of another dataset"):
            opened(given, BYTES, PLACE)
    assert len(opened(column[:2], BYTES, PLACE)) == 2


def test_a_large_sample_is_checked_before_its_first_part_is_read():
    kind = tl.types.Tensor("int32", (None, 4))
    good = LargeSample(Lazy(np.ones((5, 4), "i2")), kind, 1, PLACE)
    assert good.dtype == np.int32
    assert good[1:3, :2].tolist() == [[1, 1], [1, 1]]
    lazy = Lazy(np.ones((5, 3), "i4"))
    with pytest.raises(
        tl.InvalidSampleError,
        match=r"column 'scan', sample 4: expected .*, got int32 of shape \(5, 3\)",
    ):
        LargeSample(lazy, kind, 1, PLACE)
    assert lazy.asked == []
    said = r"expected dtype int32, got int64 of shape \(5, 4\); cast it"
    with pytest.raises(tl.InvalidSampleTypeError, match=said):
        LargeSample(Lazy(np.ones((5, 4), "i8")), kind, 1, PLACE)
    with pytest.raises(tl.InvalidSampleTypeError, match="cast it to uint8"):
        LargeSample(np.ones((5, 4), "i8"), tl.types.Image("raw"), 1, PLACE)


def test_a_raw_image_of_one_channel_is_flat():
    pixels = np.arange(12, dtype="u1").reshape(3, 4, 1)
    flat = LargeSample(pixels, tl.types.Image("raw"), 0, PLACE)
    assert flat.shape == (3, 4)
    assert np.array_equal(flat[:, 1:], pixels[:, 1:, 0])


@pytest.mark.parametrize("kind", [tl.types.Image("raw", "uint16"), tl.types.Tensor("uint16")])
def test_the_order_of_bytes_is_no_other_dtype(kind, tmp_path):
    pixels = np.arange(3000, dtype=">u2").reshape(50, 60)
    np.save(tmp_path / "scan.npy", pixels)
    ds = tl.dataset(tmp_path / "ds", {"scan": kind}, tile_bytes=100)
    ds.extend({"scan": [pixels, tmp_path / "scan.npy"]})
    for found in ds["scan"]:
        assert found.dtype == np.uint16
        assert np.array_equal(found, pixels)


def test_the_bound_of_a_table_that_is_no_number_is_an_error():
    with pytest.raises(tl.FormatError, match=r"tensorlake.tileBytes is 'much'"):
        tile_bytes_of({"tensorlake.tileBytes": "much"})
