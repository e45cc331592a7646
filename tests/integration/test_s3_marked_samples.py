"""Datasets on S3 with deletion vectors: changes whose commit boto3 makes, in races and under faults."""

import json
import subprocess
import sys
import uuid

import pytest
from marked_samples import mark
from s3faults import PATIENCE

import tensorlake_spark as tl
from tensorlake_spark.delta.log import direct_commit
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import s3_objects
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def url():
    return f"s3://bucket/{uuid.uuid4()}/a set"


@pytest.fixture
def ds(s3, url):
    """Twenty samples in two files; of the second, sample 14 is marked."""
    found = tl.dataset(url, {"size": "int32", "name": "string"}, storage_options=s3.options)
    for start in (0, 10):
        numbers = range(start, start + 10)
        found.extend({"size": [*numbers], "name": [f"n{n}" for n in numbers]})
    mark(Storage(url, s3.options), 4)
    found.refresh()
    assert found.stored.snapshot.deletions
    return found


def sizes(ds):
    found = tl.dataset(ds.uri, storage_options=ds._storage.options, create=False)
    return dict(zip(found.sids.tolist(), found["size"][:].tolist(), strict=True))


WAS = {n: n for n in range(20) if n != 14}


def test_samples_are_updated_and_deleted(ds):
    assert ds.update(15, {"size": 50}) == 1
    assert sizes(ds) == WAS | {15: 50}
    assert not ds.stored.snapshot.deletions
    mark(ds._storage, 3)
    ds.refresh()
    assert ds.delete("size = 12") == 1
    ds["size"][0] = -1
    left = WAS | {15: 50, 0: -1}
    gone = {12, *(left.keys() - sizes(ds).keys())}
    assert len(gone) == 2, "ours, and the one that was marked"
    assert sizes(ds) == {n: size for n, size in left.items() if n not in gone}
    assert ds.check(deep=True).ok
    assert len(tl.dataset(ds.uri, storage_options=ds._storage.options, version=2)) == 20


def test_columns_files_and_versions_are_changed(ds):
    before = ds.version
    ds.rename_column("size", "length")
    assert not ds.stored.snapshot.deletions
    mark(ds._storage, 0)
    ds.refresh()
    ds.add_column("flag", "bool", True)
    ds.drop_column("flag")
    assert ds.schema.keys() == {"length", "name"}
    mark(ds._storage, 1)
    ds.refresh()
    sids = ds.sids.tolist()
    files = len(ds.stored.files)
    ds.optimize()
    assert (len(ds.stored.files), files) == (1, 2)
    assert (ds.sids.tolist(), ds["length"][:].tolist()) == (sids, sids)
    mark(ds._storage, 0)
    ds.refresh()
    ds.rechunk("length DESC")
    sids = sids[1:]
    assert ds.sids.tolist() == sids
    mark(ds._storage, 0)
    ds.refresh()
    sids = ds.sids.tolist()
    receipt = ds.purge([sids[0]], now=True)
    assert receipt.verified
    assert ds.sids.tolist() == sids[1:]
    assert ds.check(deep=True).ok
    assert before < ds.version


def test_a_version_with_marked_samples_comes_back(ds, s3, monkeypatch):
    """With its vectors, by the commit that boto3 makes; nothing is written where that cannot be."""
    marks = ds.version
    ds.update(15, {"size": 50})
    changed, before = sizes(ds), {info.path for info in ds._storage.files_in("")}
    with monkeypatch.context() as patch:
        patch.setattr(s3_objects, "has_client", lambda: False)
        with pytest.raises(tl.MissingDependencyError, match=r"tensorlake-spark\[s3\]"):
            ds.restore(marks)
    locked = {**s3.options, "AWS_S3_LOCKING_PROVIDER": "dynamodb"}
    with pytest.raises(tl.UnsupportedFeatureError, match=r"on S3 and on a local disk.*RESTORE"):
        tl.dataset(ds.uri, storage_options=locked).restore(marks)
    assert (sizes(ds), {info.path for info in ds._storage.files_in("")}) == (changed, before)
    ds.restore(marks)
    assert sizes(ds) == WAS
    (vector,) = Snapshot.open(ds._storage, kind=SAMPLES).vectors(ds.stored.files.paths).values()
    assert vector["cardinality"] == 1
    assert ds.check(deep=True).ok
    ds.restore(marks)  # nothing is other than it was
    assert sizes(ds) == WAS
    ds.restore(2)
    assert sizes(ds) == {n: n for n in range(20)}
    ds.restore(marks)
    assert sizes(ds) == WAS


def test_of_a_restore_and_another_change_the_restore_comes_after(ds, s3, monkeypatch):
    marks = ds.version
    ds.update(15, {"size": 50})
    other = tl.dataset(ds.uri, storage_options=s3.options)
    put, left = direct_commit.put_commit, ["once"]

    def later(*args):
        if left:
            left.pop()
            other.update(16, {"size": 60})
        return put(*args)

    monkeypatch.setattr(direct_commit, "put_commit", later)
    ds.restore(marks)
    assert not left
    assert sizes(ds) == WAS


def test_without_boto3_the_error_names_the_extra_and_nothing_is_written(ds, monkeypatch):
    monkeypatch.setattr(s3_objects, "has_client", lambda: False)
    before = {info.path for info in ds._storage.files_in("")}
    for change in (
        lambda: ds.update(15, {"size": 1}),
        lambda: ds.delete(15),
        lambda: ds.drop_column("name"),
        lambda: ds.rechunk("size DESC"),
    ):
        with pytest.raises(tl.MissingDependencyError, match=r"tensorlake-spark\[s3\]"):
            change()
    ds.optimize()
    assert sizes(ds) == WAS
    assert {info.path for info in ds._storage.files_in("")} == before
    ds.update(3, {"size": 1})  # its file has no vector
    assert sizes(ds) == WAS | {3: 1}


def test_where_writers_agree_by_a_lock_a_commit_without_it_is_refused(ds, s3):
    locked = {**s3.options, "AWS_S3_LOCKING_PROVIDER": "dynamodb"}
    assert not direct_commit.may_commit(Storage(ds.uri, locked))
    assert not direct_commit.may_commit(Storage("gs://bucket/a"))


def test_a_version_that_is_there_is_never_replaced(ds):
    newest = ds.version
    with pytest.raises(direct_commit.CommitFailedError, match="is there already"):
        direct_commit.put_commit(ds._storage, newest, [{"commitInfo": {}}])
    assert sizes(ds) == WAS


def test_of_two_changes_of_one_sample_one_wins(ds, s3):
    other = tl.dataset(ds.uri, storage_options=s3.options)
    ds.update(15, {"size": 1})
    with pytest.raises(tl.ConcurrentWriteError, match="changed sample 15"):
        other.update([13, 15], {"size": 2})
    other.refresh()
    assert other.update([13, 15], {"size": 2}) == 2
    assert sizes(ds) == WAS | {13: 2, 15: 2}


@pytest.mark.parametrize("first", ["update", "append"])
def test_a_commit_that_comes_second_is_computed_anew(ds, s3, monkeypatch, first):
    """Somebody else commits between the newest version that was read and our request."""
    other = tl.dataset(ds.uri, storage_options=s3.options)
    put, left = direct_commit.put_commit, [first]

    def later(*args):
        if left:
            left.pop()
            with monkeypatch.context() as now:
                now.setattr(direct_commit, "put_commit", put)
                if first == "update":
                    other.update(13, {"size": 30})
                else:
                    other.extend({"size": [20], "name": ["n20"]})
        return put(*args)

    monkeypatch.setattr(direct_commit, "put_commit", later)
    assert ds.update(15, {"size": 50}) == 1
    assert sizes(ds) == WAS | {15: 50} | ({13: 30} if first == "update" else {20: 20})


WRITER = """
import json, sys
import tensorlake_spark as tl
url, number, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
ds = tl.dataset(url, storage_options=options, create=False)
print("ready", flush=True)
sys.stdin.readline()
try:
    ds.update([number, 18], {"size": 100 + number})
    print("won")
except tl.ConcurrentWriteError as error:
    print("told", "sample 18" in str(error))
ds.refresh()
ds.update(number, {"size": number + 1000})
"""


def test_of_two_processes_that_update_one_sample_one_is_told(ds, s3):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, ds.uri, str(number), json.dumps(dict(s3.options))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in (11, 12)
    ]  # fmt: skip
    assert [one.stdout.readline() for one in running] == ["ready\n"] * 2
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate(timeout=300) for one in running]
    assert sorted(out for out, _ in said) == ["told True\n", "won\n"], said
    assert [one.returncode for one in running] == [0, 0], said
    found = sizes(ds)
    assert found.pop(18) in (111, 112)
    assert found == {n: size for n, size in WAS.items() if n != 18} | {11: 1011, 12: 1012}


COMMIT = "^PUT .*_delta_log/0"


@pytest.fixture
def far(ds, road, s3):
    """The dataset by the road, for those who soon give up."""
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint, **PATIENCE}
    return tl.dataset(ds.uri, storage_options=options, create=False)


@pytest.mark.parametrize("verdict", ["drop", "error", "short", "reset"])
def test_a_commit_whose_answer_is_lost_is_made_once(ds, far, road, verdict):
    before = ds.version
    road.fault(verdict, COMMIT, times=1)
    assert far.update(15, {"size": 50}) == 1
    road.fault("")
    ds.refresh()
    assert ds.version == before + 1
    assert sizes(ds) == WAS | {15: 50}


@pytest.mark.parametrize("verdict", ["fail", "slow down"])
def test_a_commit_that_fails_once_is_repeated(ds, far, road, verdict):
    before = ds.version
    road.fault(verdict, COMMIT, times=1)
    assert far.update(15, {"size": 50}) == 1
    ds.refresh()
    assert ds.version == before + 1
    assert sizes(ds) == WAS | {15: 50}


@pytest.mark.parametrize("verdict", ["refuse", "fail"])
def test_a_commit_that_is_refused_changes_nothing(ds, far, road, verdict):
    road.fault(verdict, COMMIT)
    with pytest.raises(tl.StorageError) as caught:
        far.update(15, {"size": 50})
    assert str(caught.value).count("the store of") == 1
    assert ("may still be on its way" in str(caught.value)) == (verdict == "fail")
    road.fault("")
    assert sizes(ds) == WAS
    assert far.update(15, {"size": 60}) == 1
    assert sizes(ds) == WAS | {15: 60}


def test_checkpoints_are_written_and_read(ds):
    ds.update(19, {"size": 1})
    ds.update(19, {"size": 2})
    left = WAS | {19: 4}
    for number in (3, 4):
        mark(ds._storage, 0)
        ds.refresh()
        ds.update(19, {"size": number})
        del left[7 + number]
    names = {info.base_name for info in ds._storage.files_in("_delta_log")}
    assert f"{ds.version:020}.checkpoint.parquet" in names
    assert ds.version == 9
    mark(ds._storage, 0)
    assert sizes(ds) == {sid: size for sid, size in left.items() if sid != 12}
    ds.refresh()
    ds.update(19, {"size": 5})
    assert sizes(ds) == {sid: size for sid, size in left.items() if sid != 12} | {19: 5}
    found = Snapshot.open(ds._storage, kind=SAMPLES)
    assert (found.version, found.deletions) == (11, {})


@pytest.fixture
def plain(s3, url):
    found = tl.dataset(url, {"size": "int32", "name": "string"}, storage_options=s3.options)
    found.extend({"size": [*range(10)], "name": [f"n{n}" for n in range(10)]})
    return found


CHANGES = {
    "all files are others": lambda ds: ds.rename_column("size", "length"),
    "no file is another": lambda ds: ds.add_column("flag", "bool"),
    "some are": lambda ds: (ds.add_column("flag", "bool"), ds.append({"size": 10, "flag": True})),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("is_marked", [False, True])
def test_former_columns_come_back(plain, kind, is_marked):
    ds = plain
    at = ds.version
    CHANGES[kind](ds)
    if is_marked and kind != "no file is another":
        mark(ds._storage, 0)
        ds.refresh()
    ds.restore(at)
    assert [*ds.schema] == ["size", "name"]
    assert sizes(ds) == {n: n for n in range(10)}
    ds.append({"size": 11, "name": "n11"})
    assert ds.check(deep=True).ok
    assert ds["name"][:] == [f"n{n}" for n in [*range(10), 11]]


def test_former_columns_come_back_without_boto3_where_all_files_are_others(plain, monkeypatch):
    monkeypatch.setattr(s3_objects, "has_client", lambda: False)
    ds = plain
    at = ds.version
    CHANGES["all files are others"](ds)
    ds.restore(at)
    assert sizes(ds) == {n: n for n in range(10)}
    CHANGES["some are"](ds)
    with pytest.raises(tl.MissingDependencyError, match=r"former columns.*tensorlake-spark\[s3\]"):
        ds.restore(at)
    assert [*ds.schema] == ["size", "name", "flag"]
