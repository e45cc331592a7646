"""Datasets through their door: what is given comes back, NumPy's rules, and mistakes."""

import datetime as dt
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl

COLUMNS = {
    "image": tl.types.Image("jpeg"),
    "label": tl.types.ClassLabel(["cat", "dog"]),
    "size": "int32",
    "training/boxes": tl.types.BoundingBox("xyxy"),
    "training/name": tl.types.Text(),
}


def boxes(number):
    return np.array([[0, 0, 1 + k, 2] for k in range(number % 3)], np.float32).reshape(-1, 4)


@pytest.fixture
def ds(tmp_path, jpegs):
    found = tl.dataset(tmp_path / "ds", COLUMNS)
    found.extend(
        {
            "image": jpegs,
            "label": [["cat", "dog", None][n % 3] for n in range(30)],
            "size": np.arange(30),
            "training/boxes": [boxes(n) for n in range(30)],
            "training/name": [f"n{n}" for n in range(30)],
        }
    )
    return found


def test_one_sample(ds, jpegs):
    found = ds[4]
    assert found["label"] == 1
    assert found["size"] == 4
    assert found["training/name"] == "n4"
    np.testing.assert_array_equal(found["training/boxes"], boxes(4))
    assert found["image"].shape == (24, 32, 3)
    assert ds["image"].encoded(4) == jpegs[4]
    assert ds[2]["label"] is None


@pytest.mark.parametrize(
    "key",
    [
        slice(-3, None),
        slice(None, None, -7),
        [7, 1, 1],
        np.array([2, -1]),
        np.arange(30) % 2 == 0,
        slice(40, 50),
        [],
    ],
)
def test_several_samples_are_columns(ds, key):
    found = ds[key]
    wanted = np.arange(30)[key if isinstance(key, slice) or len(key) else slice(0)]
    assert [*found] == [*COLUMNS]
    assert np.asarray(found["size"]).tolist() == wanted.tolist()
    assert found["training/name"] == [f"n{n}" for n in wanted]
    for got, number in zip(found["training/boxes"], wanted, strict=True):
        np.testing.assert_array_equal(got, boxes(number))


def test_what_was_read_can_be_extended_by(ds, tmp_path):
    other = tl.dataset(tmp_path / "other", COLUMNS)
    other.extend(ds[5:9])
    assert other["training/name"][:] == ["n5", "n6", "n7", "n8"]
    assert other["label"][:] == ds["label"][5:9]


def test_columns(ds):
    np.testing.assert_array_equal(ds["size"][:], np.arange(30))
    assert ds["size"][-1] == 29
    np.testing.assert_array_equal(ds["image"][5, 10:20, ::2], ds["image"][5][10:20, ::2])
    assert len(ds["image"]) == 30
    assert [*ds["size"]] == [*range(30)]
    assert repr(ds["label"]) == f"<Column 'label': {ds['label'].type}, 30 samples>"


def test_groups(ds):
    group = ds["training"]
    assert [*group.schema] == ["boxes", "name"]
    assert group["name"][3] == "n3"
    assert group[3]["name"] == "n3"
    assert [*group[:2]] == ["boxes", "name"]
    assert len(group) == 30


def test_names_are_in_a_dataset_and_in_its_groups(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"a": "int32", "g/b": "int32", "g/h/c": "int32"})
    for given in ({}, {"a": [1]}):
        if given:
            ds.extend(given)
        assert [name in ds for name in ("a", "g", "g/b", "g/h", "g/h/c")] == [True] * 5
        assert [name in ds for name in ("b", "g/", "sid", 0, None)] == [False] * 5
        assert [name in ds["g"] for name in ("b", "h", "h/c", "a", 0)] == [True] * 3 + [False] * 2


def test_iteration_gives_samples(ds):
    names = [sample["training/name"] for sample in ds]
    assert names == [f"n{n}" for n in range(30)]


def test_numbers_are_never_given_twice(ds):
    ds.append({"size": 1})
    assert ds.sids.tolist() == [*range(31)]
    assert ds.sample(30)["size"] == 1
    with pytest.raises(tl.SampleNotFoundError, match="no sample with sid 31 at version 2"):
        ds.sample(31)
    assert not ds.sids.flags.writeable


def test_a_handle_shows_its_version_until_it_is_refreshed(ds):
    other = tl.dataset(ds.uri)
    ds.append({"size": 7})
    assert (len(other), len(ds)) == (30, 31)
    other.refresh()
    assert len(other) == 31
    assert other["size"][-1] == 7


def test_a_version_is_for_reading(ds):
    ds.append({"size": 7})
    old = tl.dataset(ds.uri, version=1)
    assert len(old) == 30
    with pytest.raises(tl.InvalidOptionError, match=r"shows version 1 .* for reading only"):
        old.append({"size": 8})
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        old.refresh()


@pytest.mark.parametrize("form", ["dicts", "nested", "iterator", "pandas", "arrow", "batch"])
def test_all_forms_of_samples(tmp_path, form):
    ds = tl.dataset(tmp_path, {"x": "int64", "g/y": tl.types.Text()})
    dicts = [{"x": n, "g/y": str(n)} for n in range(2500)]
    table = pa.table({"x": range(2500), "g/y": [str(n) for n in range(2500)]})
    given = {
        "dicts": dicts,
        "nested": {"x": [*range(2500)], "g": {"y": [str(n) for n in range(2500)]}},
        "iterator": iter(dicts),
        "pandas": pd.DataFrame(dicts),
        "arrow": table,
        "batch": table.to_batches()[0],
    }[form]
    ds.extend(given)
    assert ds.version == 1
    np.testing.assert_array_equal(ds["x"][:], np.arange(2500))
    assert ds["g/y"][:] == [str(n) for n in range(2500)]


def test_columns_are_guessed_from_the_first_samples(tmp_path):
    ds = tl.dataset(tmp_path)
    assert len(ds) == 0
    ds.extend({"x": np.arange(3), "t": ["a", "b", "c"]} for _ in range(4))
    assert ds.schema["x"] == tl.types.Tensor("int64", (3,))
    assert np.array(ds["x"][:]).tolist() == [[0, 1, 2]] * 4


def test_plain_delta_reads_the_columns(ds):
    found = DeltaTable(ds.uri).to_pyarrow_table()
    assert found.column("label").to_pylist()[:3] == [0, 1, None]
    assert found.column("training")[4]["name"].as_py() == "n4"


# ---------------------------------------------------------------------- mistakes


def refused(ds, given, error, match):
    """Whether samples are an error that says what is wrong, and leave the dataset as it was."""
    before = ds.version
    with pytest.raises(error, match=match):
        ds.extend(given)
    ds.refresh()
    assert (ds.version, len(ds)) == (before, 30)


def test_mistakes_in_samples(ds, jpegs):
    refused(
        ds, {"size": [1], "label": [0, 1]}, tl.InvalidSampleError, "'size' has 1, 'label' has 2"
    )
    refused(ds, {"sise": [1]}, tl.InvalidSampleError, "no column 'sise'.*size")
    refused(ds, [{"size": 1}, 5], tl.InvalidSampleTypeError, "sample 1 is int")
    refused(ds, 5, TypeError, "not int")
    refused(ds, {"size": 5}, TypeError, "use append for one sample")
    refused(ds, [{"label": "cow"}], ValueError, "column 'label', sample 0.*cow")
    refused(ds, [{"size": 1}, {"size": "x"}], ValueError, "column 'size', sample 1")
    refused(ds, [{"image": jpegs[0][:-9]}], ValueError, "column 'image', sample 0")
    refused(ds, [{"training": {"boxes": np.array([[5, 5, 1, 1]])}}], ValueError, "training/boxes")


def test_mistakes_in_keys(ds):
    with pytest.raises(IndexError, match="sample 30 is out of bounds for the dataset; it has 30"):
        ds[30]
    with pytest.raises(KeyError, match=r"no column .imgae..*image"):
        ds["imgae"]
    with pytest.raises(TypeError, match="does not choose samples"):
        ds[1.5]
    for several in (["size", "image"], ("image", 3), pd.Index(["size"])):  # as pandas takes them
        with pytest.raises(tl.InvalidKeyTypeError, match=r"name one column at a time.*to_pandas"):
            ds[several]
    with pytest.raises(IndexError, match="the mask has 3 entries"):
        ds[[True, False, True]]
    with pytest.raises(TypeError, match="takes no"):
        ds["size"][3, 4]
    with pytest.raises(TypeError, match="has no encoded bytes"):
        ds["size"].encoded(3)


def test_mistakes_at_the_door(ds, tmp_path):
    with pytest.raises(tl.FormatError, match="has other columns"):
        tl.dataset(ds.uri, {"size": "int64"})
    others = {**COLUMNS, "label": tl.types.ClassLabel(["cat"]), "imge": "int8"}
    del others["size"]
    with pytest.raises(tl.FormatError) as error:
        tl.dataset(ds.uri, others)
    for said in (
        "'label' is ClassLabel(('cat', 'dog')), not ClassLabel(('cat',))",
        "'imge'; did you mean 'image'",
        "'size' is not among them",
    ):
        assert said in str(error.value)
    with pytest.raises(FileNotFoundError):
        tl.dataset(tmp_path / "none", create=False)
    with pytest.raises(tl.FormatError, match="is a dataset of samples"):
        tl.open(ds.uri)
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.arange(3))
    with pytest.raises(tl.FormatError, match="is a lake of tensors"):
        tl.dataset(lake.uri)
    assert tl.dataset(ds.uri, COLUMNS).version == ds.version
    assert tl.dataset(ds.uri, dict(reversed(COLUMNS.items()))).schema == ds.schema


def test_one_mistake_is_named(tmp_path):
    with pytest.raises(
        tl.InvalidOptionError, match=r"schema='x' is str; give a dict of names and types"
    ):
        tl.dataset(tmp_path / "none", "x")
    with pytest.raises(tl.InvalidOptionError, match=r"schema=3 is int; give a dict"):
        tl.dataset(tmp_path / "none", 3)
    ds = tl.dataset(tmp_path / "ds", {"n": "int32"})
    for transaction in ("x", ("nightly", "7"), ("", 7)):
        with pytest.raises(tl.InvalidOptionError, match=r"transaction=|the name ''"):
            ds.extend({"n": [1]}, transaction=transaction)
    assert len(ds) == 0
    ds.extend({"n": [1]}, transaction=("nightly", 7))
    ds.extend({"n": [1]}, transaction=("nightly", 7))
    assert len(ds) == 1
    with pytest.raises(tl.InvalidKeyTypeError, match=r"sid='x' is str; a sid is a whole number"):
        ds.sample("x")
    assert ds.sample(np.int64(ds.sids[0])) == {"n": 1}


def test_what_a_first_read_does_not_need_is_not_imported(ds):
    code = f"""
import sys
import tensorlake_spark as tl
ds = tl.dataset({str(ds.uri)!r})
assert ds["size"][7] == 7 and ds["image"].encoded(7)
print([name for name in ("sqlglot", "duckdb", "numba", "pyspark", "torch") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("links", [3, "s3://bucket", ["bucket"]])
def test_rules_of_links_of_another_kind(tmp_path, links):
    with pytest.raises(tl.InvalidOptionError, match=r"is not a LinkRules; give one"):
        tl.dataset(tmp_path / "ds", {"a": "int64"}, links=links)
    with pytest.raises(tl.InvalidOptionError, match="links and allow_http both set"):
        tl.dataset(tmp_path / "ds", {"a": "int64"}, links=tl.LinkRules(), allow_http=["a.example"])


@pytest.mark.parametrize(
    "empty", [[], {}, iter([]), pd.DataFrame(), pa.table({})], ids=lambda e: type(e).__name__
)
def test_no_samples_make_no_dataset_without_columns(tmp_path, empty):
    """It was made with no columns, so that no later sample had one."""
    ds = tl.dataset(tmp_path / "ds")
    ds.extend(empty)
    assert (ds.version, os.path.exists(tmp_path / "ds")) == (None, False)
    ds.extend({"a": [1, 2]})
    assert ds["a"][:].tolist() == [1, 2]


def test_what_has_no_samples_is_told_with_and_without_a_schema(tmp_path):
    for number, schema in enumerate((None, {"a": "int8"})):
        ds = tl.dataset(tmp_path / str(number), schema)
        for given in (5, None, "ab", b"ab", tmp_path, object()):
            with pytest.raises(
                tl.InvalidSampleTypeError, match="samples are a mapping of columns, a list or"
            ):
                ds.extend(given)
        with pytest.raises(
            tl.InvalidSampleTypeError, match="column 'a' is int; a column has one value a sample"
        ):
            ds.extend({"a": 1})
    ds = tl.dataset(tmp_path / "none")
    with pytest.raises(
        tl.InvalidOptionError, match="no values to tell the columns by; give schema="
    ):
        ds.extend([{}, {}])
    with pytest.raises(
        tl.UnknownLabelError, match="has no column 'a'; it has none yet: extend it first"
    ):
        ds["a"]
    for schema in ([], (), 5, "a"):
        with pytest.raises(tl.InvalidOptionError, match="give a dict of names and types"):
            tl.dataset(tmp_path / "none", schema)
    assert not os.path.exists(tmp_path / "none")


def test_times_of_the_last_millisecond_of_all(tmp_path):
    last = dt.datetime.max.replace(tzinfo=dt.timezone.utc)
    times = [
        last,
        last - dt.timedelta(microseconds=999),
        None,
        dt.datetime(1, 1, 1, tzinfo=last.tzinfo),
    ]
    ds = tl.dataset(tmp_path, {"at": "timestamp"})
    ds.extend({"at": times})
    write_deltalake(
        tmp_path,
        pa.table({"sid": [10], "at": pa.array([last], pa.timestamp("us", "UTC"))}),
        mode="append",
    )
    ds.refresh()
    assert [ds["at"][n] for n in range(5)] == [*times, last]
    found = ds.to_arrow(["sid"], where="at >= '9999-12-31 23:59:59.999999'")
    assert found["sid"].to_pylist() == [0, 10]
    assert ds.check().ok


def test_the_table_of_one_dataset_makes_another(tmp_path, ds):
    table = ds.to_arrow()
    for given in (table, table.to_reader(max_chunksize=2), table.slice(0, 0)):
        copy = tl.dataset(str(tmp_path / f"copy-{type(given).__name__}-{len(table)}-{id(given)}"))
        copy.extend(given)
        assert copy.schema == ds.schema
    few = tl.dataset(str(tmp_path / "few"))
    few.extend(table.append_column("more", pa.array(range(len(table)))))
    assert few.schema == tl.types.SampleSchema({**ds.schema, "more": "int64"})
    assert few["image"].encoded(0) == ds["image"].encoded(0)
    np.testing.assert_array_equal(few["training/boxes"][2], ds["training/boxes"][2])
    strange = table.schema.field("size").with_metadata({"tensorlake.type": '{"kind":"future"}'})
    with pytest.raises(tl.FormatError, match=r"column 'size'.*'future'"):
        tl.dataset(str(tmp_path / "future")).extend(
            table.select(["size"]).cast(pa.schema([strange]))
        )


def test_numbers_of_a_few_samples_are_read_of_their_files_alone(tmp_path):
    """Where samples were deleted, the log does not tell the numbers of those that are left."""
    ds = tl.dataset(tmp_path / "ds", {"n": "int32"})
    for first in (0, 5, 10):
        ds.extend({"n": range(first, first + 5)})
    ds.delete([1, 6, 11])
    for number in (0, 2):
        (tmp_path / "ds" / ds.stored.files.paths[number]).unlink()
    now = tl.dataset(tmp_path / "ds")
    assert now.to_pandas(where="n BETWEEN 5 AND 9").index.tolist() == [5, 7, 8, 9]
    made = now.query("SELECT n FROM dataset WHERE n BETWEEN 5 AND 8").materialize(tmp_path / "copy")
    assert made["n"][:].tolist() == [5, 7, 8]
