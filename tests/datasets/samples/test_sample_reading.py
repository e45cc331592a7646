"""Columns of samples in runs, and as arrays."""

import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples import sample_reading
from tensorlake_spark.datasets.samples.sample_reading import (
    decoded,
    read_column,
    read_table,
    runs_of,
)
from tensorlake_spark.datasets.types.schema import column_of


def test_runs_follow_the_bytes_of_the_columns_that_are_asked(tmp_path):
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("uint8"), "n": "int32"})
    ds.extend({"x": [np.zeros(1 << 18, np.uint8)] * 200, "n": np.arange(200)})
    large = [len(run) for run in runs_of(ds.parts, ["x"], np.arange(200))]
    assert sum(large) == 200
    assert max(large) << 18 <= 2 * sample_reading.BATCH_BYTES
    assert [len(run) for run in runs_of(ds.parts, ["n"], np.arange(200))] == [200]


def test_a_column_with_a_null_is_a_list(tmp_path):
    ds = tl.dataset(tmp_path, {"n": "int32"})
    ds.extend({"n": [1, None, 3]})
    assert isinstance(read_column(ds.parts, "n", np.arange(3)), pa.Array)
    assert ds["n"][:] == [1, None, 3]
    assert decoded(read_column(ds.parts, "n", np.array([0, 2])), ds.schema["n"]).tolist() == [1, 3]


def test_a_table_has_columns_from_rows_and_from_elsewhere_in_the_order_of_the_schema(tmp_path):
    apart = tl.types.Tensor("int32", apart=True)
    columns = {"x": apart, "n": "int32", "g": {"y": apart, "m": "int32"}, "z": apart}
    ds = tl.dataset(tmp_path, columns)
    rows = np.arange(6)
    samples = [{"x": [n], "n": n, "g": {"y": [10 * n], "m": -n}, "z": None} for n in rows]
    ds.extend(samples)
    at = np.array([4, 1])
    for names in (["z", "g/y", "n", "x"], ["x"], ["g/y"], ["g/m"], ["x", "z"], ["g/y", "g/m"]):
        table = read_table(ds.parts, names, at)
        assert table.column_names == [
            c for c in columns if any(n.split("/")[0] == c for n in names)
        ]
        for name in names:
            found = ds.type_of(name).decode(column_of(table, name).combine_chunks())
            wanted = ds[name][at]
            assert [v if v is None else np.ravel(v).tolist() for v in found] == [
                v if v is None else np.ravel(v).tolist() for v in wanted
            ]
    assert column_of(read_table(ds.parts, ["g/y"], at), "g/y").null_count == 0
    assert read_table(ds.parts, ["x", "n"], at[:0]).num_rows == 0


def test_rows_are_not_read_where_all_columns_are_apart(tmp_path, monkeypatch):
    apart = tl.types.Tensor("int32", apart=True)
    ds = tl.dataset(tmp_path, {"x": apart, "y": apart})
    ds.extend({"x": [[1], [2]], "y": [[3], [4]]})
    parts = tl.dataset(tmp_path).parts
    asked = []
    rows = parts.stored.rows
    monkeypatch.setattr(parts.stored, "rows", lambda *args: asked.append(args) or rows(*args))
    assert read_table(parts, ["x", "y"], np.arange(2)).num_rows == 2
    assert asked == []


def test_two_columns_of_one_group_lie_elsewhere(tmp_path):
    apart = tl.types.Tensor("int32", apart=True)
    ds = tl.dataset(tmp_path, {"g": {"x": apart, "n": "int32", "h": {"y": apart, "z": apart}}})
    samples = [{"g/x": [n], "g/n": n, "g/h/y": [2 * n], "g/h/z": [3 * n]} for n in range(3)]
    ds.extend(samples)
    assert [{name: np.atleast_1d(v).tolist() for name, v in one.items()} for one in ds] == [
        {name: np.atleast_1d(v).tolist() for name, v in one.items()} for one in samples
    ]
    assert ds[1]["g/h/z"].tolist() == [3]
    found = ds.to_arrow(["g/h/y", "g/x"])["g"].chunk(0)
    assert found.field("h").field("y").field("shape").to_pylist() == [[1]] * 3


def test_runs_open_no_files_but_those_of_their_samples(tmp_path):
    """The first four files told how large a sample is, also to who read and changed others."""
    ds = tl.dataset(
        tmp_path, {"x": tl.types.Tensor("uint8"), "far": tl.types.Tensor("uint8", apart=True)}
    )
    for size in (1, 1, 1 << 18):
        ds.extend({name: [np.zeros(size, np.uint8)] * 100 for name in ("x", "far")})
    seen = tl.dataset(tmp_path, create=False)
    late, table = np.arange(200, 300), seen.parts.table_of("far")
    assert max(len(run) for run in runs_of(seen.parts, ["x"], late)) <= 64
    assert max(len(run) for run in runs_of(seen.parts, ["far"], late)) <= 64
    opened = [[file.is_opened for file in one.files] for one in (seen.stored, table)]
    assert opened == [[False, False, True]] * 2
    assert [*runs_of(seen.parts, ["x"], late[:0])] == []


def _damaged(ds, what):
    """Change the middle of some bytes where they lie in a file of a dataset."""
    for file in pathlib.Path(ds.uri).rglob("*.parquet"):
        data = file.read_bytes()
        at = data.find(what)
        if at >= 0:
            middle = at + len(what) // 2
            file.write_bytes(data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :])
            return
    raise AssertionError("no file has these bytes")


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    "read",
    [
        lambda ds: ds["image"][7], lambda ds: ds["image"][-3], lambda ds: ds["image"][5:9],
        lambda ds: ds["image"][[9, 7]], lambda ds: ds["image"][7, :2], lambda ds: ds["image"].padded(),
        lambda ds: list(ds["image"]), lambda ds: ds[7], lambda ds: ds[6:], lambda ds: ds.sample(7),
        list, lambda ds: ds.to_pandas(["image"], where="n = 7"),
    ],
)  # fmt: skip
def test_a_damaged_sample_is_named_by_its_position(tmp_path, read, apart):
    """It was counted from the first sample that was read together with it, without its column."""
    ds = tl.dataset(tmp_path / "ds", {"image": tl.types.Image("png", apart=apart), "n": "int32"})
    images = np.random.default_rng(0).integers(0, 256, (10, 8, 8, 3), np.uint8)
    ds.extend({"image": images, "n": range(10)})
    _damaged(ds, ds["image"].encoded(7))
    ds = tl.dataset(tmp_path / "ds")
    with pytest.raises(tl.CorruptDataError, match=r"column 'image', sample 7: its \d+ bytes are"):
        read(ds)


def test_a_damaged_item_of_a_list_is_named_by_its_sample(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"pages": tl.types.Sequence(tl.types.Image("png"))})
    pages = np.random.default_rng(0).integers(0, 256, (4, 3, 8, 8, 3), np.uint8)
    ds.extend({"pages": [list(some) for some in pages]})
    (found,) = pathlib.Path(ds.uri).glob("*.parquet")
    png = pq.read_table(found)["pages"][2][1]["data"].as_py()
    _damaged(ds, png)
    ds = tl.dataset(tmp_path / "ds")
    for key in (2, slice(1, 3)):
        with pytest.raises(tl.CorruptDataError, match=r"column 'pages', sample 2: its \d+ bytes"):
            ds["pages"][key]
