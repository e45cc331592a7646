"""What lies in a table's folder, and the versions that name it."""

from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.delta.files.table_folder import (
    Naming,
    everything,
    inner_tables,
    listing,
    named,
)
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


def test_a_file_is_needed_from_the_version_that_added_it_to_the_one_that_removed_it(lake):
    lake.write("x", np.arange(3))  # version 1
    (first,) = (p.name for p in Path(lake.uri).glob("*.parquet"))
    lake.write("y", np.arange(3))
    lake.write("x", np.arange(4), mode="overwrite")  # version 3
    storage = Storage(lake.uri)
    found = named(storage, listing(storage))
    assert found[first].versions(lake.version) == {1, 2}
    assert found[first].removed_at is not None
    assert [n.versions(3) for n in found.values() if n.removed_at is None] == [{2, 3}, {3}]
    assert {*found} == {p.name for p in Path(lake.uri).glob("*.parquet")}


def test_it_says_the_same_from_a_checkpoint(lake):
    for i in range(4):
        lake.write("x", np.arange(3 + i), mode="overwrite")
    storage = Storage(lake.uri)
    whole = named(storage, listing(storage))
    DeltaTable(lake.uri).create_checkpoint()
    for version in range(lake.version):
        Path(lake.uri, "_delta_log", f"{version:020}.json").unlink()
    left = named(storage, listing(storage))
    assert {*left} == {*whole}
    (live,) = (path for path, naming in whole.items() if naming.removed_at is None)
    assert left[live].versions(4) == {4}
    assert all(left[path].versions(4) == set() for path in whole if path != live)


def test_a_file_may_come_back():
    naming = Naming()
    naming._add(2)
    naming._remove(5, 1000)
    naming._add(7)
    assert (naming.versions(8), naming.removed_at) == ({2, 3, 4, 7, 8}, None)
    naming._remove(8, 2000)
    assert (naming.versions(9), naming.removed_at) == ({2, 3, 4, 7}, 2000)


def test_a_table_in_the_folder_is_left_out(lake):
    lake.write("x", np.arange(3))
    before = [file.path for file in listing(Storage(lake.uri))]
    inner = tl.open(f"{lake.uri}/deep/er/inner")
    inner.write("y", np.arange(3))
    Path(lake.uri, "deep", "note.txt").write_text("ours")
    assert inner_tables(everything(Storage(lake.uri))) == ("deep/er/inner/",)
    assert [file.path for file in listing(Storage(lake.uri))] == sorted([*before, "deep/note.txt"])
    assert inner_tables(everything(Storage(inner.uri))) == ()


def test_which_files_may_have_rows(lake):
    lake.write("x", np.arange(3))
    Path(lake.uri, "_change_data").mkdir()
    for name in ("_change_data/cdc.parquet", "_delta_log/00.checkpoint.parquet", "README"):
        Path(lake.uri, name).write_bytes(b"1234")
    files = listing(Storage(lake.uri))
    data = [file.path for file in files if file.may_have_rows]
    assert len(data) == 2
    assert "_change_data/cdc.parquet" in data
    assert next(file.size for file in files if file.path == "README") == 4


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    assert listing(Storage(str(tmp_path / "none"))) == []
