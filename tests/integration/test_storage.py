"""Places and their options, and what is done where a store fails; no server is needed."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

import tensorlake_spark as tl
from tensorlake_spark.delta import commit as commits
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage, _s3, listed
from tensorlake_spark.delta.write import FileWriter, discard


@pytest.mark.parametrize("name", ["a b", "ü", "a+b", "50%", "a?b#c"])
def test_odd_names_of_folders(tmp_path, name):
    for uri in (tmp_path / name, (tmp_path / name).as_uri(), f"file:{tmp_path}/{name}"):
        tl.open(uri).write("x", np.arange(3), mode="append")
    assert tl.open(tmp_path / name)["x"][:].tolist() == [0, 1, 2] * 3
    assert (tmp_path / name / "_delta_log").is_dir()


@pytest.mark.parametrize(
    "uri", ["/tmp/a%20b", "s3://bucket/a%20b", "s3://bucket/a?b", "gs://a/b#c"]
)
def test_a_place_that_deltalake_would_take_for_another_is_refused(uri):
    """It decodes %20, and cuts a URL at ? and #: two lakes would become one."""
    with pytest.raises(tl.InvalidOptionError, match="meaning of its own"):
        tl.open(uri)


def test_credentials_in_a_url_are_refused_and_not_printed():
    with pytest.raises(tl.InvalidOptionError) as caught:
        tl.open("s3://somebody:a-secret@bucket/lake")
    assert "a-secret" not in str(caught.value)
    Storage("abfss://container@account.dfs.core.windows.net/lake")


def test_an_endpoint_without_scheme_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="write http://localhost:9000 or https://"):
        Storage("s3://bucket/lake", {"aws_endpoint_url": "localhost:9000"})


def test_encryption_that_would_miss_the_data_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="AWS_SSE_KMS_KEY_ID"):
        Storage("s3://bucket/lake", {"AWS_SSE_KMS_KEY_ID": "a-key"})


def test_options_reach_the_client_of_the_data_files(monkeypatch):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of somebody else's keys")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "from the environment")

    def client(**options):
        return _s3(options).__reduce__()[1][0]

    given = client(
        aws_access_key_id="me", secret_access_key="s", AWS_REGION="x", endpoint="http://a:1"
    )
    assert (given["access_key"], given["secret_key"], given["region"]) == ("me", "s", "x")
    assert (given["endpoint_override"], given["scheme"]) == ("a:1", "http")
    assert not given["session_token"]
    assert client(access_key_id="me", secret_access_key="s")["region"] == "from the environment"
    assert not given["anonymous"]
    assert not given["force_virtual_addressing"]
    assert client(AWS_SKIP_SIGNATURE="true", AWS_REGION="x")["anonymous"]
    assert client(AWS_REGION="x", aws_virtual_hosted_style_request="true")[
        "force_virtual_addressing"
    ]


def test_a_folder_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(tl.TensorLakeError, match="lake"):
        tl.open(tmp_path / "lake").write("x", np.zeros(3))


def test_a_file_that_may_not_be_read_is_not_called_damaged(lake):
    ref = lake.write("x", np.ones(3))
    (path,) = Path(lake.uri).glob("*.parquet")
    path.chmod(0)
    user = os.geteuid()
    try:
        if not user:  # root may read everything
            os.seteuid(65534)
        with pytest.raises(tl.StorageError):
            ref[:]
    finally:
        os.seteuid(user)
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)


def test_discarding_asks_the_log_first(lake):
    lake.write("x", np.arange(9))
    storage = Storage(lake.uri)
    (live,) = Snapshot.open(storage).files.path
    (Path(lake.uri) / "part-orphan.parquet").write_bytes(b"PAR1")
    discard(storage, [live, "part-orphan.parquet", "part-never.parquet"])
    assert [p.name for p in Path(lake.uri).glob("*.parquet")] == [live]
    (Path(lake.uri) / "_delta_log" / "00000000000000000000.json").write_text("no JSON")
    discard(storage, [live])
    assert (Path(lake.uri) / live).exists(), "who cannot read the log deletes nothing"


def test_discarding_before_there_is_a_table(tmp_path):
    (tmp_path / "part-orphan.parquet").write_bytes(b"PAR1")
    discard(Storage(str(tmp_path)), ["part-orphan.parquet"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, DeltaError])
def test_a_commit_that_lands_and_raises_keeps_its_files(lake, monkeypatch, kind):
    lake.write("x", np.arange(3))
    commit_once = commits._commit_once

    def lands(*arguments):
        commit_once(*arguments)
        raise kind("the answer was lost")

    monkeypatch.setattr(commits, "_commit_once", lands)
    try:
        lake.write("x", np.arange(3), mode="append")
    except KeyboardInterrupt:
        assert kind is KeyboardInterrupt
    assert lake["x"][:].tolist() == [0, 1, 2, 0, 1, 2]
    assert lake.version == 2


def test_a_commit_that_does_not_land_deletes_its_files(lake, monkeypatch):
    lake.write("x", np.arange(3))

    def refuses(*_):
        raise OSError("no")

    monkeypatch.setattr(commits, "_commit_once", refuses)
    with pytest.raises(tl.StorageError, match=r"the store of .* no"):
        lake.write("x", np.arange(3), mode="append")
    assert len(list(Path(lake.uri).glob("*.parquet"))) == 1


def test_a_store_that_fails_in_the_middle_is_an_error_of_ours(lake, monkeypatch):
    class Full:
        closed = False

        def write(self, _):
            raise OSError(28, "No space left on device")

        def flush(self):
            pass

        def close(self):
            self.write(b"")

        def tell(self):
            return 0

    monkeypatch.setattr(Storage, "open_output", lambda *_: Full())
    with pytest.raises(tl.StorageError, match="No space left"):
        lake.write("x", np.arange(3))


GAPS = [
    "Expected contiguous commit files, but found gap",
    "No table metadata or protocol found in delta log.",
    "No files in log segment",
]


@pytest.mark.parametrize("said", [*GAPS, "another error"])
@pytest.mark.parametrize("there", [False, True])
def test_a_listing_with_a_gap_is_made_again(said, there):
    tries = []

    def call():
        tries.append(0)
        if len(tries) < 3:
            raise DeltaError(said)
        return "whole"

    if said in GAPS[:2] or (said in GAPS and there):
        assert listed(call, there) == "whole"
    else:
        with pytest.raises(DeltaError, match=said):
            listed(call, there)
        assert len(tries) == 1, "an empty place is no reason to wait"


@pytest.mark.parametrize("kind", [CommitFailedError, OSError])
def test_who_makes_the_table_second_uses_it(tmp_path, monkeypatch, kind):
    """The other one came between the look and the creation, or the creation's own answer was lost."""
    create = DeltaTable.create

    def second(*arguments, **options):
        create(*arguments, **options)
        raise kind("Protocol changed since last commit")

    monkeypatch.setattr(DeltaTable, "create", second)
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.arange(3))
    assert lake.version == 1
    assert lake["x"][:].tolist() == [0, 1, 2]


def test_a_table_that_cannot_be_made_is_an_error_of_ours(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr(DeltaTable, "create", fails)
    with pytest.raises(tl.StorageError, match="no room"):
        tl.open(tmp_path / "lake").write("x", np.arange(3))
    assert list(tl.open(tmp_path / "lake")) == []


def test_a_log_with_a_lost_version_is_no_table(lake):
    for i in range(4):
        lake.write(f"x{i}", np.zeros(2))
    (Path(lake.uri) / "_delta_log" / "00000000000000000002.json").unlink()
    with pytest.raises(tl.FormatError, match="contiguous"):
        tl.open(lake.uri)


def test_a_writer_that_never_wrote_aborts(lake):
    FileWriter(Storage(lake.uri)).abort()
