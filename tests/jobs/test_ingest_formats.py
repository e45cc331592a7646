"""Zarr, HDF5, NetCDF-4, TIFF and large .npy: read in bands, shared by tasks, and never whole."""

import itertools
import sys

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError
from tensorlake_spark.spark.ingest.arrays import array_slabs as ingest_arrays
from tensorlake_spark.spark.ingest.arrays.array_discovery import Part
from tensorlake_spark.spark.ingest.arrays.array_files import members_of, opened
from tensorlake_spark.spark.ingest.arrays.array_slabs import slab_rows
from tensorlake_spark.spark.ingest.arrays.tiling import BAND_BYTES, tiling
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.ingestion import run
from tensorlake_spark.spark.ingest.outcome import bytes_of
from tensorlake_spark.spark.ingest.sources import expand, family_of, split

CHUNKS = (3, 2, 16, 40)


ZARR_3 = int(zarr.__version__.split(".")[0]) >= 3  # Python 3.10 has Zarr 2, which reads format 2


def write_zarr(path, x, version, **options):
    if ZARR_3:
        array = zarr.create_array(
            path, shape=x.shape, chunks=CHUNKS, dtype=x.dtype, zarr_format=version, **options
        )
    else:
        array = zarr.open_array(path, mode="w", shape=x.shape, chunks=CHUNKS, dtype=x.dtype)
    array[...] = x


def write_hdf5(path, x, name="x", **options):
    with h5py.File(path, "a") as file:
        file.create_dataset(name, data=x, **options)


def write_tiff(path, x, **options):
    tifffile.imwrite(path, x, photometric="minisblack", **options)


WRITERS = {
    "v2.zarr": lambda p, x: write_zarr(p, x, 2),
    "v3.zarr": lambda p, x: write_zarr(p, x, 3),
    "sharded.zarr": lambda p, x: write_zarr(p, x, 3, shards=(6, 2, 32, 80)),
    "no-suffix": lambda p, x: write_zarr(p, x, 3),
    "big-endian.zarr": lambda p, x: write_zarr(p, x.astype(f">{x.dtype.str[1:]}"), 2),
    "plain.h5": write_hdf5,
    "chunked.hdf5": lambda p, x: write_hdf5(p, x, chunks=CHUNKS, compression="gzip"),
    "grouped.h5": lambda p, x: write_hdf5(p, x, "a/b/x"),
    "mapped.tif": lambda p, x: write_tiff(p, x),
    "big-endian.tif": lambda p, x: write_tiff(p, x, byteorder=">"),
    "pages.tiff": lambda p, x: write_tiff(p, x, compression="zlib", metadata=None),
    "lead.tif": lambda p, x: write_tiff(p, x, compression="zlib"),
    "fortran.npy": lambda p, x: np.save(p, np.asfortranarray(x)),
}


NEEDS_ZARR_3 = ("v3.zarr", "sharded.zarr", "no-suffix")


NAMES = [n for n in WRITERS if ZARR_3 or n not in NEEDS_ZARR_3]
# A stack is read in the same bands; one of each family is enough.
STACKS = ("v2.zarr", "chunked.hdf5", "lead.tif", "fortran.npy")


@pytest.mark.parametrize(
    ("how", "name"),
    [
        *(("concat", n) for n in NAMES),
        *(("stack", n) for n in NAMES if n in STACKS),
        *(pytest.param("stack", n, marks=pytest.mark.soak) for n in NAMES if n not in STACKS),
    ],
)
def test_every_format(spark, tmp_path, photos, name, how, place):
    x = photos.astype(np.uint16) * 7
    WRITERS[name](str(tmp_path / name), x)
    want = x.reshape(36, 64, 96) if name == "pages.tiff" else x
    outcome = run(spark, place, "x", [str(tmp_path / name)], IngestOptions(how=how))
    assert bytes_of(outcome.files) > 0
    found = tl.open(place)["x"]
    assert found.dtype == np.dtype("uint16")
    np.testing.assert_array_equal(found[:], want if how == "concat" else want[None])


def test_what_comes_of_it_is_one_tensor_of_many_files(spark, tmp_path, photos, place):
    write_zarr(str(tmp_path / "a.zarr"), photos[:5], 3)
    write_hdf5(tmp_path / "b.h5", photos[5:9])
    np.save(tmp_path / "c.npy", photos[9:])
    sources = [str(tmp_path / n) for n in ("a.zarr", "b.h5", "c.npy")]
    run(spark, place, "x", sources, IngestOptions(how="concat"))
    np.testing.assert_array_equal(tl.open(place)["x"][:], photos)


def test_netcdf(spark, tmp_path, place):
    """As the netCDF library writes it: HDF5 whose dimensions are scales."""
    x = np.arange(60, dtype="f4").reshape(3, 4, 5)
    with h5py.File(tmp_path / "day.nc", "w") as file:
        for name, length in zip(("time", "lat", "lon"), x.shape):
            file[name] = np.arange(length, dtype="f8")
            file[name].make_scale(name)
        for name in ("t2m", "wind"):
            file[name] = x
            for k, scale in enumerate(("time", "lat", "lon")):
                file[name].dims[k].attach_scale(file[scale])
        file["names"] = ["a", "b"]
    assert members_of(str(tmp_path / "day.nc")) == ["t2m", "wind"]
    with pytest.raises(InvalidTensorError, match=r"has 2 arrays; choose one as .*day.nc::t2m, or"):
        run(spark, place, "x", [str(tmp_path / "day.nc")])
    run(spark, place, "x", [f"{tmp_path}/*.nc::/wind"], IngestOptions(how="concat"))
    np.testing.assert_array_equal(tl.open(place)["x"][:], x)
    run(spark, place, "g", [str(tmp_path / "day.nc")], IngestOptions(how="each"))
    assert list(tl.open(place)) == ["g/day/t2m", "g/day/wind", "x"]
    run(spark, place, "lat", [f"{tmp_path}/day.nc::lat"], IngestOptions(how="concat"))
    assert tl.open(place)["lat"][:].tolist() == [0, 1, 2, 3]


def test_a_group_of_zarr(spark, tmp_path, photos, place):
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    for name in ("p/q", "r"):
        create = group.create_array if ZARR_3 else group.create_dataset
        create(name, shape=photos.shape, chunks=CHUNKS, dtype="u1")[...] = photos
    assert members_of(str(tmp_path / "g.zarr")) == ["p/q", "r"]
    run(spark, place, "x", [f"{tmp_path}/g.zarr::p/q"], IngestOptions(how="concat"))
    np.testing.assert_array_equal(tl.open(place)["x"][:], photos)
    with pytest.raises(InvalidTensorError, match=r"g.zarr::p cannot be read: it is a group"):
        run(spark, place, "y", [f"{tmp_path}/g.zarr::p"])


def test_folders_are_searched_for_stores_but_stores_are_not(tmp_path, photos):
    write_zarr(str(tmp_path / "in" / "a.zarr"), photos, 2)
    write_zarr(str(tmp_path / "in" / "b"), photos, 3)
    np.save(tmp_path / "in" / "c.npy", photos)
    found = expand([str(tmp_path / "in")])
    assert [f.rsplit("/", 1)[1] for f in found] == ["a.zarr", "b", "c.npy"]
    assert family_of(found) == "arrays"
    assert split("/a/b.h5::/x/y") == ("/a/b.h5", "x/y")


def test_channels_of_tiff(spark, tmp_path, photos, place):
    x = photos.transpose(0, 2, 3, 1)
    for name, options in (("a", {}), ("b", {"compression": "zlib"})):
        tifffile.imwrite(tmp_path / f"{name}.tif", x, photometric="rgb", **options)
        with opened(str(tmp_path / f"{name}.tif"), channels_first=True) as stored:
            assert stored.shape == photos.shape
            box = ((1, 0, 3, 5), (4, 3, 40, 50))
            want = photos[1:4, :, 3:40, 5:50]
            np.testing.assert_array_equal(stored.read(*box), want)
    run(spark, place, "x", [f"{tmp_path}/*.tif"], IngestOptions(how="stack", channels_first=True))
    np.testing.assert_array_equal(tl.open(place)["x"][1], photos)
    Image.fromarray(x[0]).save(tmp_path / "one.tiff")
    run(
        spark, place, "y", [f"{tmp_path}/one.tiff"], IngestOptions(how="concat", channels_first=True))  # fmt: skip
    np.testing.assert_array_equal(tl.open(place)["y"][:], photos[0])


def test_pages_that_pillow_writes(tmp_path):
    pages = [Image.fromarray(np.full((8, 9), k, np.uint8)) for k in range(4)]
    pages[0].save(
        tmp_path / "x.tif", save_all=True, append_images=pages[1:], compression="tiff_lzw"
    )
    with opened(str(tmp_path / "x.tif")) as stored:
        assert (stored.shape, stored.chunks) == ((4, 8, 9), (1, 8, 9))
        assert stored.read((1, 2, 0), (3, 4, 9))[:, 0, 0].tolist() == [1, 2]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (7, 11, 13)])
@pytest.mark.parametrize("chunks", [False, True])
def test_tiles_cover_every_element_once(shape, chunks):
    tiles = tiling(shape, 1 << 20, (2, 3, 4)[: len(shape)] if chunks else ())
    seen = np.zeros(shape, int)
    for k in range(tiles.count):
        lo, hi = tiles.box(k)
        seen[tuple(slice(a, b) for a, b in zip(lo, hi))] += 1
    assert (seen == 1).all()
    assert np.prod(tiles.step, initial=1 << 20) <= max(BAND_BYTES, 24 << 20)


@pytest.mark.parametrize(
    ("shape", "chunks", "block", "step"),
    [
        ((600, 3, 1024, 1024), (), (1, 3, 256, 1024), (5, 3, 1024, 1024)),
        ((4096, 4096, 4096), (64, 64, 64), (), (64, 64, 4096)),
        ((4096, 4096, 4096), (64, 64, 64), (16, 16, 4096), (64, 64, 4096)),
        ((10, 1 << 20), (), (4, 1 << 18), (10, 1 << 20)),
        ((20, 1 << 20), (), (4, 1 << 18), (16, 1 << 20)),
        ((8, 1 << 26), (8, 1 << 26), (), (1, 1 << 24)),
        ((100, 100), (7, 100), (4, 100), (100, 100)),
    ],
)
def test_bands_follow_chunks_and_blocks(shape, chunks, block, step):
    assert tiling(shape, 1, chunks, block).step == step


def test_a_large_file_is_shared_by_tasks_and_the_driver_knows_few_rows():
    part = Part(0, "x.npy", "", (100_000, 1024, 1024), "float32", (), False)
    rows = slab_rows([part], 0, (16, 256, 256), cores=8)
    assert 8 * 16 <= len(rows) <= 100_000 * 4 // 16 // 64 + 1 + 8 * 16
    assert rows[0][2] == 0
    assert all(a[3] == b[2] for a, b in itertools.pairwise(rows))
    small = [Part(k, f"{k}.png", "", (64, 64, 3), "uint8") for k in range(1000)]
    assert len(slab_rows(small, None, (1, 64, 64, 3), 8)) == 1000
    assert [r[1] for r in slab_rows(small, 0, (), 8)][:3] == [0, 64, 128]
    whole = Part(0, "x.npz", "m", (1000, 1024, 1024), "uint8")
    assert len(slab_rows([whole], 0, (), 8)) == 1


def test_no_task_holds_a_large_file(spark, tmp_path, place):
    """Every read is at most a band, and more than one task reads."""
    shape = (96, 1 << 20)
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, shape)
    x[:] = np.arange(96, dtype=np.uint8)[:, None]
    x.flush()
    part = Part(0, str(tmp_path / "x.npy"), "", shape, "uint8", (), False)
    sizes = []
    for _, offset, first, last in slab_rows([part], 0, (1, 1 << 20), 2):
        bands = part.tiling((1, 1 << 20))
        found = ingest_arrays.slabs_of(part, 0, offset, bands, range(first, last), False)
        sizes += [slab.nbytes for _, slab in found]
    assert max(sizes) <= BAND_BYTES
    assert sum(sizes) == x.nbytes
    outcome = run(spark, place, "x", [str(tmp_path / "x.npy")], IngestOptions(how="concat"))
    assert outcome.plan.partitions > 1
    np.testing.assert_array_equal(tl.open(place)["x"][::7, ::999], x[::7, ::999])


def test_the_memory_of_a_process_stays_flat(tmp_path):
    """A process that reads a file of half a GiB, band by band, does not grow by more than a few bands."""
    import subprocess

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (1 << 13, 1 << 16), "u1", chunks=(64, 1 << 14), fillvalue=3)
    code = f"""
from tensorlake_spark.spark.ingest.arrays.array_slabs import slabs_of
from tensorlake_spark.spark.ingest.arrays.array_discovery import probe
(part,) = probe({str(tmp_path / "x.h5")!r}, False, False)
bands = part.tiling((4, 65536))

def peak():
    # VmHWM begins with the program; ru_maxrss would remember the process that started it.
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

before = peak()
total = sum(int(s.sum()) for _, s in slabs_of(part, 0, 0, bands, range(bands.count), False))
print(total, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    total, grown = map(int, done.stdout.split())
    assert total == 3 << 29
    assert grown < 200 << 10, f"{grown >> 10} MiB"


@pytest.mark.parametrize("harm", ["gone", "cut", "changed"])
def test_a_file_that_is_harmed_between_the_look_and_the_read(
    spark, tmp_path, photos, monkeypatch, harm, place, check_lake
):
    """The error names the file, and the table is what it was."""
    from tensorlake_spark.spark.ingest.arrays import array_job as module

    write_hdf5(tmp_path / "a.h5", photos, chunks=CHUNKS, compression="gzip")
    write_hdf5(tmp_path / "b.h5", photos, chunks=CHUNKS, compression="gzip")
    run(spark, place, "x", [f"{tmp_path}/a.h5"], IngestOptions(how="concat"))
    version = tl.open(place).version
    looked = module.find_parts

    def look(*args):
        parts = looked(*args)
        text = (tmp_path / "b.h5").read_bytes()
        (tmp_path / "b.h5").unlink()
        if harm == "cut":
            (tmp_path / "b.h5").write_bytes(text[: len(text) // 2])
        if harm == "changed":
            write_hdf5(tmp_path / "b.h5", photos[:3])
        return parts

    monkeypatch.setattr(module, "find_parts", look)
    with pytest.raises(InvalidTensorError, match=r"b\.h5") as caught:
        run(spark, place, "x", [f"{tmp_path}/?.h5"], IngestOptions(how="concat", mode="append"))
    assert "\n" not in str(caught.value)
    assert tl.open(place).version == version
    check_lake(place, x=photos)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bad.h5", "bad.h5 cannot be read"),
        ("bad.tif", "bad.tif cannot be read"),
        ("bad.zarr", "bad.zarr cannot be read: there is no array or group of Zarr in it"),
        ("bad.zarr::y", "bad.zarr::y cannot be read: there is no 'y' in it"),
        ("classic.nc", "classic NetCDF file, and NetCDF-4 is read"),
        ("texts.h5", "texts.h5 has no array"),
        ("texts.h5::t", "texts.h5::t cannot be read"),
        ("texts.h5::nothing", "texts.h5::nothing cannot be read"),
        ("texts.h5::g", "texts.h5::g cannot be read: it is not a dataset"),
        ("x.npy::y", "holds one array, which has no name"),
        ("x.zip", "names no file"),
    ],
)
def test_bad_files_are_named_and_nothing_is_written(job, tmp_path, name, says, place, untouched):
    for bad in ("bad.h5", "bad.tif"):
        (tmp_path / bad).write_bytes(b"nothing of that kind")
    (tmp_path / "bad.zarr").mkdir()
    (tmp_path / "classic.nc").write_bytes(b"CDF\x01" + bytes(99))
    np.save(tmp_path / "x.npy", np.zeros(3))
    write_hdf5(tmp_path / "texts.h5", ["a"], "t")
    with h5py.File(tmp_path / "texts.h5", "a") as file:
        file.create_group("g")
    done = job("--table", place, "--id", "x", tmp_path / name)
    assert done.code == 2, done.out
    assert says in done.err
    assert done.err.startswith("ingest.py: ")
    untouched(place)


@pytest.mark.parametrize("name", ["x.zarr", "x.h5", "x.tif"])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, name):
    writer = {"x.zarr": WRITERS["v3.zarr"], "x.h5": write_hdf5, "x.tif": write_tiff}[name]
    writer(str(tmp_path / name), np.zeros((6, 2, 16, 40), np.uint8))
    package = {"x.zarr": "zarr", "x.h5": "h5py", "x.tif": "tifffile"}[name]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingDependencyError, match=rf"needs {package}: .*tensorlake-spark\[ingest\]"
    ), opened(str(tmp_path / name), "x" if package == "h5py" else ""):  # fmt: skip
        pass
    with pytest.raises(MissingDependencyError, match=package):
        members_of(str(tmp_path / name))


def test_each_refuses_what_does_not_fit_into_a_row(job, tmp_path, place):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (3 << 10, 1 << 20), "u1", chunks=(64, 1 << 14))
    done = job("--table", place, "--id", "x", "--each", tmp_path / "x.h5")
    assert done.code == 2, done.out
    assert "--concat 0 reads one file of any size" in done.err
