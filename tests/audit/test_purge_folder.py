"""What else lies in a table's folder: other tables, and files of others, stay what they are."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored import forget

import tensorlake_spark as tl


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


def inner_of(lake, x, name="sub"):
    """Another lake in a folder of this one, with the same tensors, an orphan and old versions."""
    inner = tl.open(f"{lake.uri}/{name}")
    inner.write("x", x + 1, block_shape=(1, 400), codec="raw")
    inner.write("k", x, block_shape=(1, 400), codec="raw")
    inner.write("x", x + 2, mode="overwrite", block_shape=(1, 400), codec="raw")
    Path(inner.uri, "part-orphan.parquet").write_bytes(b"of a writer at work")
    return inner


def contents(lake):
    return {p: p.read_bytes() for p in Path(lake.uri).rglob("*") if p.is_file()}


@pytest.mark.local_disk
@pytest.mark.parametrize("name", ["sub", "deep/er", "\u00e4 b#c", "month=1"])
def test_a_lake_in_a_folder_of_another_is_left_alone(lake, x, name):
    lake.write("x", x, block_shape=(1, 400), codec="raw")
    lake.write("k", x, block_shape=(1, 400), codec="raw")
    inner = inner_of(lake, x, name)
    before = contents(inner)
    Path(lake.uri, "part-orphan.parquet").write_bytes(b"left by a writer")
    assert [f.place for f in lake.check().findings] == ["part-orphan.parquet"]
    lake.delete("k")
    gone = lake.vacuum(0, dry_run=True)
    assert len(gone) == 2
    assert "part-orphan.parquet" in gone
    assert lake.vacuum(0) == gone
    assert len([*Path(lake.uri).glob("*.parquet")]) == 1
    receipt = lake.purge("x", now=True)
    assert receipt.verified, receipt.reason
    assert len(receipt.deleted) == 1
    assert contents(inner) == before
    np.testing.assert_array_equal(inner["x"][:], x + 2)
    np.testing.assert_array_equal(tl.open(inner.uri, version=1)["x"][:], x + 1)
    assert len(inner.vacuum(0)) == 2
    assert inner.purge("x", now=True).verified


@pytest.mark.local_disk
@pytest.mark.parametrize("part", [None, "0"])
def test_a_file_of_others_with_such_an_id_stays_and_is_told(lake, x, part):
    lake.write("x", x, block_shape=(1, 400), codec="raw")
    lake.write("z", x + 1, block_shape=(1, 400), codec="raw")
    foreign = Path(lake.uri, "labels.parquet")
    pq.write_table(pa.table({"id": ["x", "y"], "label": [1, 2]}), foreign)
    Path(lake.uri, "numbers.parquet").write_bytes(foreign.read_bytes())
    pq.write_table(pa.table({"id": [1, 2]}), Path(lake.uri, "numbers.parquet"))
    receipt = lake.purge("x", part, now=True)
    assert not receipt.verified
    ((path, why),) = receipt.uncertified
    assert path == "labels.parquet"
    assert "it has no column nnz, seq" in why
    assert len(receipt.deleted) == 1
    assert foreign.exists()
    foreign.unlink()
    assert lake.purge("x", part, now=True).verified
    np.testing.assert_array_equal(lake["z"][:], x + 1)


@pytest.mark.local_disk
def test_an_old_file_with_unreadable_payloads_does_not_stop_a_purge(lake, x):
    lake.write("x", x, block_shape=(1, 400), codec="raw")
    (old,) = Path(lake.uri).glob("*.parquet")
    lake.write("x", x + 1, mode="overwrite", block_shape=(1, 400), codec="raw")
    group = pq.read_metadata(old).row_group(0)
    values = next(
        c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "values"
    )
    data = bytearray(old.read_bytes())
    data[values.data_page_offset : values.data_page_offset + 64] = bytes(64)
    old.write_bytes(data)
    forget()
    receipt = lake.purge("x", now=True)
    assert not receipt.verified
    assert [path for path, _ in receipt.uncertified] == [old.name]
    assert len(receipt.deleted) == 1
    assert list(lake) == []
    old.unlink()
    assert lake.purge("x", now=True).verified


@pytest.mark.local_disk
def test_rows_that_a_write_of_features_has_put_aside_are_told(lake):
    """They are compressed, and do not say of which table they are: a search of bytes finds nothing in them."""
    secret = pa.table({"age": np.arange(5000.0)})
    lake.features("ctr").write(secret)
    lake.write("other", np.ones(3))
    aside = Path(lake.uri, "part-0123456789abcdef-0.arrow")
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(str(aside), secret.schema, options=packed) as file:
        file.write_table(secret)
    receipt = lake.purge("ctr/float64", now=True)
    assert not receipt.verified
    ((path, why),) = receipt.uncertified
    assert path == aside.name
    assert "a write of features has put aside" in why
    assert aside.exists()
    lake.vacuum(0)
    assert not aside.exists()
    assert lake.purge("ctr/float64", now=True).verified


@pytest.mark.local_disk
@pytest.mark.parametrize("is_sample", [False, True])
def test_where_a_link_leads_to_is_told_and_not_certified(tmp_path, x, is_sample):
    """Only the link would be deleted, and the bytes would stay where they are."""
    if is_sample:
        table = tl.dataset(tmp_path / "table", {"n": "int32"})
        table.extend({"n": [1, 2]})
    else:
        table = tl.open(tmp_path / "table")
        table.write("x", x, block_shape=(1, 400), codec="raw")
    (link,) = Path(table.uri).glob("*.parquet")
    target = link.rename(tmp_path / "elsewhere.parquet")
    link.symlink_to(target)
    what = [0] if is_sample else "x"
    receipt = table.purge(what, now=True)
    assert not receipt.verified
    assert receipt.reason == "1 files cannot be certified"
    assert receipt.deleted == ()
    ((path, why),) = receipt.uncertified
    assert path == link.name
    assert str(target) in why
    assert table.purge(what, now=True).uncertified == receipt.uncertified
    target.unlink()
    assert table.purge(what, now=True).verified
