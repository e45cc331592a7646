"""The log of a table, read as JSON and as Parquet."""

import json

import numpy as np
import pyarrow.fs as pafs
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.files import table_folder as folder
from tensorlake_spark.delta.log.actions import (
    COMMIT,
    LAST_CHECKPOINT,
    LOG,
    commit_name,
    json_actions,
    log_files,
    read_actions,
)
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

LEAVES = ("add.path", "remove.path", "txn.appId", "txn.version", "cdc.path")


def test_a_commit_and_its_version():
    assert commit_name(7) == "_delta_log/00000000000000000007.json"
    assert COMMIT.fullmatch(commit_name(7))[1] == f"{7:020}"
    assert not COMMIT.fullmatch(commit_name(7).replace(".json", ".checkpoint.json"))


def test_a_checkpoint_says_what_the_commits_said(tmp_path):
    lake = tl.open(tmp_path / "lake")
    for name in ("a", "b"):
        lake.write(name, np.arange(5))
    lake.delete("a")
    storage = Storage(lake.uri)
    snapshot = Snapshot.open(storage)
    snapshot.table.create_checkpoint()
    live: set[str] = set()
    transactions = set()
    for version in range(snapshot.version + 1):
        for kind, said in read_actions(storage, commit_name(version), LEAVES):
            if kind == "txn":
                transactions.add((said["appId"], said["version"]))
            elif kind == "add":
                live.add(said["path"])
            else:
                live.remove(said["path"])
    (name,) = (p.name for p in (tmp_path / "lake/_delta_log").glob("*.checkpoint.parquet"))
    found = list(read_actions(storage, f"_delta_log/{name}", LEAVES))
    assert {said["path"] for kind, said in found if kind == "add"} == live
    assert {(s["appId"], s["version"]) for kind, s in found if kind == "txn"} <= transactions
    assert live == set(snapshot.files.path)


def test_a_log_in_another_spelling_names_the_same_files(tmp_path):
    """Writers may put blanks anywhere, and a purge looks for files of old versions by their names."""
    lake = tl.open(tmp_path / "lake")
    ref = lake.write("a", np.arange(5))
    ref[2:] = 9
    storage = Storage(lake.uri)
    before = folder.named(storage, folder.listing(storage))
    assert sum(1 for naming in before.values() if naming.removed_at is not None) > 0
    for path in (tmp_path / "lake/_delta_log").glob("*.json"):
        lines = map(json.loads, path.read_text().splitlines())
        spelled = [json.dumps(line, separators=(" , ", " : ")) for line in lines]
        path.write_text("".join(f"{{{' ' * 40}{line[1:]}\n" for line in spelled))
    np.testing.assert_array_equal(tl.open(tmp_path / "lake")["a"][:], [0, 1, 9, 9, 9])
    assert folder.named(storage, folder.listing(storage)) == before


class Hiding:
    """Files of this machine, of which a folder is not there for the first `times` that it is listed."""

    def __init__(self, times):
        self.times = times

    def get_file_info(self, selector):
        self.times -= 1
        if self.times >= 0:
            raise FileNotFoundError(selector.base_dir)
        return pafs.LocalFileSystem().get_file_info(selector)


@pytest.mark.parametrize(("times", "found"), [(0, True), (2, True), (3, False)])
def test_a_log_that_a_store_does_not_show_at_once_is_asked_for_again(tmp_path, times, found):
    class Far(Storage):
        is_local = False
        place = Hiding(times), str(tmp_path)

    (tmp_path / LOG).mkdir()
    (tmp_path / LOG / "00000000000000000000.json").touch()
    if found:
        assert [info.base_name for info in log_files(Far(str(tmp_path)))] == [
            "00000000000000000000.json"
        ]
    else:
        with pytest.raises(FileNotFoundError):
            log_files(Far(str(tmp_path)))


@pytest.mark.parametrize(
    "said",
    [
        b"", b'{"version":', b"[]", b'"a"', b"{}", b'{"version": null}', b"\xff\xfe\x00",
        b'{"version": 3, "parts": 10000000000}', b'{"version": 3, "v2Checkpoint": 7}',
    ],
)  # fmt: skip
def test_a_last_checkpoint_that_says_nothing_of_use_is_as_none(tmp_path, said):
    """Its writer may have been killed: without the file a log is as whole as with it."""
    lake = tl.open(tmp_path / "lake")
    lake.write("a", np.arange(5))
    lake.tag("first")
    Snapshot.open(Storage(lake.uri)).table.create_checkpoint()
    (tmp_path / "lake" / LAST_CHECKPOINT).write_bytes(said)
    again = tl.open(lake.uri)
    assert again.tags() == {"first": 1}
    again.write("a", np.arange(2), mode="append")
    again.vacuum(dry_run=True)
    assert tl.open(lake.uri)["a"].shape == (7,)


@pytest.mark.parametrize(
    "line",
    [
        '{"txn": {"appId": "a"}}', '{"txn": {"appId": 3, "version": 1}}', '{"txn": "a"}',
        '{"txn": {"appId": "a", "version": "1"}}', '{"txn": {"appId": "a", "version": 1e400}}',
        '{"txn": {"appId": "a", "version": 1180591620717411303424}}', '{"add": {"path": 7}}', "3", "{",
    ],
)  # fmt: skip
def test_an_action_of_another_form_is_an_error_that_names_its_commit(line):
    with pytest.raises(tl.FormatError, match=r"^_delta_log/7\.json .*backup$"):
        [*json_actions(line.encode(), ("txn.appId", "add.path"), "_delta_log/7.json")]
    assert [*json_actions(b'{"commitInfo": "a text"}', ("commitInfo",))] == []
