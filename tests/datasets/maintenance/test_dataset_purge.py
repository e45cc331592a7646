"""Purge of samples: no byte of them is left in the folder, and the receipt tells the truth."""

import errno
import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from whole_datasets import COLUMNS, contents, replace_parts, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart import pinning
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.maintenance import dataset_purge
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.lake.transaction import Transaction


def everywhere(path, data):
    """The files below a folder that hold some bytes."""
    return [
        str(p.relative_to(path)) for p in path.rglob("*") if p.is_file() and data in p.read_bytes()
    ]


def middle(data):
    """A part that only this picture or array has."""
    return data[len(data) // 2 : len(data) // 2 + 40]


@pytest.fixture
def noisy(tmp_path):
    """A dataset whose pictures share no bytes, in several versions, one of them tagged."""
    rng = np.random.default_rng(5)
    ds = tl.dataset(tmp_path / "ds", {**COLUMNS, "small": tl.types.Image("png"), "image": tl.types.Image("png", apart=True)}, tile_bytes=2000)  # fmt: skip
    for start in range(0, 12, 4):
        given = {
            "label": np.arange(start, start + 4),
            "small": [rng.integers(0, 256, (20, 20, 3), np.uint8) for _ in range(4)],
            "image": [rng.integers(0, 256, (20, 20, 3), np.uint8) for _ in range(4)],
            "scan": [
                rng.integers(0, 256, (60, 50) if n % 2 else (10, 10), np.uint8) for n in range(4)
            ],
            "training/name": [
                f"somebody whose name has many letters {n}" for n in range(start, start + 4)
            ],
        }
        ds.extend(given)
    ds.tag("before")
    return ds


def secrets_of(ds, sid):
    """What a sample has that must be gone, as bytes that lie in files."""
    position = int(np.searchsorted(ds.sids, sid))
    out = [ds["small"].encoded(position), ds["image"].encoded(position)]
    scan = np.asarray(ds["scan"][position])
    if scan.nbytes <= 2000:
        out.append(scan.tobytes())
    return [middle(data) for data in out]


def test_no_byte_is_left(noisy):
    ds, path = noisy, Path(noisy.uri)
    ds.optimize()
    gone, kept = secrets_of(ds, 4) + secrets_of(ds, 5), secrets_of(ds, 6)
    assert all(everywhere(path, data) for data in gone + kept)
    before = [one for one in contents(ds) if one[0] not in (4, 5)]
    receipt = ds.purge([5, 4], now=True)
    assert (receipt.verified, receipt.reason) == (True, "")
    assert [everywhere(path, data) for data in gone] == [[]] * len(gone)
    assert all(everywhere(path, data) for data in kept)
    assert contents(ds) == before
    assert contents(tl.dataset(path)) == before
    assert ds.check().ok
    assert list(tl.open(path / "_tensors")) == ["scan/1", "scan/11", "scan/3", "scan/7", "scan/9"]


def test_the_receipt_tells_what_was_done(noisy):
    ds, path = noisy, Path(noisy.uri)
    digests = {
        str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in path.rglob("*.parquet")
    }
    version = ds.version
    receipt = ds.purge([5], now=True)
    assert receipt.samples == "5"
    assert receipt.tensor_id == ""
    assert receipt.version_before == version
    assert receipt.version_after == ds.version
    folders = {file.path.rpartition("/")[0] for file in receipt.deleted}
    assert folders == {"", "_columns/image", "_tensors"}
    assert {f.path: f.sha256 for f in receipt.deleted} == {
        f.path: digests[f.path] for f in receipt.deleted
    }
    assert not any((path / f.path).exists() for f in receipt.deleted)
    assert set(receipt.rewritten) == {f.path for f in receipt.deleted}
    for file in receipt.written:
        data = (path / file.path).read_bytes()
        assert (file.nbytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert receipt.tags_lost == ("before",)
    assert receipt.searched["payloads"] >= 3
    assert receipt.searched["files"] > 10
    lost = {v for part in receipt.versions_lost.split(", ") for v in span(part)}
    for number in range(ds.version + 1):
        shown = tl.dataset(path, version=number)
        if number in lost:
            with pytest.raises(tl.CorruptDataError):
                contents(shown)
        else:
            contents(shown)
    assert tl.verify_receipt(receipt.to_json(b"key"), b"key") == receipt
    assert "samples 5" in str(receipt)


def span(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def test_files_are_pending_until_the_retention_is_over(noisy):
    ds = noisy
    secret = secrets_of(ds, 5)[0]
    first = ds.purge(where="label = 5")
    assert (first.verified, first.samples, len(ds)) == (False, "5", 11)
    assert "kept by the retention" in first.reason
    assert {f.path.rpartition("/")[0] for f in first.pending} == {"", "_columns/image", "_tensors"}
    assert everywhere(Path(ds.uri), secret)
    # The sample has left, and the condition still names it.
    second = ds.purge(where="label = 5", now=True)
    assert (second.verified, second.samples) == (True, "5")
    assert everywhere(Path(ds.uri), secret) == []
    third = ds.purge(where="label = 5", now=True)
    assert third.verified
    assert third.deleted == ()


def test_a_file_of_a_part_that_may_not_be_deleted_is_in_the_receipt(noisy, monkeypatch):
    ds, path = noisy, noisy.uri
    held = {file.path for file in ds.purge([1], now=True, dry_run=True).deleted}
    kept = min(name for name in held if name.startswith("_columns/"))
    delete = Storage.delete

    def refusing(self, name):
        if self.file_uri(name) == f"{path}/{kept}":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        delete(self, name)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "delete", refusing)
        receipt = ds.purge([1], now=True)
    assert not receipt.verified
    assert "1 files hold it that were written meanwhile, or could not be deleted" in receipt.reason
    assert {file.path for file in receipt.deleted} == held - {kept}
    done = tl.dataset(path).purge([1], now=True)
    assert done.verified
    assert {file.path for file in done.deleted} == {kept}


def test_a_condition_judges_samples_by_what_they_last_were(noisy):
    DeltaTable(noisy.uri).update(updates={"label": "100"}, predicate="label = 3")
    DeltaTable(noisy.uri).delete("label = 7")
    noisy.refresh()
    receipt = noisy.purge(where="label IN (3, 7, 8)", now=True)
    assert receipt.samples == "7-8"
    assert noisy.sids.tolist() == [0, 1, 2, 3, 4, 5, 6, 9, 10, 11]


def test_a_dry_run_changes_nothing(noisy):
    before = contents(noisy)
    version = noisy.version
    receipt = noisy.purge([1, 2], dry_run=True)
    assert receipt.dry_run
    assert not receipt.verified
    assert len(receipt.pending) == 3
    assert (noisy.version, contents(noisy)) == (version, before)
    assert noisy.purge([1, 2], now=True, dry_run=True).deleted


def test_deleted_samples_what_was_replaced_and_what_a_killed_writer_left(noisy, jpegs):
    ds, path = noisy, Path(noisy.uri)
    old = secrets_of(ds, 2)
    new = np.random.default_rng(77).integers(0, 256, (20, 20, 3), np.uint8)
    replace_parts(ds, [2], {"image": [new]})
    newer = middle(ds["image"].encoded(2))
    # A writer that was killed after it had written the parts of sample 2 anew, for nobody.
    third = np.random.default_rng(78).integers(0, 256, (20, 20, 3), np.uint8)
    parts = PartsWriter(ds._storage, ds.stored.snapshot, ds.schema)
    parts.take({"image": [third]}, [2], 0)
    for writer in parts._apart.values():
        left = writer._writers[0].finish()
    assert left
    DeltaTable(path).delete("label = 2")
    shutil.copy(next(path.glob("samples-*.parquet")), path / "part-orphan.parquet")
    receipt = ds.purge([2], now=True)
    assert receipt.verified
    assert [everywhere(path, data) for data in [*old, newer]] == [[]] * 4
    assert 2 not in ds.sids


def test_identical_bytes_in_other_samples_are_told(tmp_path, jpegs):
    ds = tl.dataset(tmp_path / "ds", {"image": tl.types.Image("jpeg")})
    ds.extend({"image": [jpegs[0], jpegs[1]]})
    ds.extend({"image": [jpegs[0]]})
    receipt = ds.purge([0], now=True)
    assert not receipt.verified
    assert len(receipt.found_elsewhere) == 1
    assert "identical payloads" in receipt.reason
    assert ds.purge([2], now=True).verified


def test_writers_after_a_purge(made):
    made.ds.purge([3, 6], now=True)
    kept = contents(made.ds)
    made.ds.extend(samples_of(made.jpegs, range(20, 24)))
    made.ds.optimize()
    made.ds.vacuum(0)
    assert contents(made.ds)[:18] == kept
    assert 3 not in made.ds.sids
    assert made.ds.check(deep=True).ok


def test_tiles_that_are_written_during_a_purge_go_too(made, monkeypatch):
    """An update of the sample has its tiles in the store, and loses the race for the sample."""
    ds, tiles = made.ds, tl.open(made.path / "_tensors")
    left, delete = ["scan/3"], Transaction.delete

    def late(self, name):
        while left:
            tiles.write(left.pop(), np.ones((60, 50), np.uint8), mode="overwrite", layout="ftsf")
        delete(self, name)

    monkeypatch.setattr(Transaction, "delete", late)
    assert "scan/3" in tiles
    assert ds.purge([3], now=True).verified
    assert not left
    assert "scan/3" not in tiles
    assert ds.check(deep=True).ok


def test_samples_that_another_writer_brings_back_during_a_purge_are_told(made, monkeypatch):
    """Nothing was deleted then, and the next purge finds them."""
    ds, before = made.ds, made.ds.version
    files = {*made.path.rglob("*.parquet")}
    commit_files = dataset_purge.commit_files

    def overtaken(*args):
        found = commit_files(*args)
        tl.dataset(made.path).restore(before)
        return found

    monkeypatch.setattr(dataset_purge, "commit_files", overtaken)
    with pytest.raises(tl.ConcurrentWriteError, match=r"brought \d+ files with the samples back"):
        ds.purge([3], now=True)
    monkeypatch.undo()
    assert files <= {*made.path.rglob("*.parquet")}
    assert contents(tl.dataset(made.path)) == made.at_first
    assert tl.dataset(made.path).purge([3], now=True).verified
    assert contents(tl.dataset(made.path)) == [one for one in made.at_first if one[0] != 3]


def test_a_purge_that_was_killed_before_it_pinned_its_tables_is_done_again(made, monkeypatch):
    """Its tables had new versions without the samples, and the dataset named the old ones, whose files went."""

    def killed(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(dataset_purge, "commit_files", killed)
        made.ds.purge([3], now=True)
    kept = [one for one in made.at_first if one[0] != 3]
    assert contents(tl.dataset(made.path)) == kept
    assert tl.dataset(made.path).purge([3], now=True).verified
    assert contents(tl.dataset(made.path)) == kept
    assert tl.dataset(made.path).check(deep=True).ok


def test_a_purge_after_an_update_that_was_killed(made, monkeypatch):
    """The update was undone once more at the end, and brought back the tiles that the purge had taken away."""
    monkeypatch.setattr(pinning, "PATIENCE", 0.1)
    parts = PartsWriter(made.ds._storage, made.ds.stored.snapshot, made.ds.schema, replaces=True)
    parts.take({"scan": [np.ones((60, 50), np.uint8)] * 2}, [3, 6], 0)
    parts.finish()  # and is killed
    assert made.ds.purge([3], now=True).verified
    assert contents(tl.dataset(made.path)) == [one for one in made.at_first if one[0] != 3]
    assert tl.dataset(made.path).check(deep=True).ok


def test_what_names_no_samples(noisy):
    for given in ({}, {"sids": [1], "where": "label = 1"}, {"sids": ["a"]}, {"sids": [[1, 2]]}, {"sids": [0.5]}, {"where": "no_column = 1"}):  # fmt: skip
        with pytest.raises(tl.InvalidOptionError):
            noisy.purge(**given)
    for sids in ([99], [-1]):
        with pytest.raises(tl.SampleNotFoundError, match="never had"):
            noisy.purge(sids)
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        tl.dataset(noisy.uri, version=1).purge([1])
    nobody = noisy.purge(where="label = 5000", now=True)
    assert (nobody.samples, nobody.deleted, nobody.verified) == ("", (), True)
    assert len(noisy) == 12


def test_a_damaged_file_stops_a_purge_before_it_begins(noisy):
    file = sorted(Path(noisy.uri).glob("samples-*.parquet"))[0]
    file.write_bytes(file.read_bytes()[:-8] + b"12345678")
    version = noisy.version
    with pytest.raises(tl.CorruptDataError, match="nothing was purged"):
        noisy.purge([9])
    assert tl.dataset(noisy.uri).version == version


def test_samples_that_were_updated_deleted_and_whose_column_has_another_name(noisy):
    ds, path = noisy, Path(noisy.uri)
    old = secrets_of(ds, 2)
    rng = np.random.default_rng(9)
    ds.update([2], {"image": [rng.integers(0, 256, (20, 20, 3), np.uint8)]})
    ds.update([2], {"scan": [rng.integers(0, 256, (70, 70), np.uint8)]})
    newer = middle(ds["image"].encoded(2))
    ds.rename_column("image", "photo")
    assert all(everywhere(path, data) for data in [*old, newer])
    receipt = ds.purge([2], now=True)
    assert receipt.verified
    assert [everywhere(path, data) for data in [*old, newer]] == [[]] * 4
    assert "scan/2" not in tl.open(path / "_tensors")
    assert ds.check().ok
