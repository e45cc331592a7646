"""What lies beside the samples' rows, read at the versions that belong to them; and what is said when it is gone."""

import shutil

import numpy as np
import pytest

import tensorlake_spark as tl

COLUMNS = {
    "label": "int32",
    "scan": tl.types.Tensor("uint8"),
    "image": tl.types.Image("png", apart=True),
}


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=100)
    found.extend(
        {
            "label": [1, 2],
            "scan": [np.zeros(300, "u1"), np.arange(200, dtype="u1")],
            "image": [np.full((2, 3), n, "u1") for n in range(2)],
        }
    )
    return found


def test_a_lake_that_somebody_deleted(ds):
    shutil.rmtree(f"{ds.uri}/_tensors")
    with pytest.raises(tl.MissingDataError, match="needs version 1 of its folder _tensors"):
        tl.dataset(ds.uri)["scan"][0]
    assert tl.dataset(ds.uri)["label"][:].tolist() == [1, 2]


def test_a_column_that_somebody_deleted(ds):
    shutil.rmtree(f"{ds.uri}/_columns/image")
    with pytest.raises(tl.MissingDataError, match="needs version 1 of its folder _columns/image"):
        tl.dataset(ds.uri)["image"][0]


def test_a_version_of_a_column_that_is_no_more(ds):
    shutil.rmtree(f"{ds.uri}/_columns/image/_delta_log")
    shutil.copytree(f"{ds.uri}/_tensors/_delta_log", f"{ds.uri}/_columns/image/_delta_log")
    with pytest.raises(tl.FormatError):
        tl.dataset(ds.uri)["image"][0]


def test_a_row_that_says_tiles_where_there_are_none(ds):
    lake = tl.open(f"{ds.uri}/_tensors")
    lake.delete("scan/1")
    ds.append({"scan": np.ones(200, "u1")})  # whose commit pins a later version of the lake
    assert ds["scan"][0].sum() == 0
    assert ds["scan"][2].sum() == 200
    with pytest.raises(
        tl.MissingDataError, match=r"sample 1 of column 'scan' is kept as tiles.*'scan/1'"
    ):
        ds["scan"][1, 3]


def test_tiles_that_do_not_fit_their_row(ds):
    lake = tl.open(f"{ds.uri}/_tensors")
    lake.write("scan/1", np.zeros(100, "i4"), mode="overwrite")
    ds.append({"scan": np.ones(200, "u1")})
    with pytest.raises(
        tl.CorruptDataError, match=r"is uint8 of shape \(200,\) by its row.*int32 of shape \(100,\)"
    ):
        ds["scan"][1]


def test_many_large_samples_are_read_in_any_order(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"scan": tl.types.Tensor("int16")}, tile_bytes=100)
    ds.extend({"scan": np.arange(90 * 60, dtype="i2").reshape(90, 60)})
    for place in [*range(89, -1, -1), 5, 80]:  # more than are kept open
        assert ds["scan"][place, 1:3].tolist() == [place * 60 + 1, place * 60 + 2]


def test_samples_that_plain_delta_added_have_no_apart_value(ds):
    import pyarrow as pa
    from deltalake import write_deltalake

    row = pa.table({"sid": pa.array([77], pa.int64()), "label": pa.array([9], pa.int32())})
    write_deltalake(ds.uri, row, mode="append", schema_mode="merge")
    found = tl.dataset(ds.uri)
    assert found["image"][2] is None
    assert found["scan"][2] is None
    assert found["image"][1].tolist() == [[1] * 3] * 2
    assert [x is None for x in found["image"][[2, 0, 1]]] == [True, False, False]
