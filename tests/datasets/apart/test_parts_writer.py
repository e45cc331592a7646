"""Large samples and apart columns through the door: what is given comes back, and a slice reads its tiles only."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl

TILE = 20_000  # bytes
RNG = np.random.default_rng(7)
SCANS = [RNG.integers(0, 99, (n, 60, 70)).astype("u2") for n in (1, 40, 90, 2)]
RAWS = [RNG.integers(0, 256, (h, 300, 3)).astype("u1") for h in (3, 120, 40, 2)]
PICTURES = [RNG.integers(0, 256, (4, 5 + n, 3)).astype("u1") for n in range(4)]
COLUMNS = {
    "label": "int32",
    "scan": tl.types.Tensor("uint16", (None, 60, 70)),
    "raw": tl.types.Image("raw"),
    "g/picture": tl.types.Image("png", apart=True),
}


def given():
    return {"label": [1, 2, 3, 4], "scan": SCANS, "raw": RAWS, "g/picture": PICTURES}


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE)
    found.extend(given())
    return found


def wrong(number):
    """A value of each kind of column that does not fit, with a batch's worth of good ones before it."""
    good = {key: [given()[key][0]] * number for key in COLUMNS}
    bad = {
        "label": "a",
        "scan": np.zeros((40, 60, 71), "u2"),
        "raw": np.full((120, 300, 3), 300),
        "g/picture": b"no picture",
    }
    for name, value in bad.items():
        last = {key: given()[key][1] for key in COLUMNS} | {name: value}
        yield name, {key: [*good[key], last[key]] for key in COLUMNS}


@pytest.mark.parametrize("number", [0, 1100])
def test_samples_that_do_not_fit_commit_nothing(ds, number):
    """They took numbers first, which left a commit in the history that said 'reserve sids'."""
    before, files = ds.version, len(list(os.walk(ds.uri)))
    for name, columns in wrong(number):
        with pytest.raises(tl.InvalidSampleError, match=f"column '{name}', sample {number}"):
            ds.extend(columns)
        with pytest.raises(tl.InvalidSampleError, match=f"column '{name}', sample 0"):
            ds.append({key: values[-1] for key, values in columns.items()})
    with pytest.raises(ZeroDivisionError):
        ds.extend(1 // 0 for _ in range(3))
    ds.extend([])
    ds.extend({"label": []})
    assert tl.dataset(ds.uri).version == ds.version == before
    assert len(list(os.walk(ds.uri))) == files
    ds.append({key: values[0] for key, values in given().items()})
    assert ds.sids[-1] == 4


def tiled(ds, column):
    """The numbers of the samples of a column that have tiles."""
    lake = tl.open(f"{ds.uri}/_tensors")
    return sorted(int(name.rsplit("/", 1)[1]) for name in lake if name.startswith(f"{column}/"))


def test_what_is_given_comes_back(ds):
    for found in (ds, tl.dataset(ds.uri)):
        for place in range(4):
            assert np.array_equal(found["scan"][place], SCANS[place])
            assert np.array_equal(found["raw"][place], RAWS[place])
            assert np.array_equal(found["g/picture"][place], PICTURES[place])
    assert tiled(ds, "scan") == [1, 2]
    assert tiled(ds, "raw") == [1, 2]


def test_samples_come_back_in_every_form(ds):
    several = ds["scan"][[2, 0]]
    assert isinstance(several, list)
    assert np.array_equal(several[0], SCANS[2])
    assert all(np.array_equal(a, b) for a, b in zip(ds["raw"], RAWS, strict=True))
    sample = ds[1]
    assert sample["label"] == 2
    assert np.array_equal(sample["scan"], SCANS[1])
    assert np.array_equal(sample["g/picture"], PICTURES[1])
    assert np.array_equal(ds.sample(2)["raw"], RAWS[2])
    assert np.array_equal(ds["g"][3]["picture"], PICTURES[3])
    rows = [*ds]
    assert np.array_equal(rows[2]["scan"], SCANS[2])
    assert rows[3]["label"] == 4
    padded = ds["scan"].padded([0, 1])
    assert padded.shape == (2, 40, 60, 70)
    assert np.array_equal(padded[1], SCANS[1])


@pytest.mark.parametrize(
    "key", [np.s_[5:7], np.s_[-1, ::3, 69], np.s_[..., 4], np.s_[[3, 1], 2], np.s_[::-20, 1:1]]
)
def test_a_key_means_what_it_means_to_numpy(ds, key):
    rest = key if isinstance(key, tuple) else (key,)
    assert np.array_equal(ds["scan"][(2, *rest)], SCANS[2][key])
    for found, place in zip(ds["scan"][([1, 2], *rest)], (1, 2), strict=True):
        assert np.array_equal(found, SCANS[place][key])


def test_a_slice_reads_its_tiles_only(tmp_path):
    image = RNG.integers(0, 256, (2000, 2000)).astype("u1")
    ds = tl.dataset(tmp_path / "ds", {"scan": tl.types.Tensor("uint8")}, tile_bytes=TILE)
    ds.append({"scan": image})
    assert np.array_equal(ds["scan"][0, 100:356, 700:956], image[100:356, 700:956])
    ref = tl.open(f"{ds.uri}/_tensors")["scan/0"]
    plan = ref.explain(np.s_[100:356, 700:956])
    other = tl.open(tmp_path / "lake").write("x", image)
    same = other.explain(np.s_[100:356, 700:956])
    assert ref.block_shape == other.block_shape
    assert plan.n_rows == same.n_rows
    assert plan.n_bytes <= 1.01 * same.n_bytes
    assert plan.n_bytes < image.nbytes / 3
    row = ds.to_arrow(["scan"])["scan"][0].as_py()
    assert row == {"dtype": "uint8", "shape": [2000, 2000], "data": None}


def test_a_key_that_does_not_fit_is_an_index_error(ds):
    with pytest.raises(IndexError):
        ds["scan"][1, 40]
    with pytest.raises(IndexError):
        ds["scan"][1, 0, 0, 0, 0]


def test_samples_that_are_null(tmp_path):
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE)
    ds.extend([{"label": 1}, {"scan": SCANS[1], "g/picture": None}, {"g/picture": PICTURES[0]}])
    ds.append({"label": 5})
    assert [x is None for x in ds["scan"]] == [True, False, True, True]
    assert [x is None for x in ds["g/picture"]] == [True, True, False, True]
    assert ds["g/picture"][[3, 1]] == [None, None]
    assert ds["scan"][0, 1:2] is None
    assert np.array_equal(ds["g/picture"][[3, 2, 0]][1], PICTURES[0])


def test_a_column_that_takes_no_null(tmp_path):
    columns = {"a": "int32", "x": tl.types.Tensor("uint8", apart=True, nullable=False)}
    ds = tl.dataset(tmp_path / "ds", columns)
    ds.append({"a": 1, "x": np.ones(3, "u1")})
    assert ds.schema["x"].nullable is False
    assert ds["x"][0].tolist() == [1, 1, 1]
    with pytest.raises(tl.InvalidSampleError, match="column 'x', sample 1: expected a value"):
        ds.extend([{"a": 2, "x": np.ones(3, "u1")}, {"a": 3, "x": None}])
    with pytest.raises(tl.InvalidSampleError, match="column 'x', sample 0: expected a value"):
        ds.append({"a": 2})
    assert len(tl.dataset(ds.uri)) == 1


def test_fixed_shapes_are_one_array(tmp_path):
    columns = {
        "x": tl.types.Tensor("float32", (100, 90)),
        "y": tl.types.Tensor("int8", (3,), apart=True),
    }
    x, y = RNG.random((3, 100, 90), np.float32), np.arange(9, dtype="i1").reshape(3, 3)
    ds = tl.dataset(tmp_path / "ds", columns, tile_bytes=TILE)
    ds.extend({"x": x, "y": y})
    assert np.array_equal(ds["x"][:], x)
    assert np.array_equal(ds["y"][::-1], y[::-1])
    assert tiled(ds, "x") == [0, 1, 2]


def test_large_samples_of_an_apart_column(tmp_path):
    columns = {"scan": tl.types.Tensor("uint16", (None, None, None), apart=True), "n": "int8"}
    ds = tl.dataset(tmp_path / "ds", columns, tile_bytes=TILE)
    ds.extend({"scan": SCANS, "n": np.arange(4)})
    assert np.array_equal(ds["scan"][2, 3, :, 1], SCANS[2][3, :, 1])
    assert np.array_equal(ds["scan"][0, 0, 1], SCANS[0][0, 1])
    assert tiled(ds, "scan") == [1, 2]


def test_forms_in_which_large_samples_are_given(tmp_path, ds):
    np.save(tmp_path / "scan.npy", SCANS[2])
    ds.append({"scan": tmp_path / "scan.npy"})
    ds.extend([{"scan": str(tmp_path / "scan.npy"), "raw": RAWS[1][..., :1]}])
    ds.extend({"scan": np.stack([SCANS[1], SCANS[1] + 1])})
    ds.extend({"scan": ds["scan"][[1]]})
    lake = tl.open(tmp_path / "lake")
    ds.append({"scan": lake.write("x", SCANS[2] + 3)})
    struct = pa.array([{"dtype": "uint16", "shape": [90, 60, 70], "data": SCANS[2].tobytes()}])
    ds.extend(pa.table({"scan": struct.cast(ds.schema["scan"].storage())}))
    wanted = [SCANS[2], SCANS[2], SCANS[1], SCANS[1] + 1, SCANS[1], SCANS[2] + 3, SCANS[2]]
    for place, one in enumerate(wanted, 4):
        assert np.array_equal(ds["scan"][place], one)
    assert np.array_equal(ds["raw"][5], RAWS[1][..., 0])
    assert tiled(ds, "scan") == [1, 2, 4, 5, 6, 7, 8, 9, 10]


def test_rows_of_another_dataset_do_not_bring_its_tiles(ds, tmp_path):
    other = tl.dataset(tmp_path / "other", COLUMNS)
    with pytest.raises(tl.InvalidSampleError, match=r"sample 1.*tiles of another dataset"):
        other.extend(ds.to_arrow(["scan"]))
    other.extend(ds[:])
    assert np.array_equal(other["scan"][2], SCANS[2])


def test_a_bad_sample_leaves_nothing(tmp_path):
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE)
    bad = [{"scan": SCANS[1], "g/picture": PICTURES[0]}, {"scan": SCANS[1][:, :5]}]
    with pytest.raises(tl.InvalidSampleError, match="column 'scan', sample 1"):
        ds.extend(iter(bad))
    assert len(tl.dataset(ds.uri)) == 0
    files = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert not [name for name in files if name.endswith(".parquet")]


def test_the_bound_is_a_property_of_the_dataset(tmp_path):
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE)
    assert tl.dataset(ds.uri).tile_bytes == TILE == tl.dataset(ds.uri, tile_bytes=TILE).tile_bytes
    assert tl.dataset(tmp_path / "usual", COLUMNS).tile_bytes == 8 << 20
    with pytest.raises(
        tl.InvalidOptionError, match=r"tile_bytes=7 is for a new dataset.*has 20000"
    ):
        tl.dataset(ds.uri, tile_bytes=7)
    for wrong in (0, -1, "8", True, 1.5):
        with pytest.raises(tl.InvalidOptionError, match="not a number of bytes above 0"):
            tl.dataset(tmp_path / "new", COLUMNS, tile_bytes=wrong)


def test_bytes_of_apart_columns_are_found_as_they_are(ds):
    column = ds["g/picture"]
    assert column.encoded(2)[:4] == b"\x89PNG"
    assert sum(len(batch) for batch in column.batches()) == 4
    ds.append({"label": 1})
    assert ds["g/picture"].encoded(4) is None


def test_a_version_shows_its_own_parts(ds):
    before = ds.version
    ds.extend({"scan": [SCANS[2] + 1], "g/picture": [PICTURES[3]]})
    old = tl.dataset(ds.uri, version=before)
    assert len(old) == 4
    assert np.array_equal(old["scan"][1], SCANS[1])
    assert np.array_equal(tl.dataset(ds.uri)["g/picture"][4], PICTURES[3])


def test_a_notebook_shows_what_a_large_sample_is(ds):
    assert "40, 60, 70" in ds._repr_html_()


STREAMED = """
import sys
import numpy as np, tensorlake_spark as tl
types = tl.types
columns = {
    "label": "int32",
    "image": types.Image("raw", apart=True),
    "scan": types.Tensor("uint8", (None, None, None)),
}
ds = tl.dataset(sys.argv[1], columns)
noise = np.random.default_rng(0).integers(0, 256, (12, 1024, 1024)).astype("u1")
def samples():
    for n in range(int(sys.argv[2])):
        sample = {"label": n, "image": noise[n % 12] ^ (n % 256)}
        if n % 10 == 0:
            sample["scan"] = noise ^ (n % 256)
        yield sample
ds.extend(samples())
assert np.array_equal(ds["scan"][10, 3, 5], (noise ^ 10)[3, 5])
# VmHWM begins with the program; ru_maxrss would remember the process that started it.
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) >> 10)
"""


def peak_of(tmp_path, samples):
    """Mebibytes that a process takes at most, which streams samples of 2.2 MiB each."""
    command = [sys.executable, "-c", STREAMED, str(tmp_path / "ds"), str(samples)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_of_a_stream_is_bounded(tmp_path):
    assert peak_of(tmp_path, 270) <= 512  # 594 MiB


@pytest.mark.soak
def test_memory_of_a_long_stream_is_bounded(tmp_path):
    assert peak_of(tmp_path, 1900) <= 512  # 4 GiB
