"""Files are looked at when they are asked for, and what is kept of them has a bound."""

import json

import numpy as np
import pyarrow as pa
import pytest
from stored_rows import SCHEMA, everything, put, rows, same

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import commit_name
from tensorlake_spark.delta.samples import leaf_columns, sample_files
from tensorlake_spark.delta.samples.leaf_columns import SmallColumns
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage


def test_files_come_by_number_and_by_slice(stored):
    files = stored.files
    assert files[0] is files[0]
    assert files[-1].path == files.paths[-1]
    assert [file.path for file in files[1:3]] == files.paths[1:3]
    assert [file.path for file in files] == files.paths
    with pytest.raises(IndexError):
        files[len(files)]


def test_few_files_are_kept(stored, monkeypatch):
    """What was left out is looked at again, and says the same."""
    monkeypatch.setattr(sample_files, "KEPT_FILES", 2)
    for _ in range(2):
        assert same(stored.rows(None, np.arange(800)), everything())
    assert len(stored.files._files) == 2


@pytest.mark.local_disk
@pytest.mark.parametrize(("said", "is_read"), [(2, True), (None, True), (1, False), (3, False)])
def test_a_file_has_as_many_rows_as_the_log_says(tmp_path, said, is_read):
    """Else rows are left out, or those of another sample are taken, without a word."""
    ds = tl.dataset(tmp_path / "ds")
    for first in (0, 2):
        ds.extend({"x": [first, first + 1]})
    log = tmp_path / "ds" / commit_name(1)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    add["stats"] = json.dumps({**json.loads(add["stats"]), "numRecords": said})
    log.write_text("\n".join(map(json.dumps, actions)))
    found = tl.dataset(tmp_path / "ds")
    reads = (
        lambda: found["x"][:].tolist(),
        lambda: found.query("SELECT x FROM dataset")[:]["x"].tolist(),
    )
    for read in reads:
        if is_read:
            assert read() == [0, 1, 2, 3]
            continue
        with pytest.raises(tl.CorruptDataError, match=f"has 2 rows, but the Delta log says {said}"):
            read()


def test_small_columns_are_kept_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(leaf_columns, "KEPT_BYTES", 100)
    small = SmallColumns()
    one = pa.table({"x": np.arange(6)})  # 48 bytes
    small.keep("a", ("x",), one)
    small.keep("b", ("x",), one)
    small.keep("b", ("x",), one)
    assert small.get("a", ("x",)) is one
    small.keep("c", ("x",), one)
    kept = [path for path in "abc" if small.get(path, ("x",)) is not None]
    assert kept == ["a", "c"], "b was not asked for since"


def test_many_files_of_an_object_store_are_read_at_once(s3, monkeypatch):
    """Footers together, then of each file the columns of all row groups."""
    storage = Storage("s3://bucket/many", s3.options)
    create_samples_table(storage, SCHEMA)
    put(storage, rows(0, 500), row_group_bytes=2000)
    found = StoredSamples(put(storage, rows(500, 300), row_group_bytes=3000, file_bytes=9000))
    assert len(found.files) > 2
    assert same(found.rows(None, np.arange(800)), everything())
    with monkeypatch.context() as patch:  # what is known is not asked of other threads again
        patch.setattr(sample_files, "io_threads", None)
        assert found.files.footers(range(len(found.files))) == list(found.files)
    anew = StoredSamples(found.snapshot)
    few = anew.rows([("label",), ("image", "height")], np.arange(800))
    assert (
        few.column("label").combine_chunks().equals(everything().column("label").combine_chunks())
    )
    assert all(file.has_small(("image.height", "label")) for file in anew.files)
    leaf = found.leaf(("image", "data"))
    wanted = everything().column("image").to_pylist()
    for number in (6, 6, 7, 3, 5):
        value = found.value(number, leaf)
        said = (wanted[number] or {}).get("data")
        assert (None if value is None else bytes(value)) == said


@pytest.mark.parametrize("left", [0.0, 0.5, 0.999])
def test_a_file_of_an_object_store_that_was_cut_is_named(s3, left):
    """Whether its footer would begin behind its end or not: a cut file is no refusal of the store."""
    uri = f"bucket/cut {left}"
    ds = tl.dataset(f"s3://{uri}", {"x": "bytes"}, storage_options=s3.options)
    ds.extend({"x": [np.random.default_rng(n).bytes(20_000) for n in range(10)]})
    (path,) = ds.stored.files.paths
    with s3.filesystem().open_input_file(f"{uri}/{path}") as file:
        data = file.read()
    with s3.filesystem().open_output_stream(f"{uri}/{path}") as file:
        file.write(data[: int(left * len(data))])
    again = tl.dataset(f"s3://{uri}", storage_options=s3.options)
    with pytest.raises(
        tl.CorruptDataError, match=rf"{path} cannot be read: it ends (before|after)"
    ):
        again[0]
    with pytest.raises(
        tl.CorruptDataError, match=rf"{path} cannot be read: it ends (before|after)"
    ):
        next(iter(again.loader(4)))
