"""A version of a table, and logs that have none."""

import json
from pathlib import Path

import numpy as np
import pytest
from deltalake.exceptions import DeltaError

import tensorlake_spark as tl
from tensorlake_spark.delta.log import snapshot as snapshots
from tensorlake_spark.delta.log.actions import LAST_CHECKPOINT, LOG, commit_name
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.plain import plain_table
from tensorlake_spark.delta.plain.plain_table import PlainTable
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.local_disk
def test_a_log_with_a_lost_version_is_no_table(lake):
    for i in range(4):
        lake.write(f"x{i}", np.zeros(2))
    Path(lake.uri, commit_name(2)).unlink()
    said = rf"its log lacks {commit_name(2)}; bring it back from a backup$"
    for call in (lambda: tl.open(lake.uri), lambda: PlainTable(Storage(lake.uri))):
        with pytest.raises(tl.FormatError, match=said):
            call()


@pytest.mark.local_disk
@pytest.mark.parametrize("content", [b"", None])
def test_a_log_does_without_a_last_checkpoint_that_is_not_there(lake, content):
    """As a copy of a table leaves it that was ended too early."""
    lake.write("x", np.arange(3))
    Snapshot.open(Storage(lake.uri)).table.create_checkpoint()
    (path,) = Path(lake.uri, LOG).glob("*.checkpoint.parquet")
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(tl.FormatError, match=f"{LAST_CHECKPOINT} names .* delete that file"):
        tl.open(lake.uri)
    Path(lake.uri, LAST_CHECKPOINT).unlink()
    assert tl.open(lake.uri)["x"][:].tolist() == [0, 1, 2]


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("protocol", {"minWriterVersion": "x"}),
        ("protocol", {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": 5}),
        ("metaData", {"partitionColumns": ["id"]}),
    ],
)
def test_a_first_commit_that_contradicts_the_protocol_is_an_error_of_ours(lake, kind, changes):
    """Files of a table that is parted by a column that must not be null have no value of it here."""
    lake.write("x", np.arange(3))
    path = Path(lake.uri, commit_name(0))
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        action.get(kind, {}).update(changes)
    path.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(tl.FormatError, match="cannot be opened"):
        tl.open(lake.uri)


def test_a_checkpoint_that_this_user_may_not_read_is_no_bad_table(tmp_path, monkeypatch):
    tl.open(tmp_path).write("x", [1])
    said = "Kernel error: Unable to open file 0.checkpoint.parquet: Permission denied (os error 13)"

    def refuse(*args, **options):
        raise DeltaError(said)

    for module in (snapshots, plain_table):
        monkeypatch.setattr(module, "DeltaTable", refuse)
    monkeypatch.setattr(snapshots, "replay_all", lambda *args: None)
    for call in (lambda: tl.open(tmp_path), lambda: PlainTable(Storage(str(tmp_path)))):
        with pytest.raises(
            tl.StorageError, match=r"0\.checkpoint\.parquet: Permission.*; give this"
        ):
            call()
