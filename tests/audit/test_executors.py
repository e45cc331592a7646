"""Check, purge and vacuum by executors find and do what they find and do in one process."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import deltalake
import numpy as np
import pytest
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.audit.check import check
from tensorlake_spark.audit.hashing import digest_of
from tensorlake_spark.audit.purge import purge
from tensorlake_spark.delta.files.runner import run_here
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.upkeep.vacuum import vacuum

pytestmark = pytest.mark.local_disk


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


@pytest.fixture
def full(lake, x):
    """Tensors that share files, a sparse one, and orphans of versions before."""
    for name, sign in (("a", 1), ("b", -1)):
        for start in (0, 6):
            part = x[start : start + 6] * sign
            lake.write(name, part, mode="append", block_shape=(1, 400), codec="raw")
    lake.optimize()
    for start in (0, 4, 8):
        lake.write("a", x[start : start + 4] + 1, mode="append")
    coords = np.unravel_index(np.arange(0, 600, 7), (20, 30))
    s = tl.SparseTensor(np.stack(coords), np.arange(1.0, 87.0), (20, 30))
    lake.write("s", s, layout="coo")
    return lake


@pytest.fixture
def twice(full, spark, tmp_path):
    """What does something to two copies of the table, here and by executors, and returns both results."""

    def do(work):
        out = []
        for name, run in (("here", run_here), ("there", run_in(spark))):
            place = tmp_path / name / "lake"
            if place.exists():
                shutil.rmtree(place)
            shutil.copytree(full.uri, place)
            forget()
            out.append(work(Storage(str(place)), run))
        return out

    return do


def live(lake):
    return Snapshot.open(Storage(lake.uri)).files.path


def damage(path, needle):
    data = path.read_bytes()
    place = data.index(needle)
    path.write_bytes(data[: place + 9] + bytes([data[place + 9] ^ 1]) + data[place + 10 :])


def checked(repair=False, ids=None):
    return lambda storage, run: asdict(check(Snapshot.open(storage), ids, repair, run))


def same(found, uri="uri"):
    here, there = found
    assert here.pop(uri) != there.pop(uri)
    assert json.dumps(here, default=str) == json.dumps(there, default=str).replace(
        "/there/lake", "/here/lake"
    )
    return there


def test_a_check_finds_the_same_in_the_same_order(full, twice, x):
    sound = same(twice(checked()))
    assert (sound["findings"], sound["files"]) == ((), len(live(full)))
    holding = [p for p in live(full) if x[1].tobytes() in Path(full.uri, p).read_bytes()]
    damage(Path(full.uri, holding[0]), x[1].tobytes())
    damage(Path(full.uri, holding[0]), (-x[2]).tobytes())
    others = [path for path in live(full) if path not in holding]
    Path(full.uri, others[0]).unlink()
    Path(full.uri, others[1]).write_bytes(b"no file of Parquet")
    shutil.copy(Path(full.uri, others[2]), Path(full.uri, "part-orphan.parquet"))
    found = same(twice(checked()))["findings"]
    assert {f["kind"] for f in found} >= {"row", "missing", "size", "file", "orphan"}
    assert same(twice(checked(ids=["b"])))["findings"]


def test_digests_are_the_same(full, twice):
    digest = full.digest()
    shutil.rmtree(Path(full.uri, "_tensorlake"))
    here, there = twice(lambda storage, run: digest_of(Snapshot.open(storage), run=run))
    assert here == there == digest
    assert here.hashed == there.hashed > 0
    full["a"][7, 3] = 1
    found = same(twice(lambda storage, run: asdict(check(Snapshot.open(storage), None, False, run, digest))))  # fmt: skip
    assert [f["kind"] for f in found["findings"]] == ["digest"]
    assert "box [7:8, 0:400]" in found["findings"][0]["place"]


def test_a_check_mends_the_same(full, twice):
    deltalake.DeltaTable(full.uri).delete("id = 'b' AND lo.d0 = 3")
    found = same(twice(checked(repair=True)))["findings"]
    assert [f["kind"] for f in found if f["repaired"]] == ["totals", "gap"]


def purged(*arguments):
    def work(storage, run):
        receipt = asdict(purge(storage, *arguments, run=run))
        files = {file["path"] for file in receipt["written"]}
        assert files <= {p.name for p in Path(storage.uri).glob("*.parquet")}
        for file in receipt["written"]:
            del file["path"]  # a new name each time
        del receipt["at"], receipt["searched"]["bytes"]  # the log has times in it
        for file in receipt["pending"]:
            file["due"] = file["due"] is not None  # a week from then
        return receipt

    return work


@pytest.mark.parametrize(
    "what",
    [
        ("a", None, None, True),
        ("a", None, None, False),
        ("a", "3:5, 10:200", None, True),
        ("s", None, np.array([[0, 0, 4], [0, 7, 2]]), True),
    ],
)
def test_a_purge_leaves_the_same_receipt(twice, what):
    receipt = same(twice(purged(*what, False)), "table")
    assert receipt["rewritten"]
    assert (receipt["verified"], bool(receipt["pending"])) == (what[3], not what[3])
    assert all(len(file["sha256"]) == 64 for file in receipt["deleted"] + receipt["pending"])


def test_what_executors_purge_is_gone_and_the_rest_stays(full, spark, x):
    needles = [x[i].tobytes()[100:180] for i in range(12)]
    receipt = purge(Storage(full.uri), "a", None, None, True, False, run_in(spark))
    assert receipt.verified, receipt.reason
    data = b"\n".join(p.read_bytes() for p in Path(full.uri).rglob("*") if p.is_file())
    assert not any(needle in data for needle in needles)
    forget()
    lake = tl.open(full.uri)
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert sorted(lake) == ["b", "s"]
    assert lake.check().findings == ()


def test_a_part_is_purged_by_as_many_tasks_as_there_are_files(full, twice, x):
    """The same receipt, and the same rows in the newest version."""
    deltalake.DeltaTable(full.uri).alter.set_table_properties({"delta.targetFileSize": "1"})
    tasks = []

    def work(storage, run):
        def counted(work, some, sizes=None):
            if sizes is None:
                tasks.append(len(some))
            return run(work, some, sizes)

        receipts = [
            purged("a", ":, 3:5", None, True, False)(storage, counted),
            purged("s", None, np.array([[0, 0, 4], [0, 7, 2]]), True, False)(storage, counted),
        ]
        forget()
        lake = tl.open(storage.uri)
        assert lake.check().findings == ()
        want = np.concatenate([x, x[:4] + 1, x[4:8] + 1, x[8:] + 1])
        want[:, 3:5] = 0
        np.testing.assert_array_equal(lake["a"][:], want)
        np.testing.assert_array_equal(lake["b"][:], -x)
        assert lake["s"].nnz == 84
        return {"receipts": receipts, "uri": storage.uri}

    found = twice(work)
    for one in found:
        for receipt in one["receipts"]:
            assert receipt.pop("table") == one["uri"]
            assert receipt["verified"], receipt["reason"]
    same(found)
    assert tasks == tasks[:2] * 2
    assert tasks[0] > 2


@pytest.mark.parametrize("region", [None, ":, 3:5"])
def test_a_file_that_vanishes_before_it_is_written_anew_stops_the_purge(full, spark, region):
    """Nothing is committed, and what other tasks have written is taken away."""
    deltalake.DeltaTable(full.uri).alter.set_table_properties({"delta.targetFileSize": "1"})
    version, there = tl.open(full.uri).version, {*Path(full.uri).glob("*.parquet")}
    run = run_in(spark)

    def vanishing(work, tasks, sizes=None):
        def do(task):
            if sizes is None and task == last:
                Path(full.uri, task[1][0]).unlink()
            return work(task)

        last = tasks[-1] if len(tasks) else None
        return run(do, tasks, sizes)

    with pytest.raises(tl.MissingDataError, match="is in the Delta log but not there"):
        purge(Storage(full.uri), "a", region, None, True, False, vanishing)
    assert tl.open(full.uri).version == version
    assert {*Path(full.uri).glob("*.parquet")} < there


def test_a_vacuum_deletes_the_same(twice):
    def work(storage, run):
        planned = vacuum(Snapshot.open(storage), 0, True, run)
        gone = vacuum(Snapshot.open(storage), 0, False, run)
        assert sorted(planned) == sorted(gone)
        left = {p.name for p in Path(storage.uri).glob("*.parquet")}
        assert left == set(Snapshot.open(storage).files.path)
        ends = deltalake.DeltaTable(storage.uri).history(2)
        assert [end["operation"] for end in ends] == ["VACUUM END", "VACUUM START"]
        return sorted(gone)

    here, there = twice(work)
    assert here == there
    assert len(there) == 4
