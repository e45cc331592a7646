"""Columns of each kind, read for a batch in any order; the dataset itself is the oracle."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from small_datasets import make_dataset

import tensorlake_spark as tl

ORDER = np.array([11, 0, 7, 7, 3, 5, 10])


def batch_of(ds, order, **options):
    """The one batch of a loader that delivers positions in an order."""
    from tensorlake_spark.loader.opening import loader_of_dataset

    (batch,) = loader_of_dataset(ds, len(order), positions=order, **options)
    return batch


def check(ds, order=ORDER, **options):
    batch = batch_of(ds, order, **options)
    for name, values in batch.items():
        theirs = ds[name][order.tolist()]
        assert isinstance(values, np.ndarray) == isinstance(theirs, np.ndarray) or name == "mask"
        for mine, other in zip(values, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)
            if isinstance(other, np.ndarray):
                assert mine.dtype == other.dtype
    return batch


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_dataset(tmp_path_factory.mktemp("small"))


def test_columns_of_many_kinds_with_nulls(small):
    assert {*check(small)} == {*small.schema}


def test_columns_that_lie_apart(tmp_path):
    schema = {
        "image": tl.types.Image("jpeg", apart=True),
        "x": tl.types.Tensor("float32", (5,), apart=True),
        "label": "int16",
    }
    from small_datasets import picture

    ds = tl.dataset(str(tmp_path), schema)
    rng = np.random.default_rng(0)
    images = [None if n == 4 else picture(n, "JPEG") for n in range(12)]
    ds.extend({"image": images, "x": rng.random((12, 5), np.float32), "label": np.arange(12)})
    check(ds)
    check(ds, np.array([1, 2, 3]))


def test_arrays_of_one_shape_are_one_array(tmp_path):
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor("int32", (3, 2)), "n": "uint8"})
    ds.extend({"x": np.arange(72, dtype="i4").reshape(12, 3, 2), "n": np.arange(12)})
    batch = check(ds)
    assert batch["x"].shape == (7, 3, 2)
    assert batch["x"].flags.writeable
    assert batch["n"].dtype == np.uint8


def test_tiled_samples(tmp_path):
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor("int32", (40, 50))}, tile_bytes=4096)
    ds.extend({"x": np.arange(12 * 2000, dtype="i4").reshape(12, 40, 50)})
    check(ds)


def test_images_of_one_size_are_one_array(tmp_path):
    ds = tl.dataset(str(tmp_path), {"image": tl.types.Image("png")})
    rng = np.random.default_rng(0)
    ds.extend({"image": list(rng.integers(0, 256, (12, 6, 7, 3), np.uint8))})
    assert batch_of(ds, ORDER)["image"].shape == (7, 6, 7, 3)
    ds.extend({"image": [np.zeros((3, 3, 3), np.uint8)]})
    assert isinstance(batch_of(ds, ORDER)["image"], list)  # also where these are alike


def test_files_that_another_writer_left(tmp_path):
    """Compressed payloads do not lie in the file as they are: Arrow reads them."""
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor("int32", (4,)), "label": "int64"})
    ds.extend({"x": np.arange(48, dtype="i4").reshape(12, 4), "label": np.arange(12)})
    (path,) = tmp_path.glob("*.parquet")
    size = path.stat().st_size
    table = pq.read_table(path)
    for level in range(1, 20):
        pq.write_table(table, path, compression="zstd", compression_level=level)
        if path.stat().st_size == size:
            break
    other = tl.dataset(str(tmp_path))
    wanted = np.arange(48, dtype="i4").reshape(12, 4)
    np.testing.assert_array_equal(batch_of(other, ORDER)["x"], wanted[ORDER])


@pytest.mark.parametrize("change", ["update", "optimize"])
def test_images_of_files_that_delta_wrote_again(tmp_path, change):
    # Its Parquet asks for views, of which Arrow takes no samples in another order.
    ds = make_dataset(tmp_path)
    table = DeltaTable(ds.uri)
    if change == "update":
        table.update(updates={"label": "1"}, predicate="sid = 3")
    else:
        table.optimize.z_order(["sid"])
    ds.append({})
    ds.refresh()
    check(ds)
    check(ds, np.array([12, 5, 0, 12, 3]))


def test_deleted_samples_are_not_delivered(tmp_path):
    ds = make_dataset(tmp_path)
    ds.delete([2, 9])
    check(ds, np.array([9, 1, 2, 8]))


def test_a_label_that_was_updated(tmp_path):
    ds = make_dataset(tmp_path)
    ds.update([0, 11], {"label": [1, 0]})
    check(ds)


@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
@pytest.mark.parametrize("tiles", [{}, {"tile_bytes": 1 << 20}])
def test_pages_of_large_samples_do_not_stay(tmp_path, tiles):
    """What ragged arrays were copied from is mapped: rows and tiles would count as memory beside the batches."""
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor("uint8", (None,))}, **tiles)
    noise = np.random.default_rng(0).integers(0, 256, 8 << 20, np.uint8)
    ds.extend({"x": noise[n:]} for n in range(6))
    ds = tl.dataset(str(tmp_path), create=False)

    def mapped_now():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssFile"))

    before = mapped_now()
    for batch in ds.loader(6):
        for n, x in enumerate(batch["x"]):
            assert np.array_equal(x, noise[n:])
    assert mapped_now() < before + (24 << 20)


@pytest.mark.parametrize("apart", [False, True])
def test_whole_numbers_beside_nulls(tmp_path, apart):
    dtypes = ["bool", "int8", "uint8", "int16", "int32", "int64"]
    kinds = {f"g/{dtype}": tl.types.Scalar(dtype, apart=apart) for dtype in dtypes}
    kinds["g/class"] = tl.types.ClassLabel(["cat", "dog"], apart=apart)
    ds = tl.dataset(str(tmp_path), kinds)
    values = pa.array([None, *[1] * 6, None, *[0] * 4], pa.int8())
    ds.extend({name: values.cast(pa.bool_()) if "bool" in name else values for name in kinds})
    check(ds)
    check(ds, np.array([1, 2, 3]))


@pytest.mark.parametrize("form", ["png", "raw", "jpeg"])
def test_images_apart_beside_samples_without_one(tmp_path, form):
    kind = tl.types.Image(form, apart=True)
    ds = tl.dataset(str(tmp_path), {"image": kind, "n": "int32"})
    image = np.full((4, 4, 3), 7, np.uint8)
    ds.extend({"image": [image, None, image], "n": range(3)})
    ds.append({"n": 3})  # has no row in the table of images
    order = np.array([0, 2, 1, 3])
    check(ds, order)
    crop = tl.loader.CenterCrop(2, 2)
    found = batch_of(ds, order, columns=["image"], transform={"image": crop})["image"]
    assert [None if one is None else one.shape for one in found] == [(2, 2, 3)] * 2 + [None] * 2
