"""Logs and matrices become sparse tensors: every format, appends, labels; held against pandas and SciPy."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError, TensorExistsError
from tensorlake_spark.spark.ingest import ingestion as ingest
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.records import cell_preparation, coordinates
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions
from tensorlake_spark.tensor.labels import Listed, Regular


def run(spark, tmp_path, sources, *axes, tensor_id="x", mode="error", **choices):
    if mode != "append":  # small examples are dense ones, but for those who say so
        choices.setdefault("layout", "bsgs")
    names = ("value", "column", "where", "delimiter", "timezone")
    cells = CellOptions(tuple(axes), **{n: choices.pop(n) for n in names if n in choices})
    sources = [str(tmp_path / s) for s in ([sources] if isinstance(sources, str) else sources)]
    table = str(tmp_path / "lake")
    done = ingest.run(
        spark, table, tensor_id, sources, IngestOptions(mode=mode, cells=cells, options=choices)
    )
    (meta,) = done.metas
    ref = tl.open(table)[tensor_id]
    assert ref._meta == meta
    return ref


def write_tns(path, coords, values, opener=open):
    with opener(path, "wt") as file:
        file.write("# FROSTT\n\n")
        for row, value in zip((coords + 1).T.tolist(), values.tolist(), strict=True):
            file.write("\t".join(map(str, row)) + f"  {value}  \n")


def random_tensor(shape, count, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    flat = rng.choice(int(np.prod(shape)), count, replace=False)
    values = rng.integers(-99, 99, count).astype(dtype) / (4 if np.dtype(dtype).kind == "f" else 1)
    return tl.SparseTensor(np.stack(np.unravel_index(flat, shape)), values.astype(dtype), shape)


def frame_of(ref, names):
    """Return a tensor as a table of labels and values."""
    found = ref[...]
    columns = {
        name: ref.labels(name)[axis] if name in ref._meta.spec.labels else axis
        for name, axis in zip(names, found.coords, strict=True)
    }
    return pd.DataFrame({**columns, "value": found.values})


def assert_same(found, want):
    keys = list(want.columns[:-1])
    found, want = (x.sort_values(keys).reset_index(drop=True) for x in (found, want))
    pd.testing.assert_frame_equal(found, want, check_dtype=False)


@pytest.mark.parametrize(
    ("dtype", "suffix"),
    [
        ("float64", ".tns"),
        ("int64", ".tns.gz"),
        ("float64", ".tns.zip"),
        pytest.param("int64", ".tns", marks=pytest.mark.soak),
        pytest.param("float64", ".tns.gz", marks=pytest.mark.soak),
        pytest.param("int64", ".tns.zip", marks=pytest.mark.soak),
    ],
)
def test_tns(spark, tmp_path, dtype, suffix):
    want = random_tensor((9, 7, 30, 5), 800, dtype)
    write_tns(tmp_path / "x.tns", want.coords, want.values)
    if suffix == ".tns.gz":
        (tmp_path / "x.tns.gz").write_bytes(gzip.compress((tmp_path / "x.tns").read_bytes()))
    if suffix == ".tns.zip":
        with zipfile.ZipFile(tmp_path / "x.tns.zip", "w") as archive:
            archive.write(tmp_path / "x.tns", "inner/x.tns")
    ref = run(spark, tmp_path, f"x{suffix}", axes="a,b,c,d", shape="9,7,30,5")
    assert ref[...].equals(want)
    assert (ref.layout, ref.axes) == ("bsgs", ("a", "b", "c", "d"))


def test_tns_files_make_up_one_tensor_and_more_are_added(spark, tmp_path):
    one, two = random_tensor((5, 6), 9), random_tensor((8, 4), 9, seed=1)
    keep = ~((two.coords[0] < 5) & (two.coords[1] < 6))
    two = tl.SparseTensor(two.coords[:, keep], two.values[keep], two.shape)
    write_tns(tmp_path / "a.tns", one.coords, one.values)
    write_tns(tmp_path / "b.tns", two.coords, two.values)
    want = np.zeros((8, 6))
    want[:5] += one.todense()
    want[:, :4] += two.todense()
    ref = run(spark, tmp_path, ["a.tns", "b.tns"], layout="coo", shape="8,6")
    np.testing.assert_array_equal(ref[...].todense(), want)
    run(spark, tmp_path, "a.tns", tensor_id="y", shape="5,6")
    ref = run(spark, tmp_path, "b.tns", tensor_id="y", mode="append")
    np.testing.assert_array_equal(ref[...].todense(), want[: ref.shape[0]])
    with pytest.raises(InvalidTensorError, match="given more than once"):
        run(spark, tmp_path, "a.tns", tensor_id="y", mode="append")
    assert tl.open(tmp_path / "lake")["y"].version == ref.version
    ref = run(spark, tmp_path, "a.tns", tensor_id="y", mode="append", duplicates="last")
    np.testing.assert_array_equal(ref[...].todense(), want[: ref.shape[0]])
    ref = run(spark, tmp_path, "a.tns", tensor_id="y", mode="overwrite", dtype="float32")
    assert (ref.dtype, ref.shape) == (np.float32, tuple(one.coords.max(axis=1) + 1))


HEAD = "%%MatrixMarket matrix"


def soaked(case):
    return pytest.param(case, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD} coordinate real general\n% a comment\n3 4 2\n1 1 2.5\n3 4 -1e3\n",
        soaked(f"{HEAD} coordinate integer symmetric\n3 3 2\n1 1 2\n3 1 5\n"),
        soaked(f"{HEAD} coordinate real skew-symmetric\n3 3 1\n3 1 4.0\n"),
        f"{HEAD} coordinate pattern general\n3 4 2\n1 2\n 2\t4 \n",
        f"{HEAD} coordinate complex hermitian\n3 3 2\n1 1 2 0\n3 1 5 1\n",
        f"{HEAD} coordinate unsigned-integer general\n1 2 1\n1 2 18446744073709551615\n",
        f"{HEAD} array real general\n2 3\n1\n2\n0\n4\n0\n6.5\n",
        soaked(f"{HEAD} array integer symmetric\n2 2\n1\n2\n4\n"),
        soaked(f"{HEAD} coordinate real general\n5 7 0\n"),
    ],
)
def test_matrix_market(spark, tmp_path, text):
    (tmp_path / "x.mtx").write_text(text)
    want = scipy.io.mmread(tmp_path / "x.mtx", spmatrix=False)
    dense = want if isinstance(want, np.ndarray) else want.toarray()
    ref = run(spark, tmp_path, "x.mtx", axes="row,column")
    assert (ref.shape, ref.dtype) == (dense.shape, dense.dtype)
    np.testing.assert_array_equal(ref[...].todense(), dense)


@pytest.mark.parametrize("packed", [soaked(False), True])
def test_labels_that_are_not_utf8_are_refused(spark, tmp_path, packed):
    """Spark reads what is no character as one and the same; two labels would become one."""
    text = "kind,v,note\nname,1,caf\xe9\ncaf\xe9,1,b\ncaf\xe8,2,b\n".encode("latin-1")
    name = "l.csv.gz" if packed else "l.csv"
    (tmp_path / name).write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(
        InvalidTensorError, match=r"l\.csv.*, line [34]: column 'kind'.*not UTF-8.*iconv"
    ):
        run(spark, tmp_path, name, "kind", value="count()")
    ref = run(spark, tmp_path, name, "n=v", value="count()")
    np.testing.assert_array_equal(ref[...].todense(), [0, 2, 1])


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv", "x.parquet"])
def test_half_a_file_is_no_input(spark, tmp_path, name):
    """Whatever the session says of corrupt files."""
    count = 20_000
    text = gzip.compress(b"k,v\n" + b"".join(b"%d,%d\n" % (i, i) for i in range(count)))
    rows = pa.table({"k": range(count), "v": range(count)})
    pq.write_table(rows, tmp_path / "whole", compression="snappy")
    packed = (tmp_path / "whole").read_bytes()
    if name == "x.csv.gz":
        (tmp_path / name).write_bytes(text[: len(text) // 2])
    elif name == "x.csv":
        (tmp_path / name).write_bytes(gzip.decompress(text))
    else:
        (tmp_path / name).write_bytes(packed[:1_000] + b"\xff" * 2_000 + packed[3_000:])
    look = coordinates.look

    def gone(measured):
        """The file goes after its header was read."""
        (tmp_path / name).unlink()
        return look(measured)

    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.MonkeyPatch.context() as patch:
            if name == "x.csv":
                patch.setattr(cell_preparation, "look", gone)
            with pytest.raises(InvalidTensorError, match=rf"{tmp_path}/{name} cannot be read"):
                run(spark, tmp_path, name, "k:int", value="v" if name != "x.csv" else "count()")
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_sparse_npz_and_packed_matrices(spark, tmp_path):
    rng = np.random.default_rng(0)
    for form in ("csr", "csc", "coo", "bsr", "dia"):
        matrix = scipy.sparse.random(20, 30, 0.1, form, np.float32, rng)
        scipy.sparse.save_npz(tmp_path / f"{form}.npz", matrix)
        ref = run(spark, tmp_path, f"{form}.npz", tensor_id=form, layout="csr")
        assert (ref.shape, ref.dtype, ref.layout) == ((20, 30), np.float32, "csr")
        np.testing.assert_array_equal(ref[...].todense(), matrix.toarray())
    cube = random_tensor((3, 4, 5), 12, "int16")
    coo = scipy.sparse.coo_array((cube.values, tuple(cube.coords)), cube.shape)
    scipy.sparse.save_npz(tmp_path / "cube.npz", coo)
    assert run(spark, tmp_path, "cube.npz", tensor_id="cube")[...].equals(cube)
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix)
    (tmp_path / "m.mtx.gz").write_bytes(gzip.compress((tmp_path / "m.mtx").read_bytes()))
    half = scipy.sparse.coo_array(([1.0], ([40], [2])), (50, 3))
    scipy.sparse.save_npz(tmp_path / "half.npz", half)
    ref = run(spark, tmp_path, ["m.mtx.gz", "half.npz"], tensor_id="both")
    want = np.zeros((50, 30))
    want[:20], want[40, 2] = matrix.toarray(), 1
    np.testing.assert_allclose(ref[...].todense(), want, rtol=1e-6)


def test_npz_of_the_package_sparse(spark, tmp_path):
    want = random_tensor((3, 4, 5), 12)
    parts = {"data": want.values, "coords": want.coords, "shape": want.shape}
    np.savez(tmp_path / "new.npz", format="coo", fill_value=0.0, **parts)
    np.savez(tmp_path / "old.npz", fill_value=0.0, **parts)
    np.savez(tmp_path / "full.npz", fill_value=1.0, **parts)
    # As GCXS.from_coo(want, compressed_axes=(1,)): rows of axis 1, the others raveled.
    z, y, x = want.coords
    order = np.argsort(y, kind="stable")
    ends = np.searchsorted(y[order], np.arange(5))
    gcxs = {
        "indices": (z * 5 + x)[order],
        "indptr": ends,
        "compressed_axes": [1],
        "data": want.values[order],
        "shape": want.shape,
    }
    np.savez(tmp_path / "gcxs.npz", format="gcxs", fill_value=0.0, **gcxs)
    assert run(spark, tmp_path, "new.npz", tensor_id="new")[...].equals(want)
    assert run(spark, tmp_path, "old.npz", tensor_id="old")[...].equals(want)
    assert run(spark, tmp_path, "gcxs.npz", tensor_id="gcxs")[...].equals(want)
    with pytest.raises(InvalidTensorError, match=r"full\.npz cannot be read: its fill value is"):
        run(spark, tmp_path, "full.npz")


@pytest.fixture
def log(tmp_path):
    """A log of trips, in the forms that logs come in."""
    rng = np.random.default_rng(0)
    count = 500
    frame = pd.DataFrame(
        {
            "pickup": pd.Timestamp("2013-01-05 03:00")
            + pd.to_timedelta(rng.integers(0, 9 * 86400, count), "s"),
            "lat": (40.5 + rng.random(count) * 0.2).round(5),
            "zone": rng.choice(["Bronx", "Queens", "Harlem, East", 'the "Loop"'], count),
            "hour of day": rng.integers(0, 24, count),
            "user": rng.integers(1, 40, count),
            "fare": (rng.random(count) * 30).round(2),
            "riders": rng.integers(1, 6, count),
        }
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_csv(tmp_path / "log.csv.gz", index=False)
    frame.to_csv(tmp_path / "log.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "log.csv.zip", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.assign(pickup=frame.pickup.dt.tz_localize("UTC")).to_parquet(
        tmp_path / "old.parquet", use_deprecated_int96_timestamps=True
    )
    half = len(frame) // 2
    for part in (frame[:half], frame[half:]):
        write_deltalake(tmp_path / "log.delta", pa.Table.from_pandas(part), mode="append")
    table = pa.Table.from_pandas(frame)
    table = table.set_column(0, "pickup", table["pickup"].cast(pa.timestamp("us", "UTC")))
    table = table.set_column(2, "zone", table["zone"].dictionary_encode())
    table = table.set_column(4, "user", table["user"].cast(pa.uint32()))
    table = table.append_column("half", pa.array(np.zeros(count, np.float16)))
    pq.write_table(table, tmp_path / "zoned.parquet", row_group_size=100)
    return frame


@pytest.mark.parametrize(
    "source",
    [
        "log.csv", soaked("log.csv.gz"), soaked("log.tsv"), "log.csv.zip", soaked("log.parquet"), "old.parquet",
        "zoned.parquet", "log.delta",
    ],
)  # fmt: skip
def test_a_log_becomes_a_tensor(spark, tmp_path, log, source):
    ref = run(
        spark, tmp_path, source, "day=pickup:day", "lat:0.01", "zone", "hour=hour of day", "user@1",
        value="sum(fare)", attrs='{"city": "NYC"}',
    )  # fmt: skip
    labels = ref._meta.spec.labels
    assert labels["day"] == Regular("2013-01-05", 1, "D")
    assert labels["lat"] == Regular(40.5, 0.01)
    assert labels["zone"] == Listed(("Bronx", "Harlem, East", "Queens", 'the "Loop"'))
    assert labels["user"] == Regular(1, 1)
    assert (ref.attrs, "hour" in labels) == ({"city": "NYC"}, False)
    keys = pd.DataFrame(
        {
            "day": log.pickup.dt.floor("D"),
            "lat": labels["lat"].array(ref.shape[1])[labels["lat"].places(log.lat.to_numpy())],
            "zone": log.zone,
            "hour": log["hour of day"],
            "user": log.user,
        }
    )
    want = log.fare.groupby([keys[k] for k in keys]).sum().rename("value").reset_index()
    found = frame_of(ref, list(keys))
    found["day"] = found["day"].astype("datetime64[ns]")
    want["day"] = want["day"].astype("datetime64[ns]")
    assert_same(found, want)
    part = ref.sel(zone="Queens", day=slice("2013-01-06", "2013-01-07"))
    rows = log[(log.zone == "Queens") & log.pickup.dt.day.isin([6, 7])]
    assert part.values.sum() == pytest.approx(rows.fare.sum())


def test_later_batches_find_the_same_bins_and_labels(spark, tmp_path, log):
    first, second = log[log.pickup < "2013-01-09"], log[log.pickup >= "2013-01-09"]
    first = first[first.zone != "Bronx"]
    first.to_csv(tmp_path / "1.csv", index=False)
    second.to_parquet(tmp_path / "2.parquet")
    axes = ("t=pickup:6hour", "zone", "riders")
    run(spark, tmp_path, "1.csv", *axes, value="count", mode="append")
    ref = run(
        spark,
        tmp_path,
        "2.parquet",
        "t=pickup",
        "zone:label",
        "riders",
        value="count()",
        mode="append",
    )
    zones = ref._meta.spec.labels["zone"].values
    assert zones == ("Harlem, East", "Queens", 'the "Loop"', "Bronx")
    both = pd.concat([first, second])
    keys = [both.pickup.dt.floor("6h").rename("t"), both.zone, both.riders]
    want = both.groupby(keys).size().rename("value").reset_index()
    found = frame_of(ref, ["t", "zone", "riders"])
    found["t"] = found["t"].astype("datetime64[ns]")
    assert_same(found, want.astype({"t": "datetime64[ns]"}))
    # The same records once more: what falls in one cell adds up.
    ref = run(spark, tmp_path, "2.parquet", *axes, value="count()", mode="append")
    assert ref[...].values.sum() == len(both) + len(second)
    with pytest.raises(TensorExistsError):
        run(spark, tmp_path, "1.csv", *axes, value="count()")
    ref = run(spark, tmp_path, "2.parquet", *axes, value="count()", mode="overwrite")
    assert ref._meta.spec.labels["zone"].values[0] == "Bronx"


def test_further_columns_conditions_and_time_zones(spark, tmp_path):
    rows = [
        "when,day,n",
        "2013-07-04T03:30:00Z,4,1",
        "2013-07-04T12:00:00-04:00,NA,2",
        "2013-07-05 01:00,5,x",
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    ref = run(
        spark, tmp_path, "a.csv", "t=when:hour", "d:int", value="m", where="n <> 'x' and day <> 'NA'",
        column=("m=int(n) * 2", "d=int(day)"), timezone="America/New_York",
    )  # fmt: skip
    assert ref._meta.spec.labels["t"].start == "2013-07-03T23"
    assert ref[...].values.tolist() == [2]
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    ref = run(spark, tmp_path, "a.csv", "t=when:hour", value="count()", tensor_id="utc")
    assert ref.labels("t")[ref[...].coords[0]].astype(str).tolist() == [
        "2013-07-04T03", "2013-07-04T16", "2013-07-05T01",
    ]  # fmt: skip


def test_values_of_a_column_keep_their_type(spark, tmp_path):
    frame = pd.DataFrame({"i": [0, 1, 2], "k": [True, False, True]})
    values = {
        "f4": np.float32([1.5, 0, np.nan]), "i2": np.int16([-1, 0, 7]), "u8": np.uint64([0, 1, 2**64 - 1]),
        "b": np.array([True, False, True]),
    }  # fmt: skip
    pq.write_table(pa.table({**frame, **values}), tmp_path / "x.parquet")  # pandas makes NaN null
    for name, want in values.items():
        ref = run(spark, tmp_path, "x.parquet", "i", value=name, tensor_id=name)
        assert ref.dtype == want.dtype
        np.testing.assert_array_equal(ref[...].values, want)
    ref = run(spark, tmp_path, "x.parquet", "k", "i", value="i2", dtype="int8", tensor_id="small")
    assert (ref.dtype, ref.shape) == (np.int8, (2, 3))
    assert ref._meta.spec.labels["k"] == Listed((False, True))
    assert ref.sel(k=True, i=2) == 7


def test_records_are_quantised(spark, tmp_path):
    """Many of them become chunks, few of them stay elements; a later batch keeps the bound, too."""
    x = np.random.default_rng(0).standard_normal((6, 5))
    frame = pd.DataFrame({"i": np.repeat(range(6), 5), "k": [*range(5)] * 6, "v": x.reshape(-1)})
    frame.iloc[:15].to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[15:].to_csv(tmp_path / "b.csv", index=False)
    bound = {"quantize": '{"error": 0.3}'}
    ref = run(spark, tmp_path, "a.csv", "i", "k", value="v", **bound)
    ref = run(spark, tmp_path, "b.csv", "i", "k", value="v", mode="append", **bound)
    assert (ref.layout, ref.quantization.bound) == ("bsgs", 0.3)
    assert np.abs(ref[...].todense() - x).max() <= 0.3
    chunks = {"value": "v", "layout": "auto"}
    ref = run(spark, tmp_path, ["a.csv", "b.csv"], "i", "k", tensor_id="y", **chunks, **bound)
    assert (ref.layout, ref.quantization.bound) == ("ftsf", 0.3)
    assert np.abs(ref[...] - x).max() <= 0.3
    ref = run(
        spark, tmp_path, ["a.csv", "b.csv"], "i", "k", tensor_id="z", quantize="int8", **chunks
    )
    assert ref.quantization.kind == "int8"
    assert np.abs(ref[...] - x).max() <= np.abs(x).max() / 253
    with pytest.raises(tl.InvalidOptionError, match="'int8' needs arrays, and cells"):
        run(spark, tmp_path, "a.csv", "i", "k", tensor_id="w", quantize="int8", value="v")


def test_files_whose_columns_differ(spark, tmp_path):
    (tmp_path / "a.csv").write_text("i,j,v\n0,1,1.5\n1,1,2\n")
    (tmp_path / "b.csv").write_text("v,extra,j,i\n3,x,0,2\n")
    ref = run(spark, tmp_path, ["a.csv", "b.csv"], "i", "j", value="v")
    assert ref[...].todense().tolist() == [[0, 1.5], [0, 2], [3, 0]]
    pq.write_table(
        pa.table({"i": pa.array([0, 1], pa.int32()), "v": [1, 2]}), tmp_path / "a.parquet"
    )
    pq.write_table(pa.table({"v": [0.5], "i": pa.array([2.0])}), tmp_path / "b.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).rename(folder / name)
    (folder / "_SUCCESS").write_text("")
    ref = run(spark, tmp_path, "folder", "i", value="v", tensor_id="y")
    assert ref[...].todense().tolist() == [1, 2, 0.5]


def test_names_of_files_and_columns_are_taken_literally(spark, tmp_path):
    folder = tmp_path / "a {b} [c]%20*"
    folder.mkdir()
    (folder / "x y.csv").write_text('"a.b","c`d","NULL","e,f"\n0,1,2,3\n')
    ref = run(spark, tmp_path, f"{folder.name}/x y.csv", "i=a.b", "j=c`d", "k=NULL", value="e,f")
    assert (ref.shape, ref[0, 1, 2]) == ((1, 2, 3), 3)


def test_a_delta_table_is_read_at_one_version(spark, tmp_path):
    """What was deleted is not read, and neither is what comes later."""
    path = tmp_path / "kinds"
    for k in range(3):
        columns = {"kind": [f"k{k}", "all"], "n": [k, 7], "list": [[1], [2]]}
        write_deltalake(path, pa.table(columns), mode="append")
    DeltaTable(path).delete("kind = 'k1'")
    for version, want in (
        (None, {"all": 21, "k0": 0, "k2": 2}),
        (1, {"all": 14, "k0": 0, "k1": 1}),
    ):
        cells = CellOptions(("kind",), "sum(n)", source_version=version)
        name = f"v{version}"
        ingest.run(spark, str(tmp_path / "lake"), name, [str(path)], IngestOptions(cells=cells))
        ref = tl.open(tmp_path / "lake")[name]
        assert dict(zip(ref.labels("kind").tolist(), ref[...].todense(), strict=True)) == want
    table = str(tmp_path / "lake")
    for options, says in (
        (CellOptions(("kind",), "n", source_version=9), "has versions up to 3"),
        (CellOptions(("list",), "n"), "holds array<bigint>"),
        (CellOptions(("kind:int",), "n"), r"not an integer"),
    ):
        with pytest.raises(tl.TensorLakeError, match=says):
            ingest.run(spark, table, "y", [str(path)], IngestOptions(cells=options))
    (tmp_path / "x.csv").write_text("i\n1\n")
    with pytest.raises(tl.TensorLakeError, match="for Delta tables"):
        options = CellOptions(("i",), "count()", source_version=0)
        ingest.run(spark, table, "y", [str(tmp_path / "x.csv")], IngestOptions(cells=options))
    assert list(tl.open(table)) == ["v1", "vNone"]
