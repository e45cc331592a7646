"""Digests of files: the quick way gives what reading all of a row gives, and what is known is not read again."""

import shutil
from pathlib import Path

import deltalake
import numpy as np
import pyarrow.parquet as pq
import pytest
from places import TESTS

import tensorlake_spark as tl
from tensorlake_spark.audit import hashing
from tensorlake_spark.delta.files import digest_file
from tensorlake_spark.delta.files import footer as footers
from tensorlake_spark.delta.files.inspection import inspect_file
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

SPARSE = ("coo", "csr", "csc", "csf", "bsgs")


def forget():
    hashing._known.clear()
    footers._cache.clear()


def slow(snapshot):
    """The digests of all rows, read with all their columns by Arrow alone."""
    out = []
    for path, size in zip(snapshot.files.path, snapshot.files.size.tolist(), strict=True):
        inspect_file(
            snapshot,
            path,
            lambda group, rows, path=path, size=size: out.append(
                hashing.leaves_of_rows(path, size, group, rows)
            ),
        )
    return [row for table in out for row in table.to_pylist()]


def quick(snapshot):
    places = range(len(snapshot.files.path))
    tables = hashing._read(snapshot, places, hashing.run_here)
    return [row for table in tables for row in table.to_pylist()]


def fill(lake):
    rng = np.random.default_rng(0)
    for part in range(3):
        x = rng.integers(0, 99, (4, 20, 6))
        lake.write("dense", x, mode="append", block_shape=(1, 7, 6), attrs={"part": part})
    for layout in SPARSE:
        s = tl.SparseTensor.from_dense(rng.integers(0, 2, (9, 7, 5)) * rng.random((9, 7, 5)))
        lake.write(f"sparse/{layout}", s, layout=layout)
    lake.write("scalar", np.array(3.5))
    lake.write("empty", np.zeros((0, 3), np.int8))
    lake.write("rank9", rng.integers(0, 9, (2,) * 9), block_shape=(2, 1, 2, 1, 2, 1, 2, 1, 1))


@pytest.mark.both_stores
def test_both_ways_agree(lake):
    fill(lake)
    snapshot = Snapshot.open(lake._storage)
    found = quick(snapshot)
    assert found == slow(snapshot)
    assert len({row["digest"] for row in found}) == len(found) > 30


@pytest.mark.local_disk
@pytest.mark.parametrize("golden", ["ftsf", "sparse"])
def test_both_ways_agree_on_golden_tables(golden):
    snapshot = Snapshot.open(Storage(str(TESTS / "golden" / "v1" / golden / "table")))
    assert quick(snapshot) == slow(snapshot)


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("golden", "digest"),
    [
        ("ftsf", "1d9fce43437be77ae94a6c4b3c5c1841c7b95bd817aaa930fc1f8dd5b45bf797"),
        ("sparse", "60ed80bd284ba1f8a288154b44560315ffe9f3348b9947bf8abf89d2853c3e0b"),
    ],
)
def test_the_digest_of_a_golden_table_never_changes(golden, digest, tmp_path):
    shutil.copytree(TESTS / "golden" / "v1" / golden / "table", tmp_path / "table")
    lake = tl.open(tmp_path / "table")
    assert lake.digest().hex == digest
    assert lake.optimize(target_bytes=1 << 20).files_before > 1
    assert lake.digest().hex == digest


@pytest.mark.local_disk
def test_files_that_another_program_wrote(lake):
    """With pages that are compressed, a dictionary, several row groups."""
    fill(lake)
    before = lake.digest()
    for name in Path(lake.uri).glob("*.parquet"):
        table = pq.read_table(name)
        pq.write_table(table, name, row_group_size=3, compression="snappy")
    forget()
    snapshot = Snapshot.open(lake._storage)
    assert {row["digest"] for row in quick(snapshot)} == {row["digest"] for row in slow(snapshot)}
    shutil.rmtree(Path(lake.uri, "_tensorlake"))
    assert lake.digest() == before


@pytest.mark.local_disk
def test_digests_of_a_damaged_file_are_forgotten_when_it_is_brought_back(lake):
    x = np.random.default_rng(0).integers(0, 2**31, (6, 90))
    lake.write("x", x, block_shape=(1, 90), codec="raw")
    lake.write("y", -x)
    path = next(p for p in Path(lake.uri).glob("*.parquet") if x[3].tobytes() in p.read_bytes())
    whole = path.read_bytes()
    path.write_bytes(whole.replace(x[3].tobytes(), x[4].tobytes()))
    damaged = lake.digest()
    forget()
    assert not lake.check(digest=damaged).ok
    assert lake.digest() == damaged, "of a file that is damaged, what is kept stays"
    path.write_bytes(whole)
    assert lake.digest() == damaged, "and is not read again"
    assert not lake.check("y", digest=damaged).findings
    assert [f.kind for f in lake.check(digest=damaged).findings] == ["digest"]
    sound = lake.digest()
    assert sound != damaged
    assert sound.hashed == len(whole)
    assert sound["y"] == damaged["y"]
    assert lake.check(digest=sound).ok
    forget()
    assert (lake.digest(), lake.digest().hashed) == (sound, 0)


@pytest.mark.both_stores
def test_only_what_is_new_is_read(lake):
    fill(lake)
    sizes = int(Snapshot.open(lake._storage).files.size.sum())
    assert (lake.digest().hashed, lake.digest().hashed) == (sizes, 0)
    forget()
    assert lake.digest().hashed == 0
    old = set(Snapshot.open(lake._storage).files.path)
    lake["dense"][3, 2, 1] = -1
    files = Snapshot.open(lake._storage).files
    new = sum(s for p, s in zip(files.path, files.size.tolist(), strict=True) if p not in old)
    assert 0 < new == lake.digest().hashed < sizes
    assert lake.digest("dense").hashed == 0


@pytest.mark.local_disk
def test_a_table_that_took_the_place_of_another_is_read_anew(lake):
    fill(lake)
    lake.digest()
    shutil.rmtree(lake.uri)
    other = tl.open(lake.uri)
    other.write("x", np.arange(9))
    found = other.digest()
    assert [*found.ids] == ["x"]
    forget()
    shutil.rmtree(Path(lake.uri, "_tensorlake"))
    assert other.digest() == found


@pytest.mark.local_disk
def test_one_tensor_reads_the_files_that_may_hold_it(lake):
    fill(lake)
    total = int(Snapshot.open(lake._storage).files.size.sum())
    one = lake.digest("scalar")
    assert 0 < one.hashed < total / 5
    rest = lake.digest()
    assert rest.hashed == total - one.hashed
    assert rest["scalar"] == one
    with pytest.raises(tl.TensorNotFoundError, match="'scalar'"):
        lake.digest("scala")


@pytest.mark.local_disk
def test_a_lake_at_a_version_keeps_nothing(lake):
    lake.write("x", np.arange(9))
    lake.write("x", np.arange(8), mode="overwrite")
    newest = lake.digest()
    forget()
    old = tl.open(lake.uri, version=1)
    shutil.rmtree(Path(lake.uri, "_tensorlake"))
    assert old.digest() == old.digest() != newest
    assert not Path(lake.uri, "_tensorlake").exists()
    assert old.digest().version == 1
    assert lake.digest() == newest


@pytest.mark.local_disk
def test_a_table_that_is_made_anew_at_the_same_place(lake):
    lake.write("x", np.arange(9))
    before = lake.digest()
    shutil.rmtree(lake.uri)
    again = tl.open(lake.uri)
    again.write("x", np.arange(9) + 1)
    assert again.digest() != before
    assert again.digest().table_id != before.table_id


@pytest.mark.local_disk
def test_no_table_and_no_tensor(lake):
    with pytest.raises(tl.TableNotFoundError):
        lake.digest()
    lake.write("x", np.arange(9))
    lake.delete("x")
    assert lake.digest().children == ()
    assert lake.digest().hex == tl.open(lake.uri, version=0).digest().hex


@pytest.mark.local_disk
def test_a_damaged_file_is_an_error(lake):
    fill(lake)
    path = next(Path(lake.uri).glob("*.parquet"))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 9 :])
    forget()
    with pytest.raises(tl.CorruptDataError, match=path.name):
        lake.digest()


@pytest.mark.local_disk
def test_rows_that_a_deletion_vector_hides_do_not_count(spark, lake):
    x = np.arange(300).reshape(3, 100)
    lake.write("x", x, block_shape=(1, 100))
    whole = lake.digest()
    spark.sql(
        f"ALTER TABLE delta.`{lake.uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)"
    )
    spark.sql(f"DELETE FROM delta.`{lake.uri}` WHERE lo.d0 = 1")
    snapshot = Snapshot.open(lake._storage)
    assert len(snapshot.deletions) == 1
    lake = tl.open(lake.uri)
    found = lake.digest()
    assert found.hashed == 0, "the file is the same"
    boxes = {row.box for row in found.rows}
    assert boxes == {row.box for row in whole.rows} - {"[1:2, 0:100]"}
    report = lake.check(digest=found)
    assert "digest" not in {finding.kind for finding in report.findings}
    (finding,) = (f for f in lake.check(digest=whole).findings if f.kind == "digest")
    assert "box [1:2, 0:100]" in finding.place
    assert lake.digest().hashed == 0, "what is kept of hidden rows is no contradiction"


@pytest.mark.local_disk
def test_deletes_of_delta_rs_are_seen(lake):
    lake.write("x", np.arange(300).reshape(3, 100), block_shape=(1, 100))
    before = lake.digest()
    deltalake.DeltaTable(lake.uri).delete("lo.d0 = 1")
    assert len(lake.digest().rows) == len(before.rows) - 1


@pytest.mark.local_disk
def test_many_files_and_few_at_a_time(lake, monkeypatch):
    """The same, however the work is cut."""
    fill(lake)
    snapshot = Snapshot.open(lake._storage)
    want = quick(snapshot)
    monkeypatch.setattr(hashing, "_READ_BYTES", 1)
    assert quick(snapshot) == want
    monkeypatch.setattr(hashing, "_FILES", 0)
    assert quick(snapshot) == want
    monkeypatch.setattr(hashing, "_ALIKE", 1)
    assert quick(snapshot) == want


@pytest.mark.local_disk
def test_a_small_table_is_hashed_in_about_as_many_tasks_as_there_are_threads(lake, monkeypatch):
    noise = np.random.default_rng(0).integers(0, 256, (48, 512, 1024), np.uint8)
    lake.write("x", noise, block_shape=(1, 512, 1024), codec="raw")
    tasks = []
    real = hashing._hashed
    monkeypatch.setattr(hashing, "_hashed", lambda *given: tasks.append(given) or real(*given))
    monkeypatch.setattr(hashing, "THREADS", 2)
    monkeypatch.setattr(hashing, "_LEAST_BYTES", 1)
    first = lake.digest()
    assert len(tasks) in (2, 3)  # a task ends before its share is full, which leaves a rest
    forget()
    shutil.rmtree(Path(lake.uri, "_tensorlake"))
    tasks.clear()
    monkeypatch.setattr(hashing, "_USUAL_BYTES", 1)  # as where a table is large
    assert tl.open(lake.uri).digest() == first
    assert len(tasks) >= 8


@pytest.mark.local_disk
def test_a_digest_beside_a_purge_leaves_nothing_of_it(lake, monkeypatch):
    """The purge is done before the digest of the version before it is kept."""
    lake.write("x", np.arange(9))
    lake.write("y", np.arange(9))
    stale = Snapshot.open(lake._storage)
    save = digest_file.save

    def late(snapshot, leaves):
        monkeypatch.setattr(digest_file, "save", save)
        assert lake.purge("x", now=True).verified
        save(snapshot, leaves)

    monkeypatch.setattr(digest_file, "save", late)
    hashing.digest_of(stale)
    kept, _ = digest_file.unpack(Path(lake.uri, digest_file.NAME).read_bytes())
    assert set(kept["id"].to_pylist()) == {"y"}
    assert set(hashing._known[lake.uri][1]["id"].to_pylist()) == {"y"}


@pytest.mark.local_disk
def test_memory_of_few_tables_is_kept(tmp_path):
    for i in range(hashing._KEEP + 2):
        lake = tl.open(tmp_path / str(i))
        lake.write("x", np.arange(i))
        lake.digest()
    assert len(hashing._known) == hashing._KEEP
    assert digest_file.NAME == "_tensorlake/digest/rows"
