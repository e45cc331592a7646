"""After a purge no file of the table's folder has what was purged; the tests search the bytes themselves."""

import datetime as dt
import errno
import hashlib
import json
import os
import re
import threading
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT, TESTS
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.audit import purge as purging
from tensorlake_spark.audit.byte_search import WINDOW, Probes, Search
from tensorlake_spark.audit.files_of_tensor import Traces
from tensorlake_spark.delta.files import digest_file
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.metadata import META_COLUMNS, meta_batch
from tensorlake_spark.writing.editing import removal


@pytest.fixture
def x():
    """Noise: each of its chunks is like no other."""
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


def live(lake):
    return Snapshot.open(Storage(lake.uri)).files.path


def parquet(lake):
    return {path.name for path in Path(lake.uri).glob("*.parquet")}


def folder_bytes(lake):
    return b"\n".join(path.read_bytes() for path in Path(lake.uri).rglob("*") if path.is_file())


def on_disk(lake, name):
    """Size and SHA-256 of a file."""
    data = Path(lake.uri, name).read_bytes()
    return len(data), hashlib.sha256(data).hexdigest()


def fill(lake, x):
    """Tensors a and b grow by turns, then share files."""
    for name, sign in (("a", 1), ("b", -1)):
        lake.write(name, x[:4] * sign, block_shape=(1, 400), codec="raw")
    for start in (4, 8):
        for name, sign in (("a", 1), ("b", -1)):
            lake.write(name, x[start : start + 4] * sign, mode="append")
    lake.optimize()


def sparse(seed=0, shape=(30, 40, 50), count=2000):
    rng = np.random.default_rng(seed)
    flat = np.sort(rng.choice(np.prod(shape), count, replace=False))
    return tl.SparseTensor(np.stack(np.unravel_index(flat, shape)), rng.random(count), shape)


def age(lake, hours):
    """Make all files, and all removals in the log, as old as that."""
    seconds = hours * 3600
    for path in Path(lake.uri).rglob("*"):
        if path.is_file():
            if path.suffix == ".json" and path.parent.name == "_delta_log":
                actions = [json.loads(line) for line in path.read_text().splitlines()]
                for action in actions:
                    if "remove" in action:
                        action["remove"]["deletionTimestamp"] -= int(seconds * 1000)
                path.write_text("".join(json.dumps(action) + "\n" for action in actions))
            then = path.stat().st_mtime - seconds
            os.utime(path, (then, then))
    forget()


@pytest.mark.local_disk
def test_a_tensor_is_gone_from_every_byte_and_others_read_right(lake, x):
    fill(lake, x)
    needles = [x[i].tobytes()[100:180] for i in range(12)]
    assert all(needle in folder_bytes(lake) for needle in needles)
    before = lake.version
    old = {name: on_disk(lake, name) for name in parquet(lake)}
    receipt = lake.purge("a", now=True)
    assert not any(needle in folder_bytes(lake) for needle in needles)
    assert list(lake) == ["b"]
    assert {f.path: (f.nbytes, f.sha256) for f in receipt.deleted} == {
        name: of for name, of in old.items() if name not in parquet(lake)
    }
    assert {f.path: (f.nbytes, f.sha256) for f in receipt.written} == {
        name: on_disk(lake, name) for name in parquet(lake) - old.keys()
    }
    assert {f.path for f in receipt.written} <= {*live(lake)}
    assert f"{len(receipt.rewritten)} live files replaced by {len(receipt.written)} (" in str(
        receipt
    )
    forget()
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert lake.check().ok
    assert receipt.verified, receipt.reason
    assert (receipt.version_before, receipt.version_after) == (before, before + 1)
    assert receipt.found_elsewhere == receipt.pending == receipt.uncertified == ()
    assert receipt.searched["payloads"] == 12
    assert receipt.searched["windows"] == 12
    assert receipt.searched["files"] > lake.version
    # Of the old versions those remain that need no file of it: the empty table.
    assert receipt.versions_lost == f"1-{before}"
    old = tl.open(lake.uri, version=before)
    with pytest.raises(tl.MissingDataError):
        old["b"]
    assert {file.path for file in receipt.deleted}.isdisjoint(parquet(lake))
    assert parquet(lake) >= set(live(lake))
    assert len(receipt.rewritten) == 1
    assert all(len(file.sha256) == 64 and file.rows and file.nbytes for file in receipt.deleted)
    assert "verified" in str(receipt)
    assert not any(needle.hex() in receipt.to_json() for needle in needles)
    assert lake.history("a").iloc[0]["operation"] == "purge"
    again = lake.purge("a", now=True)
    assert (again.verified, again.deleted, again.version_after) == (True, (), before + 1)
    assert again.written == ()
    assert "no file holds anything of it" in str(again)


@pytest.mark.local_disk
@pytest.mark.parametrize("region", [np.s_[5], "5", np.s_[5:6, 100:300], np.s_[..., 399]])
def test_a_box_of_a_dense_tensor(lake, x, region):
    fill(lake, x)
    key = (5,) if region == "5" else region
    want = x.copy()
    want[key] = 0
    old = {*live(lake)}
    receipt = lake.purge("a", region, now=True)
    assert receipt.verified, receipt.reason
    forget()
    np.testing.assert_array_equal(lake["a"][:], want)
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert lake.check().ok
    if region != np.s_[..., 399]:
        assert x[5, 150:250].tobytes() not in folder_bytes(lake)
        assert x[4, 150:250].tobytes() in folder_bytes(lake)
    assert {f.path: (f.nbytes, f.sha256) for f in receipt.written} == {
        name: on_disk(lake, name) for name in {*live(lake)} - old
    }
    assert receipt.region == ("5" if region == "5" else tl.indexing.format_key(region))
    again = lake.purge("a", region, now=True)
    assert (again.version_after, again.deleted, again.verified) == (receipt.version_after, (), True)
    lake.optimize(target_bytes=1 << 20)
    assert lake.purge("a", region, now=True).deleted == (), (
        "what was written since holds nothing of it"
    )


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "csf", "bsgs"])
@pytest.mark.parametrize("how", ["region", "coords", "all"])
def test_elements_of_a_sparse_tensor(lake, layout, how):
    s = sparse()
    lake.write("s", s, layout=layout)
    lake.write("other", sparse(5), layout=layout)
    more = tl.SparseTensor([[7, 7], [1, 2], [3, 49]], [-1.0, -2.0], s.shape)
    lake.write("s", more, mode="append", axis=None, duplicates="sum")
    lake.optimize()
    want = lake["s"][...].todense()
    other = lake["other"][...]
    if how == "region":
        receipt = lake.purge("s", "7:9, :, 10:", now=True)
        want[7:9, :, 10:] = 0
    elif how == "coords":
        coords = s.coords[:, 10:300:7]
        receipt = lake.purge("s", coords=coords, now=True)
        want[tuple(coords)] = 0
        assert f"{coords.shape[1]} elements, sha256 " in receipt.region
    else:
        receipt = lake.purge("s", now=True)
    assert receipt.verified, receipt.reason
    assert receipt.deleted
    forget()
    if how == "all":
        assert list(lake) == ["other"]
    else:
        np.testing.assert_array_equal(lake["s"][...].todense(), want)
    assert lake["other"][...].equals(other)
    report = lake.check()
    assert report.findings == (), str(report)


@pytest.mark.parametrize(
    ("array", "fill", "key"),
    [
        (np.arange(2**9, dtype="f4").reshape((2,) * 9), 0, np.s_[..., 1, 0]),
        (np.array(7.5), 0, np.s_[()]),
        (np.arange(600).reshape(20, 30) % 7 > 2, True, np.s_[3:9]),
        (np.arange(600).astype("M8[s]").reshape(20, 30), 0, np.s_[::2, 5:]),
        (np.arange(600).astype("c16").reshape(20, 30), 1j, np.s_[[1, 5], 7]),
        (np.arange(600).astype("f8").reshape(20, 30), np.nan, np.s_[-1]),
    ],
    ids=["rank 9", "rank 0", "bool", "datetime", "complex", "nan"],
)
def test_parts_of_any_rank_and_dtype_become_fill(lake, array, fill, key):
    fill = np.array(fill, array.dtype)
    lake.write("a", array, layout="ftsf", fill_value=fill, codec="raw")
    receipt = lake.purge("a", key, now=True)
    assert len(receipt.deleted) == 1
    assert receipt.verified, receipt.reason
    want = array.copy()
    want[key] = fill
    np.testing.assert_array_equal(lake["a"][...], want)
    assert lake.purge("a", key, now=True).deleted == ()


def test_a_part_where_nothing_is_stored_changes_nothing(lake, x):
    x[5:] = 0
    lake.write("a", x, block_shape=(1, 400))
    receipt = lake.purge("a", "6:", now=True)
    assert (receipt.version_after, receipt.deleted, receipt.verified) == (1, (), True)
    assert lake.purge("a", "0:0", now=True).version_after == 1


@pytest.mark.local_disk
def test_files_are_kept_for_the_retention_and_a_repeat_deletes_them(lake, x):
    fill(lake, x)
    started = dt.datetime.now(dt.timezone.utc)
    first = lake.purge("a")
    assert not first.verified
    assert "kept by the retention" in first.reason
    assert first.deleted == ()
    assert first.versions_lost == ""
    assert "a" not in lake
    assert all(file.path in parquet(lake) and file.sha256 for file in first.pending)
    for file in first.pending:
        due = dt.datetime.fromisoformat(file.due) - started
        assert dt.timedelta(days=6.9) < due < dt.timedelta(days=7.1)
    np.testing.assert_array_equal(tl.open(lake.uri, version=first.version_before)["a"][:], x)
    second = lake.purge("a")
    assert [f.path for f in second.pending] == [f.path for f in first.pending]
    assert second.version_after == first.version_after
    age(lake, 24 * 8)
    third = lake.purge("a")
    assert third.verified, third.reason
    assert {f.path for f in third.deleted} == {f.path for f in first.pending}
    assert third.searched["windows"] == 12
    assert x[5].tobytes()[100:180] not in folder_bytes(lake)
    np.testing.assert_array_equal(lake["b"][:], -x)


@pytest.mark.local_disk
def test_a_shorter_retention_of_the_table_holds(lake, x):
    fill(lake, x)
    table = deltalake.DeltaTable(lake.uri)
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 2 hours"})
    (pending, *_) = lake.purge("a").pending
    due = dt.datetime.fromisoformat(pending.due) - dt.datetime.now(dt.timezone.utc)
    assert dt.timedelta(hours=1.9) < due <= dt.timedelta(hours=2)
    age(lake, 3)
    assert lake.purge("a").verified


@pytest.mark.local_disk
def test_a_dry_run_changes_nothing(lake, x):
    fill(lake, x)
    before, version = folder_bytes(lake), lake.version
    receipt = lake.purge("a", now=True, dry_run=True)
    assert folder_bytes(lake) == before
    assert (receipt.dry_run, receipt.verified, receipt.version_after) == (True, False, version)
    assert "dry run" in receipt.reason
    real = lake.purge("a", now=True)
    assert {f.path for f in real.deleted} == {f.path for f in receipt.deleted}
    assert real.rewritten == receipt.rewritten
    assert (len(real.written), receipt.written) == (1, ())


@pytest.mark.local_disk
def test_orphans_lying_statistics_and_rows_without_metadata_are_found(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    lake.write("b", -x, block_shape=(1, 400), codec="raw")
    (path,) = [p for p in live(lake) if catalog_id(lake, p) == "a"]
    whole = Path(lake.uri, path).read_bytes()
    Path(lake.uri, "part-orphan.parquet").write_bytes(whole)
    Path(lake.uri, "_change_data").mkdir()
    Path(lake.uri, "_change_data", "cdc-0.parquet").write_bytes(whole)
    lake.delete("a")
    rows = pq.read_table(pa.BufferReader(whole)).slice(3, 2)
    deltalake.write_deltalake(lake.uri, rows, mode="append")
    log = Path(lake.uri, "_delta_log", f"{lake.version:020}.json")
    log.write_text(log.read_text().replace('\\"id\\":\\"a\\"', '\\"id\\":\\"q\\"'))
    forget()
    assert "a" not in lake
    receipt = lake.purge("a", now=True)
    assert receipt.verified, receipt.reason
    gone = {f.path for f in receipt.deleted}
    assert {"part-orphan.parquet", "_change_data/cdc-0.parquet", path} < gone
    assert len(receipt.rewritten) == 1
    for i in range(12):
        assert x[i].tobytes()[100:180] not in folder_bytes(lake)
    forget()
    np.testing.assert_array_equal(lake["b"][:], -x)


def catalog_id(lake, path):
    return pq.read_table(Path(lake.uri, path), columns=["id"])["id"][0].as_py()


@pytest.mark.local_disk
def test_statistics_that_hide_a_part_are_an_error_with_the_remedy(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    log = Path(lake.uri, "_delta_log", f"{lake.version:020}.json")
    log.write_text(log.read_text().replace('\\"d0\\":12', '\\"d0\\":3'))
    forget()
    with pytest.raises(tl.CorruptDataError, match=r"lake\.check\(repair=True\)"):
        lake.purge("a", "5", now=True)
    assert lake.check(repair=True).ok
    assert lake.purge("a", "5", now=True).verified
    assert not lake["a"][5].any()


@pytest.mark.local_disk
def test_what_cannot_be_read_cannot_be_certified(lake, x):
    fill(lake, x)
    Path(lake.uri, "part-broken.parquet").write_bytes(b"PAR1 no more than this")
    receipt = lake.purge("a", now=True)
    assert [path for path, _ in receipt.uncertified] == ["part-broken.parquet"]
    assert not receipt.verified
    assert "cannot be certified" in receipt.reason
    Path(lake.uri, "part-broken.parquet").unlink()
    assert lake.purge("a").verified
    with pytest.raises(tl.TensorNotFoundError, match="'b'"):
        lake.purge("bb")


@pytest.mark.local_disk
def test_a_live_file_that_cannot_be_read_stops_only_its_own_tensor(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    lake.write("b", -x, block_shape=(1, 400), codec="raw")
    (path,) = [p for p in live(lake) if catalog_id(lake, p) == "a"]
    whole = Path(lake.uri, path).read_bytes()
    group = pq.read_metadata(Path(lake.uri, path)).row_group(0)
    ids = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "id")
    start, size = ids.dictionary_page_offset, ids.total_compressed_size
    Path(lake.uri, path).write_bytes(whole[:start] + bytes(size) + whole[start + size :])
    forget()
    with pytest.raises(tl.CorruptDataError, match="nothing was purged"):
        lake.purge("a", now=True)
    receipt = lake.purge("b", now=True)
    assert not receipt.verified
    assert [name for name, _ in receipt.uncertified] == [path]
    Path(lake.uri, path).write_bytes(whole)
    forget()
    assert lake.purge("a", now=True).verified


@pytest.mark.local_disk
def test_the_same_payload_elsewhere_is_told(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    lake.write("copy", x[3:5], block_shape=(1, 400), codec="raw")
    Path(lake.uri, "notes.bin").write_bytes(b"---" + x[7].tobytes() + b"---")
    (copy,) = [p for p in live(lake) if catalog_id(lake, p) == "copy"]
    receipt = lake.purge("a", now=True)
    assert not receipt.verified
    assert set(receipt.found_elsewhere) == {"notes.bin", copy}
    assert "identical payloads" in receipt.reason
    np.testing.assert_array_equal(lake["copy"][:], x[3:5])


def test_short_payloads_identify_nothing_and_are_counted(lake):
    lake.write("a", np.ones((40, 40)), block_shape=(10, 40))
    receipt = lake.purge("a", now=True)
    assert receipt.verified
    assert receipt.searched["skipped"] == 4
    assert receipt.searched["payloads"] == 0


@pytest.mark.local_disk
def test_a_purge_that_was_interrupted_is_completed(lake, x, monkeypatch):
    fill(lake, x)

    def stop(self, paths):
        self.storage.delete(sorted(paths)[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Traces, "delete", stop)
        with pytest.raises(KeyboardInterrupt):
            lake.purge("a", now=True)
    assert x[5].tobytes()[100:180] in folder_bytes(lake)
    receipt = lake.purge("a", now=True)
    assert receipt.verified, receipt.reason
    assert x[5].tobytes()[100:180] not in folder_bytes(lake)


def test_a_store_that_does_not_delete_is_not_believed(lake, x, monkeypatch):
    fill(lake, x)
    monkeypatch.setattr(Traces, "delete", lambda self, paths: None)
    receipt = lake.purge("a", now=True)
    assert not receipt.verified
    assert "could not be deleted" in receipt.reason
    assert receipt.found_elsewhere
    assert not receipt.deleted
    assert receipt.versions_lost == ""


def test_a_file_that_may_not_be_deleted_is_in_the_receipt(lake, x, monkeypatch, caplog):
    """As in a folder of another user: what the other files hold is gone all the same."""
    fill(lake, x)
    held = {file.path for file in lake.purge("a", now=True, dry_run=True).deleted}
    kept = min(held)
    delete = Storage.delete

    def refusing(self, name):
        if name == kept:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        delete(self, name)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "delete", refusing)
        receipt = lake.purge("a", now=True)
    assert not receipt.verified
    assert "1 files hold it that were written meanwhile, or could not be deleted" in receipt.reason
    assert {file.path for file in receipt.deleted} == held - {kept}
    assert f"{kept} was not deleted: " in caplog.text
    assert "Permission denied" in caplog.text
    done = lake.purge("a", now=True)
    assert done.verified
    assert {file.path for file in done.deleted} == {kept}


@pytest.mark.local_disk
def test_writers_of_other_tensors_are_no_hindrance(lake, x):
    fill(lake, x)
    stop = threading.Event()
    failed = []

    def write():
        other = tl.open(lake.uri)
        try:
            while not stop.is_set():
                other.write("c", x[:1], mode="append")
                other.optimize()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while "c" not in lake:
            pass
        lake.purge("a")
    finally:
        stop.set()
        thread.join()
    assert not failed
    assert "a" not in lake
    # Its own row 0 is that of c.
    receipt = lake.purge("a", now=True)
    assert set(receipt.found_elsewhere) <= set(live(lake)) | parquet(lake)
    assert x[5].tobytes()[100:180] not in folder_bytes(lake)
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert (lake["c"][:] == x[:1]).all()


@pytest.mark.local_disk
def test_files_of_writers_beside_it_are_not_said_to_be_its_own(lake, x, monkeypatch):
    fill(lake, x)
    commit = removal.commit_change

    def amid(*arguments):
        tl.open(lake.uri).write("c", x[:1])
        done = commit(*arguments)
        tl.open(lake.uri).write("d", x[:1])
        return done.newer()

    monkeypatch.setattr(removal, "commit_change", amid)
    receipt = lake.purge("a", now=True)
    assert receipt.version_after == receipt.version_before + 3
    (file,) = receipt.written
    ids = pq.read_table(Path(lake.uri, file.path), columns=["id"])["id"].to_pylist()
    assert {*ids} == {"b"}


def test_a_writer_of_the_same_tensor_is_told(lake, x, monkeypatch):
    fill(lake, x)
    commit = removal.commit_change

    def late(*arguments):
        tl.open(lake.uri).write("a", x[:1], mode="append")
        return commit(*arguments)

    monkeypatch.setattr(removal, "commit_change", late)
    with pytest.raises(tl.ConcurrentWriteError, match="nothing was purged"):
        lake.purge("a", now=True)
    assert lake["a"].shape == (13, 400)


def test_a_file_that_came_back_is_not_deleted(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    version = lake.version
    lake.delete("a")
    lake.restore("a", version)
    traces = Traces(Storage(lake.uri), purging.Target("a"))
    traces.look()
    with pytest.raises(tl.CorruptDataError, match="brought 1 of the files back"):
        traces.delete(traces.held_by(Snapshot.open(Storage(lake.uri)))[:1])
    np.testing.assert_array_equal(lake["a"][:], x)


def test_an_overwritten_and_converted_past_goes_too(lake, x):
    lake.write("a", x, block_shape=(1, 400), codec="raw")
    lake.write("a", sparse(), mode="overwrite", layout="coo")
    with_rank_3 = lake.version
    receipt = lake.purge("a", "0:9", now=True)
    assert not receipt.verified, "its past as a matrix has no such part"
    assert "another rank" in receipt.uncertified[0][1]
    lake.convert("a", layout="bsgs")
    lake.vacuum(0)
    receipt = lake.purge("a", "0:12", now=True)
    assert receipt.verified, receipt.reason
    assert lake["a"][:12].nnz == 0
    assert with_rank_3 < receipt.version_after


@pytest.mark.local_disk
def test_tags_and_staging_are_told(lake, x):
    fill(lake, x)
    lake.tag("paper", 3)
    lake.tag("empty", 0)
    Staging(Storage(lake.uri), "of-a").write("receipt", json.dumps({"metas": [{"id": "a"}]}))
    Staging(Storage(lake.uri), "of-b").write("receipt", json.dumps({"metas": [{"id": "b"}]}))
    receipt = lake.purge("a", now=True)
    assert receipt.tags_lost == ("paper",)
    assert receipt.staging == ("_tensorlake/ingest/of-a",)
    assert not Path(lake.uri, "_tensorlake/ingest/of-a").exists()
    assert Path(lake.uri, "_tensorlake/ingest/of-b").exists()


def test_notes_are_known_by_the_tensors_that_they_write(lake, x):
    fill(lake, x)
    ref = lake.write("photos", x, axes=("a", "b"), attrs={"id": "a", "of": ["a"]})
    (row,) = meta_batch([ref._meta.spec], [0], [ref._meta.totals]).to_pylist()
    written = [{"meta": {name: row[name] for name in META_COLUMNS}, "boxes": [], "spans": []}]
    body = json.dumps({"format": 1, "files": [], "written": written})
    storage = Storage(lake.uri)
    Staging(storage, "of-photos").write("receipt-1-1", f"0123abcd\n{body}")
    Staging(storage, "of-photos").write("sources-1", json.dumps([[1, 2, 3]]))
    own = body.replace('"id": "photos"', '"id": "a"')
    Staging(storage, "of-a").write("receipt-1-1", f"0123abcd\n{own}")
    Staging(storage, "damaged").write("receipt-1-1", f"0123abcd\n{own[:-9]}")
    assert lake.purge("a", now=True).staging == (
        "_tensorlake/ingest/damaged",
        "_tensorlake/ingest/of-a",
    )
    assert lake.purge("photos", now=True).staging == ("_tensorlake/ingest/of-photos",)


def test_receipts_show_that_they_were_changed(lake, x):
    fill(lake, x)
    receipt = lake.purge("a", now=True)
    text = receipt.to_json(key=b"a key")
    assert tl.verify_receipt(text) == receipt
    assert tl.verify_receipt(text, key=b"a key") == receipt
    assert json.loads(text)["seal"] == receipt.seal
    with pytest.raises(tl.CorruptDataError, match="not signed with this key"):
        tl.verify_receipt(text, key=b"another")
    with pytest.raises(tl.CorruptDataError, match="not signed"):
        tl.verify_receipt(receipt.to_json(), key=b"a key")
    for call in (receipt.to_json, lambda key: tl.verify_receipt(text, key)):
        with pytest.raises(tl.InvalidOptionError, match="the key is empty"):
            call(b"")
    with pytest.raises(tl.CorruptDataError, match="seal"):
        tl.verify_receipt(text.replace('"verified": true', '"verified": false'))
    for other in ("", "{}", "[1]", '{"receipt": {}, "seal": ""}'):
        with pytest.raises(tl.InvalidOptionError, match="no receipt"):
            tl.verify_receipt(other)


def test_a_receipt_of_format_1_is_read_for_ever():
    """It does not tell what was written; seal and signature hold over what it does."""
    text = (TESTS / "golden" / "receipt-1.json").read_text()
    receipt = tl.verify_receipt(text, key=b"a key")
    assert (receipt.format, receipt.written, receipt.verified) == (1, (), True)
    assert receipt.to_json(key=b"a key") + "\n" == text
    with pytest.raises(tl.CorruptDataError, match="seal"):
        tl.verify_receipt(text.replace('"versions_lost": "1"', '"versions_lost": ""'))
    with pytest.raises(tl.InvalidOptionError, match=r"has format 5, .* reads formats 1 to 4"):
        tl.verify_receipt(text.replace('"format": 1', '"format": 5'))


def test_a_receipt_of_format_2_is_read_for_ever():
    """It tells what was written, and has no digest of the table."""
    text = (TESTS / "golden" / "receipt-2.json").read_text()
    receipt = tl.verify_receipt(text, key=b"a key")
    assert (receipt.format, len(receipt.written), receipt.verified) == (2, 1, True)
    assert (receipt.digest_before, receipt.digest_after, receipt.bytes_written) == (None, None, 0)
    assert receipt.to_json(key=b"a key") + "\n" == text


def test_a_receipt_of_format_3_is_read_for_ever():
    """It is of a lake, and says nothing of samples."""
    text = (TESTS / "golden" / "receipt-3.json").read_text()
    receipt = tl.verify_receipt(text, key=b"a key")
    assert (receipt.format, receipt.samples, receipt.verified) == (3, None, True)
    assert receipt.digest_after is not None
    assert receipt.to_json(key=b"a key") + "\n" == text


@pytest.mark.both_stores
def test_the_receipt_has_the_digest_before_and_after(lake, x):
    for name in ("a", "b", "c"):
        lake.write(name, x, block_shape=(1, 400), codec="raw")
    before = lake.digest()
    planned = lake.purge("a", "3", dry_run=True)
    assert (planned.digest_before, planned.digest_after) == (None, None)
    receipt = lake.purge("a", "3", now=True)
    after = lake.digest()
    assert (receipt.digest_before, receipt.digest_after) == (before.hex, after.hex)
    assert before != after
    assert (before["b"], before["c"]) == (after["b"], after["c"])
    assert receipt.bytes_hashed == receipt.bytes_written == sum(f.nbytes for f in receipt.written)
    assert f"digest after {after.hex}" in str(receipt)
    assert tl.verify_receipt(receipt.to_json()) == receipt
    again = lake.purge("a", "3", now=True)
    assert (again.digest_before, again.digest_after, again.bytes_hashed) == (
        after.hex,
        after.hex,
        0,
    )


@pytest.mark.local_disk
def test_a_purge_leaves_no_digest_of_what_it_purged(lake, x):
    fill(lake, x)
    digests = {bytes.fromhex(node.hex) for node in lake.digest("a").children}
    folder = Path(lake.uri, "_tensorlake", "digest")
    (folder / "of-a-later-release").write_bytes(b"tensorlake digests 2\n" + b"".join(digests))
    kept = digest_file.load(Snapshot.open(Storage(lake.uri)))
    assert digests <= set(kept["digest"].to_pylist())
    assert lake.purge("a", now=True).verified
    assert [path.name for path in folder.iterdir()] == ["rows"]
    kept = digest_file.load(Snapshot.open(Storage(lake.uri)))
    assert set(kept["id"].to_pylist()) == {"b"}
    assert digests.isdisjoint(kept["digest"].to_pylist())
    assert lake.digest().hashed == 0


@pytest.mark.local_disk
def test_a_purge_of_some_users_writes_no_more_than_the_files_that_hold_them(lake):
    """2 % of a table that is clustered by user."""
    visits = np.random.default_rng(0).integers(0, 2**31, (1000, 500)).astype("i4")
    for first in range(0, 1000, 20):  # a file for every 20 users
        part = visits[first : first + 20]
        lake.write("visits", part, axes=("user", "day"), mode="append", block_shape=(10, 500))
    before = Snapshot.open(Storage(lake.uri)).files
    sizes = dict(zip(before.path, before.size.tolist(), strict=True))
    holding = {p for p, lo in zip(before.path, before.lo[:, 0].tolist(), strict=True) if lo == 400}
    receipt = lake.purge("visits", "user=400:420", now=True)
    assert receipt.verified
    after = set(live(lake))
    assert len(holding) == 1
    assert set(sizes) - after == holding == {*receipt.rewritten}
    assert receipt.bytes_replaced == sum(sizes[path] for path in holding)
    assert receipt.bytes_replaced < 0.03 * sum(sizes.values())
    assert receipt.bytes_written <= receipt.bytes_replaced
    assert receipt.bytes_hashed == receipt.bytes_written
    visits[400:420] = 0
    np.testing.assert_array_equal(lake["visits"][:], visits)


@pytest.mark.local_disk
def test_where_a_file_cannot_be_read_there_is_no_digest(lake, x):
    fill(lake, x)
    lake.write("c", x)
    files = Snapshot.open(Storage(lake.uri)).files
    (path,) = [p for p, name in zip(files.path, files.first_id, strict=True) if name == "c"]
    Path(lake.uri, path).write_bytes(b"no file of Parquet")
    forget()
    receipt = lake.purge("a", now=True)
    assert (receipt.digest_before, receipt.digest_after, receipt.bytes_hashed) == (None, None, 0)
    assert "cannot be certified" in receipt.reason


def test_what_cannot_be_asked(lake, x):
    fill(lake, x)
    with pytest.raises(tl.InvalidOptionError, match="exclude each other"):
        lake.purge("a", "1", coords=[[1], [2]])
    with pytest.raises(tl.InvalidKeyError):
        lake.purge("a", np.s_[99])
    with pytest.raises(tl.TensorNotFoundError, match="'aa'"):
        lake.purge("aa")
    for name in (None, ["a"]):
        with pytest.raises(tl.InvalidTensorError, match="a tensor id is a string, not"):
            lake.purge(name)
    with pytest.raises(tl.InvalidOptionError, match="reading only"):
        tl.open(lake.uri, version=1).purge("a")
    lake.delete("a")
    with pytest.raises(tl.TensorNotFoundError):
        lake.purge("a", "1")
    assert lake.purge("a", now=True).verified


def test_what_is_gone_is_reported_and_what_never_was_is_an_error(lake, x):
    fill(lake, x)
    first = lake.purge("a")
    assert first.pending
    lake.vacuum(0)  # takes what was pending
    receipt = lake.purge("a", now=True)
    assert receipt.verified, receipt.reason
    assert (receipt.deleted, receipt.pending, receipt.rewritten) == ((), (), ())
    assert receipt.version_after == receipt.version_before == lake.version
    assert tl.verify_receipt(receipt.to_json()) == receipt
    with pytest.raises(tl.TensorNotFoundError, match="did you mean 'b'"):
        lake.purge("bb", now=True)


@pytest.mark.parametrize("seed", range(5))
def test_windows_are_found_wherever_they_lie(tmp_path, seed):
    rng = np.random.default_rng(seed)
    payloads = [rng.bytes(int(n)) for n in rng.integers(WINDOW, 5000, 300)]
    probes = Probes()
    for payload in payloads:
        probes.add(payload)
    search = Search(probes)
    storage = Storage(str(tmp_path))
    path = tmp_path / "file"
    noise = rng.bytes(9_000_000)
    path.write_bytes(noise)
    assert not search.in_bytes(storage, "file")
    window = probes.windows[int(rng.integers(300))]
    for place in (0, (4 << 20) - 5, len(noise) - WINDOW, int(rng.integers(8_000_000))):
        path.write_bytes(noise[:place] + window + noise[place + WINDOW :])
        assert search.in_bytes(storage, "file"), place
    path.write_bytes(window[:-1])
    assert not search.in_bytes(storage, "file")


@pytest.mark.local_disk
@pytest.mark.soak
def test_deletion_vectors_are_refused_until_spark_has_purged_them(spark, lake, x):
    fill(lake, x)
    uri = lake.uri
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 'a' AND nnz > 0 AND lo.d0 = 5")
    assert Snapshot.open(Storage(uri)).deletions
    before = lake.version
    with pytest.raises(tl.UnsupportedFeatureError, match=r"REORG TABLE .* APPLY \(PURGE\)"):
        lake.purge("a", now=True)
    assert lake.version == before
    assert x[5].tobytes()[100:180] in folder_bytes(lake), "its bytes are still in the file"
    spark.sql(f"REORG TABLE delta.`{uri}` APPLY (PURGE)")
    spark.sql(f"OPTIMIZE delta.`{uri}`")
    receipt = lake.purge("a", now=True)
    assert receipt.verified, receipt.reason
    for i in range(12):
        assert x[i].tobytes()[100:180] not in folder_bytes(lake)
    forget()
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert spark.read.format("delta").load(uri).where("id = 'a'").count() == 0


def test_the_page_runs(tmp_path):
    """All blocks of docs/compliance.md share one namespace."""
    page = (ROOT / "docs" / "compliance.md").read_text()
    names: dict[str, object] = {"path": str(tmp_path / "lake")}
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        exec(compile(block, "compliance.md", "exec"), names)


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("again", [0, -1])
def test_coordinates_that_name_an_element_more_than_once(lake, layout, again):
    """As many of them as the row has elements are not the whole row, of which the rest may stay."""
    values = np.random.default_rng(0).random(60)
    coords = np.stack([np.zeros(60, np.int64), np.arange(60)])
    lake.write("s", tl.SparseTensor(coords, values, (1, 60)), layout=layout)
    receipt = lake.purge("s", coords=[[0, again] * 30, [7] * 60], now=True)
    assert receipt.verified, receipt.reason
    assert receipt.region.startswith("1 elements, ")
    assert receipt.searched["windows"] == 0
    assert lake["s"][...].nnz == 59
