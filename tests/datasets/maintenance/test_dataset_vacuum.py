"""Vacuum: what a kept version needs stays, what a killed writer left goes."""

import os
import time

import numpy as np
import pytest
from deltalake import DeltaTable
from whole_datasets import COLUMNS, TILE_BYTES, contents, replace_parts, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.maintenance import dataset_vacuum
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.lake.transaction import Transaction


def files(path):
    return {str(p.relative_to(path)) for p in path.rglob("*.parquet") if "_delta_log" not in str(p)}


def killed(ds, columns, sids, commits=True):
    """Leave what a writer leaves that is killed before the samples' commit."""
    parts = PartsWriter(ds._storage, ds.stored.snapshot, ds.schema)
    parts.take(parts.opened(columns, 0), sids, 0)
    if commits:
        parts.finish()
    else:
        for writer in parts._apart.values():
            for one in writer._writers:
                one.finish()


def test_nothing_goes_that_the_retention_keeps(made):
    made.ds.optimize()
    before = files(made.path)
    assert made.ds.vacuum() == []
    assert made.ds.vacuum(1) == []
    assert files(made.path) == before


def test_old_files_of_all_parts_go(made):
    made.ds.optimize()
    listed = made.ds.vacuum(0, dry_run=True)
    before = files(made.path)
    gone = made.ds.vacuum(0)
    assert sorted(gone) == sorted(listed)
    assert files(made.path) == before - set(gone)
    assert len(files(made.path)) == 3
    assert contents(made.ds) == made.at_first
    assert contents(tl.dataset(made.path)) == made.at_first


def test_the_retention_of_the_dataset_is_that_of_its_parts(made):
    """Tables inside have a property of their own, which nobody sets."""
    made.ds.optimize()
    table = DeltaTable(made.path)
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    made.ds.refresh()
    gone = made.ds.vacuum()
    assert {path.split("/")[0] for path in gone if "/" in path} == {"_columns", "_tensors"}
    assert len(files(made.path)) == 3
    assert contents(tl.dataset(made.path)) == made.at_first


def test_a_tagged_version_keeps_its_inner_versions(made):
    ds = made.ds
    ds.tag("kept")
    replace_parts(ds, [0, 1, 2], {"image": made.jpegs[:3]})
    replace_parts(ds, [0], {"scan": [np.ones((60, 50), np.uint8)]})
    DeltaTable(made.path).delete("label > 10")
    ds.refresh()
    ds.optimize()
    now = contents(ds)
    assert len(now) == 11
    ds.vacuum(0)
    assert contents(tl.dataset(made.path)) == now
    assert contents(tl.dataset(made.path, version="kept")) == made.at_first
    ds.restore("kept")
    assert contents(ds) == made.at_first
    ds.untag("kept")


def test_what_a_killed_writer_left_goes(made):
    ds, path = made.ds, made.path
    before = files(path)
    killed(ds, samples_of(made.jpegs, range(5)), range(1000, 1005))
    left = files(path) - before
    assert {p.rsplit("/", 1)[0] for p in left} == {"_columns/image", "_tensors"}
    assert ds.vacuum() == []  # a writer may be at work
    ds.vacuum(0)
    assert not left & files(path)
    assert contents(ds) == made.at_first
    assert contents(tl.dataset(path)) == made.at_first
    ds.extend(samples_of(made.jpegs, range(20, 22)))
    assert contents(ds)[:20] == made.at_first


def test_what_a_killed_writer_left_goes_also_after_others_have_pinned_it(made):
    ds, path = made.ds, made.path
    before = files(path)
    killed(ds, samples_of(made.jpegs, range(5)), range(1000, 1005))
    left = files(path) - before
    ds.extend(samples_of(made.jpegs, range(20, 23)))
    now = contents(ds)
    ds.vacuum(0)
    assert not left & files(path)
    assert contents(tl.dataset(path)) == now
    assert not any(name.endswith("/1000") for name in tl.open(path / "_tensors"))


def test_a_writer_that_is_killed_before_its_first_commit_of_a_part(tmp_path, jpegs):
    path = tmp_path / "ds"
    ds = tl.dataset(path, COLUMNS, tile_bytes=TILE_BYTES)
    killed(ds, samples_of(jpegs, range(4)), range(1000, 1004), commits=False)
    assert any(p.startswith("_columns/image") for p in files(path))
    assert ds.vacuum() == []
    ds.vacuum(0)
    assert files(path) == set()
    ds.extend(samples_of(jpegs, range(4)))
    assert len(contents(ds)) == 4


@pytest.mark.parametrize("most", range(5))
def test_a_vacuum_that_is_killed_while_it_takes_a_whole_folder(tmp_path, jpegs, monkeypatch, most):
    path = tmp_path / "ds"
    ds = tl.dataset(path, COLUMNS, tile_bytes=TILE_BYTES)
    killed(ds, samples_of(jpegs, range(4)), range(1000, 1004))
    taken, delete = [], Storage.delete

    def stopped(self, name):
        if len(taken) == most:
            raise KeyboardInterrupt
        taken.append(name)
        delete(self, name)

    monkeypatch.setattr(Storage, "delete", stopped)
    with pytest.raises(KeyboardInterrupt):
        ds.vacuum(0)
    monkeypatch.undo()
    ds.extend(samples_of(jpegs, range(4)))
    assert len(contents(tl.dataset(path))) == 4
    assert ds.check().ok
    ds.vacuum(0)
    assert ds.vacuum(0) == []
    assert len(contents(tl.dataset(path))) == 4


def test_a_folder_that_a_writer_begins_to_use_during_a_vacuum(tmp_path, jpegs, monkeypatch):
    path = tmp_path / "ds"
    ds = tl.dataset(path, COLUMNS, tile_bytes=TILE_BYTES)
    killed(ds, samples_of(jpegs, range(4)), range(1000, 1004))
    old = time.time() - 3600 * 24 * 8
    for folder in ("_columns", "_tensors"):
        for file in (path / folder).rglob("*"):
            os.utime(file, (old, old))
    vacuum = dataset_vacuum.table_vacuum.vacuum

    def slow(*arguments, **options):
        if not len(tl.dataset(path)):
            tl.dataset(path).extend(samples_of(jpegs, range(4)))
        return vacuum(*arguments, **options)

    monkeypatch.setattr(dataset_vacuum.table_vacuum, "vacuum", slow)
    ds.vacuum()
    now = tl.dataset(path)
    assert len(contents(now)) == 4
    assert now.check().ok


def test_parts_of_deleted_samples_go(made):
    ds, path = made.ds, made.path
    DeltaTable(path).delete("label < 5")
    ds.refresh()
    now = contents(ds)
    ds.vacuum(0)
    assert contents(tl.dataset(path)) == now
    assert sorted(tl.open(path / "_tensors")) == [
        "scan/12",
        "scan/15",
        "scan/18",
        "scan/6",
        "scan/9",
    ]
    assert ds.parts.table_of("image").sids.min() == 5


def test_a_full_disk_is_no_hindrance_for_what_takes_no_commit(made, monkeypatch, caplog):
    made.ds.optimize()
    made.ds.delete([1, 2])
    listed = made.ds.vacuum(0, dry_run=True)

    def full(*args):
        raise tl.StorageError("the disk is full: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(dataset_vacuum, "_without_orphans", full)
        assert sorted(made.ds.vacuum(0)) == sorted(listed)
    assert not files(made.path) & {*listed}
    assert "parts of deleted samples stay until the next vacuum: the disk is full" in caplog.text
    made.ds.vacuum(0)
    assert made.ds.check().ok


def test_two_vacuums_that_take_away_the_same_tiles(made, monkeypatch):
    DeltaTable(made.path).delete("label < 5")
    made.ds.refresh()
    now = contents(made.ds)
    left, delete = [True], Transaction.delete

    def late(self, name):
        if left:
            left.clear()
            tl.open(made.path / "_tensors").delete("scan/3")
        delete(self, name)

    monkeypatch.setattr(Transaction, "delete", late)
    made.ds.vacuum(0)
    assert not left
    assert contents(tl.dataset(made.path)) == now
    made.ds.vacuum(0)
    assert "scan/0" not in tl.open(made.path / "_tensors")


def test_a_column_that_no_version_has(made):
    ds, path = made.ds, made.path
    other = path / "_columns/other"
    other.mkdir(parents=True)
    (other / "part-1.parquet").write_bytes(b"x")
    assert ds.vacuum() == []
    assert "_columns/other/part-1.parquet" in ds.vacuum(0)
    assert not (other / "part-1.parquet").exists()


def test_vacuum_of_deltalake_leaves_inner_tables_alone(made):
    made.ds.optimize()
    inner = {p for p in files(made.path) if "/" in p}
    DeltaTable(made.path).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    )
    assert {p for p in files(made.path) if "/" in p} == inner
    assert contents(tl.dataset(made.path)) == made.at_first


@pytest.mark.parametrize("hours", [-1, float("nan"), "week"])
def test_a_retention_that_is_none(made, hours):
    with pytest.raises(tl.InvalidOptionError, match="retention_hours"):
        made.ds.vacuum(hours)


def test_versions_within_the_retention_keep_their_parts(made):
    """An hour ago there were two versions; both stay readable."""
    ds, path = made.ds, made.path
    version = ds.version
    replace_parts(ds, [4], {"image": [made.jpegs[0]]})
    now = contents(ds)
    old = time.time() - 7200
    for table in (path, path / "_columns/image", path / "_tensors"):
        for file in table.glob("_delta_log/*.json"):
            os.utime(file, (old, old))
    ds.extend(samples_of(made.jpegs, [20]))
    ds.vacuum(1)
    assert contents(tl.dataset(path, version=version + 1)) == now
    assert contents(tl.dataset(path))[:20] == now


def test_a_dropped_apart_column_goes_when_no_version_has_it(made):
    ds, path = made.ds, made.path
    ds.tag("with")
    ds.drop_column("image")
    ds.vacuum(0)
    assert contents(tl.dataset(path, version="with")) == made.at_first
    ds.untag("with")
    assert any(name.startswith("_columns/image/") for name in ds.vacuum(0))
    assert not list((path / "_columns").rglob("*.parquet"))
    assert ds.check().ok


def test_a_dropped_apart_column_whose_samples_are_gone_goes_as_a_whole(tmp_path):
    ds = tl.dataset(tmp_path, {"n": "int8", "x": tl.types.Tensor("int8", (None,), apart=True)})
    for number in range(2):
        ds.extend({"n": [number], "x": [[number]]})
    ds.delete([0])
    ds.drop_column("x")
    ds.vacuum(0)
    assert not [path for path in (tmp_path / "_columns").rglob("*") if path.is_file()]
    ds.vacuum(0)  # a part of the log that was left made this an error
    assert ds.purge(where="n = 1", now=True).verified
