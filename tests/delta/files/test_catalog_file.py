"""The catalog file: what a listing says with it is what the data files say, and it is never needed."""

import os
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog, catalog_file, footer
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import checksummed_table
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture
def eager(monkeypatch):
    """Have a catalog file after every commit, of tables of any size, and look into it for every listing."""
    monkeypatch.setattr(catalog, "_KEPT_FROM", 1)
    monkeypatch.setattr(catalog, "_FEW", 0)
    monkeypatch.setattr(catalog, "commits_between", lambda files: 1)


def folder(lake):
    return Path(lake.uri, "_tensorlake", "catalog")


def names(lake):
    return sorted(path.name for path in folder(lake).glob("*"))


def listed(uri, version=None, storage_options=None):
    """What a listing says, and how many data files it opened for that."""
    forget()
    lake = tl.open(uri, version=version, storage_options=storage_options)
    found = list(lake), lake.catalog().to_dict("records")
    return found, len(footer._cache)


def both_ways(lake, version=None):
    """What a listing says, held against one without the catalog file; and how many files it opened."""
    quick, opened = listed(lake.uri, version)
    aside = Path(f"{lake.uri}-aside")
    if folder(lake).exists():
        shutil.move(folder(lake), aside)
    slow, _ = listed(lake.uri, version)
    if aside.exists():
        shutil.move(aside, folder(lake))
    assert quick == slow
    return quick, opened


def written(lake, count=6):
    for i in range(count):
        lake.write(f"t/{i}", np.full(3, i), attrs={"n": i, "text": f"attribute {i}" * 3})


def test_a_listing_opens_no_file(lake, eager):
    written(lake)
    (ids, metas), opened = both_ways(lake)
    assert opened == 0
    assert ids == [f"t/{i}" for i in range(6)]
    assert [meta["attrs"]["n"] for meta in metas] == list(range(6))
    assert names(lake) == [f"{lake.version:020}.rows"], "older ones are gone"
    assert listed(lake.uri, version=3) == (both_ways(lake, 3)[0], 0)


def test_by_default_only_a_table_of_many_files_has_one(lake):
    written(lake, 12)
    assert not folder(lake).exists()
    assert catalog._KEPT_FROM > 12


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(lake, eager, seed):
    rng = random.Random(seed)
    known = []
    for step in range(14):
        what = rng.choice(["write", "write", "append", "overwrite", "delete", "attrs", "more"])
        if what == "write" or not known:
            known.append(f"t/{step}")
            lake.write(known[-1], np.full((2, 3), step), attrs={"step": step})
        elif what == "append":
            lake.write(rng.choice(known), np.full((1, 3), step), mode="append")
        elif what == "overwrite":
            lake.write(rng.choice(known), np.full((2, 3), -step), mode="overwrite")
        elif what == "delete":
            lake.delete(known.pop(rng.randrange(len(known))))
        elif what == "attrs":
            lake[rng.choice(known)].update_attrs({"step": -step})
        else:
            rng.choice([lake.optimize, lambda: lake.restore(rng.choice(known), lake.version)])()
        (ids, _), _ = both_ways(lake)
        assert ids == sorted(known)
    both_ways(lake, rng.randrange(1, lake.version))


def test_two_writers(lake, eager):
    other = tl.open(lake.uri)
    for i in range(4):
        lake.write(f"a/{i}", np.full(2, i))
        other.write(f"b/{i}", np.full(2, i))
    (ids, _), opened = both_ways(lake)
    assert (len(ids), opened) == (8, 0)


DAMAGES = {
    "damaged": lambda data: data[:200] + bytes([data[200] ^ 255]) + data[201:],
    "truncated": lambda data: data[: len(data) // 2],
    "cut in its head": lambda data: data[:20],
    "empty": lambda data: b"",
    "foreign": lambda data: b"PAR1" + data[4:],
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_one_is_left_out_and_written_anew(lake, eager, kind, caplog):
    written(lake)
    want, opened = listed(lake.uri)
    assert opened == 0
    (path,) = folder(lake).iterdir()
    path.write_bytes(DAMAGES[kind](path.read_bytes()))
    got, opened = listed(lake.uri)
    assert (got, opened) == (want, 6)
    assert "is damaged and left out; a later commit writes it anew" in caplog.text
    lake.write("u", np.zeros(3))
    assert both_ways(lake)[1] == 0


def test_one_that_is_replaced_while_it_is_looked_for(lake, eager, monkeypatch):
    written(lake)
    found = catalog_file.paths(Storage(lake.uri))
    gone = catalog_file.name_of(10**6)
    monkeypatch.setattr(catalog_file, "paths", lambda storage: [*found, gone])
    assert catalog_file.load(Storage(lake.uri)).num_rows
    assert listed(lake.uri)[1] == 0


def test_one_of_a_later_format_is_left_out_without_a_word(lake, eager, caplog):
    written(lake)
    (path,) = folder(lake).iterdir()
    path.write_bytes(path.read_bytes().replace(b"rows 1\n", b"rows 2\n", 1))
    assert both_ways(lake)[1] == 6
    assert caplog.text == ""


def test_that_of_another_table_is_of_no_use_and_does_no_harm(lake, eager, tmp_path):
    written(lake)
    other = tl.open(tmp_path / "other")
    for i in range(6):
        other.write(f"t/{i}", np.zeros((9, 9)))
    (path,) = folder(lake).iterdir()
    (theirs,) = folder(other).iterdir()
    path.write_bytes(theirs.read_bytes())
    assert both_ways(lake)[1] == 6


@pytest.mark.parametrize("column", ["size", "id"])
def test_rows_that_the_log_contradicts_are_not_taken(lake, eager, column):
    written(lake)
    storage = Storage(lake.uri)
    rows = catalog_file.load(storage)
    wrong = {"size": pa.array([1] * 6), "id": pa.array(["zzz"] * 6)}[column]
    place = rows.schema.get_field_index(column)
    catalog_file.save(
        storage, lake.version, rows.set_column(place, rows.schema.field(column), wrong)
    )
    assert both_ways(lake)[1] == 6


def test_a_table_of_before_gets_one_with_its_next_commit(lake, eager):
    written(lake)
    shutil.rmtree(folder(lake))
    assert both_ways(lake)[1] == 6
    lake.write("u", np.zeros(3))
    assert both_ways(lake)[1] == 0


def test_one_that_cannot_be_written_is_no_hindrance(lake, eager, caplog):
    Path(lake.uri, "_tensorlake").mkdir(parents=True)
    folder(lake).write_text("a file where the folder should be")
    written(lake, 2)
    assert "the catalog file of" in caplog.text
    assert "was not written" in caplog.text
    assert list(lake) == ["t/0", "t/1"]


def test_large_metadata_is_left_in_its_data_file(lake, eager):
    written(lake, 2)
    lake.write("large", np.zeros(3), attrs={"text": "x" * catalog._KEPT_BYTES})
    (ids, _), opened = both_ways(lake)
    assert (ids, opened) == (["large", "t/0", "t/1"], 1)


def test_readers_of_delta_see_nothing_of_it(lake, eager):
    written(lake)
    table = DeltaTable(lake.uri)
    assert len(table.file_uris()) == 6
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert both_ways(lake)[1] == 0
    report = lake.check()
    assert (report.ok, report.findings) == (True, ())


def test_vacuum_deletes_those_that_are_superseded(lake, eager):
    written(lake)
    newest = folder(lake) / catalog_file.name_of(lake.version).rsplit("/", 1)[1]
    old = folder(lake) / catalog_file.name_of(1).rsplit("/", 1)[1]
    shutil.copy(newest, old)
    assert lake.vacuum(dry_run=True) == [catalog_file.name_of(1)]
    assert old.exists()
    assert lake.vacuum() == [catalog_file.name_of(1)]
    assert names(lake) == [newest.name]


def test_purge_takes_a_tensor_out_of_it(lake, eager):
    lake.write("faces", np.arange(300.0), attrs={"who": "somebody in particular"})
    written(lake)
    lake.delete("t/5")
    storage = Storage(lake.uri)
    stale = folder(lake) / catalog_file.name_of(1).rsplit("/", 1)[1]
    stale.write_bytes((folder(lake) / names(lake)[-1]).read_bytes())
    future = folder(lake) / catalog_file.name_of(10**6).rsplit("/", 1)[1]
    future.write_bytes(b"tensorlake rows 2\nsomebody in particular")
    assert "faces" in catalog_file.load(storage)["id"].to_pylist()
    assert lake.purge("faces", now=True).verified
    assert len(names(lake)) == 1
    assert sorted(catalog_file.load(storage)["id"].to_pylist()) == [f"t/{i}" for i in range(5)]
    (ids, _), opened = both_ways(lake)
    assert (len(ids), opened) == (5, 0)


def kept_ids(lake):
    """Ids in all files of the folder, whatever their names."""
    found = set()
    for path in folder(lake).iterdir():
        rows = checksummed_table.unpack(catalog_file._KIND, catalog_file.CATALOG, path.read_bytes())
        found |= {*rows["id"].to_pylist()}
    return found


@pytest.mark.parametrize("is_first", [False, True], ids=["one is there", "it is the first"])
def test_a_writer_beside_a_purge_does_not_bring_it_back(lake, eager, monkeypatch, is_first):
    """It has read the rows before the purge, and saves them after it."""
    lake.write("faces", np.arange(300.0), attrs={"who": "somebody in particular"})
    written(lake)
    save, other = catalog_file.save, tl.open(lake.uri)
    if is_first:
        shutil.rmtree(folder(lake))

    def late(storage, version, rows):
        monkeypatch.setattr(catalog_file, "save", save)
        assert "faces" in rows["id"].to_pylist()
        with monkeypatch.context() as patch:
            patch.setattr(catalog, "_KEPT_FROM", 10**6 if is_first else 1)
            assert other.purge("faces", now=True).verified
        assert folder(lake).exists() != is_first
        return save(storage, version, rows)

    monkeypatch.setattr(catalog_file, "save", late)
    lake.write("u", np.zeros(3))
    assert catalog_file.save is save
    assert len(names(lake)) == 1
    assert kept_ids(lake) == {"u", *(f"t/{i}" for i in range(6))}
    assert both_ways(lake)[1] == 0


def test_what_a_killed_writer_left_goes_with_a_purge_and_when_it_is_old(lake, eager):
    lake.write("faces", np.arange(300.0))
    written(lake)
    left = folder(lake) / ".123e4567-e89b-12d3-a456-426614174000"
    name = f"{catalog_file.ROOT}/{left.name}"
    left.write_text("somebody in particular")
    assert lake.vacuum(dry_run=True) == lake.vacuum() == []
    then = time.time() - 8 * 86400
    os.utime(left, (then, then))
    assert lake.vacuum(dry_run=True) == [name]
    assert left.exists()
    assert lake.vacuum() == [name]
    left.write_text("somebody in particular")
    assert lake.purge("faces", now=True).verified
    assert not left.exists()


def test_on_s3(s3, eager):
    url = "s3://bucket/listing/lake"
    lake = tl.open(url, storage_options=s3.options)
    written(lake, 3)
    storage = Storage(url, s3.options)
    assert len(catalog_file.paths(storage)) == 1
    quick, opened = listed(url, storage_options=s3.options)
    assert opened == 0
    catalog_file.delete(storage, catalog_file.paths(storage))
    slow, opened = listed(url, storage_options=s3.options)
    assert (quick, opened) == (slow, 3)


def test_a_hundred_files_have_one(lake):
    """Without any setting changed: a listing of many files opens the few that came since."""
    count = catalog._KEPT_FROM + 6
    for i in range(count):
        lake.write(f"t/{i:03}", np.zeros(3))
    (ids, _), opened = both_ways(lake)
    assert len(ids) == count
    assert opened <= 10
    assert len(Snapshot.open(Storage(lake.uri)).files.path) == count
