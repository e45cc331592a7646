"""Tables that were not there yet."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError

import tensorlake_spark as tl
from tensorlake_spark.delta.log import creation
from tensorlake_spark.delta.log.actions import LOG, commit_name
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture(params=["here", "deltalake"])
def maker(request, tmp_path):
    """Who makes the table, as object and name of the function; deltalake does where there is a folder of a log."""
    if request.param == "here":
        return creation, "put_commit"
    (tmp_path / "lake" / LOG).mkdir(parents=True)
    return DeltaTable, "create"


@pytest.mark.parametrize("kind", [CommitFailedError, OSError])
def test_who_makes_the_table_second_uses_it(tmp_path, monkeypatch, maker, kind):
    """The other one came between the look and the creation, or the creation's own answer was lost."""
    create = getattr(*maker)

    def second(*arguments, **options):
        create(*arguments, **options)
        raise kind("Protocol changed since last commit")

    with monkeypatch.context() as patch:
        patch.setattr(*maker, second)
        lake = tl.open(tmp_path / "lake")
        lake.write("x", np.arange(3))
    assert lake.version == 1
    assert lake["x"][:].tolist() == [0, 1, 2]


def test_a_table_that_cannot_be_made_is_an_error_of_ours(tmp_path, monkeypatch, maker):
    def fails(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr(*maker, fails)
    with pytest.raises(tl.StorageError, match="no room"):
        tl.open(tmp_path / "lake").write("x", np.arange(3))
    assert list(tl.open(tmp_path / "lake")) == []


SCHEMAS = [
    pa.schema([pa.field("sid", pa.int64(), nullable=False), pa.field("a", pa.list_(pa.string()))]),
    pa.schema([("sid", pa.int64()), ("b", pa.struct([("c", pa.timestamp("us", "UTC"))]))]),
    pa.schema([pa.field("sid", pa.int64(), metadata={"name": '\N{SNOWMAN} \\ "'})]),
]


def protocol_of(table):
    """What a table asks for; features have no order."""
    return [{*part} if isinstance(part, list) else part for part in table.protocol()]


MORE = [{}, {"delta.enableChangeDataFeed": "true"}, {"delta.appendOnly": "true"}]


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_table_is_what_deltalake_makes(tmp_path, schema, more):
    properties = {"tensorlake.dataset": "1", "delta.checkpointInterval": "10", **more}
    create_table(Storage(str(tmp_path / "ours")), Schema.from_arrow(schema), properties, SAMPLES)
    DeltaTable.create(
        str(tmp_path / "theirs"), schema, configuration=properties, raise_if_key_not_exists=False
    )
    ours, theirs = (DeltaTable(tmp_path / name) for name in ("ours", "theirs"))
    assert protocol_of(ours) == protocol_of(theirs)
    assert ours.schema() == theirs.schema()
    for name in ("configuration", "name", "description", "partition_columns"):
        assert getattr(ours.metadata(), name) == getattr(theirs.metadata(), name)
    assert abs(ours.metadata().created_time - theirs.metadata().created_time) < 3_600_000
    assert ours.metadata().id != theirs.metadata().id
    history = ours.history()
    assert (len(history), history[0]["operation"]) == (1, "CREATE TABLE")
    said = [{*json.loads(line)} for line in
            Path(ours.table_uri.removeprefix("file://"), commit_name(0)).read_text().splitlines()]  # fmt: skip
    assert said == [{"commitInfo"}, {"protocol"}, {"metaData"}]


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("by_deltalake", [False, True])
def test_a_table_with_times_without_a_zone_names_what_its_version_stood_for(
    tmp_path, by_deltalake, more
):
    """deltalake leaves `invariants` out, and Spark then opens no table that has a column which takes no null."""
    if by_deltalake:
        (tmp_path / LOG).mkdir()
    sid = pa.field("sid", pa.int64(), nullable=False)
    schema = Schema.from_arrow(pa.schema([sid, ("local", pa.timestamp("us"))]))
    properties = {"tensorlake.dataset": "1", **more}
    made = create_table(Storage(str(tmp_path)), schema, properties, SAMPLES)
    protocol = DeltaTable(tmp_path).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ["timestampNtz"]
    assert {*protocol.writer_features} >= {"appendOnly", "invariants", "timestampNtz"}
    assert made.writer_features == {*protocol.writer_features}


def test_a_table_must_be_new(tmp_path):
    storage = Storage(str(tmp_path))
    create_table(storage, must_be_new=True)
    assert create_table(storage).version == 0
    with pytest.raises(tl.InvalidOptionError, match=r"a table at .* already; choose another place"):
        create_table(storage, must_be_new=True)


def test_a_file_system_without_hard_links_leaves_it_to_deltalake(tmp_path, monkeypatch):
    def refuses(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuses)
    storage = Storage(str(tmp_path / "lake"))
    assert create_table(storage).version == 0
    assert [*Path(storage.uri, LOG).iterdir()] == [Path(storage.uri, commit_name(0))]


def test_a_log_whose_first_commits_are_gone_is_not_begun_again(tmp_path):
    """As where they were dropped after a checkpoint."""
    lake = tl.open(tmp_path / "lake")
    for number in range(11):
        lake.write(f"t/{number}", np.zeros(2))
    for version in range(9):
        Path(lake.uri, commit_name(version)).unlink()
    assert create_table(Storage(lake.uri)).version == 11
    assert not Path(lake.uri, commit_name(0)).exists()
