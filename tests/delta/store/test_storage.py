"""Places and their options, and what is done where a store fails; no server is needed."""

import json
import os
import pickle
import stat
import traceback
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

import tensorlake_spark as tl
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log import commit as commits
from tensorlake_spark.delta.log.data_file import discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, _s3, listed, reaching
from tensorlake_spark.writing import pipeline as put
from tensorlake_spark.writing import write as edit


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


SECRET = "wJalr/XUtnFEMI"
SECRETS_IN_URLS = [
    f"s3://somebody:{SECRET}@bucket/lake",
    f"s3a://AKIA:TOP/{SECRET}@bucket",
    f"s3://AKIA:123/{SECRET}@bucket",
    f"s3://{SECRET.replace('/', '')}@bucket/lake",
    f"https://me:{SECRET}@host/lake",
    f"abfss://container:{SECRET}@account.dfs.core.windows.net/lake",
    f"abfss://container@account.dfs.core.windows.net/lake?sv=1&sig={SECRET}",
    f"s3://bucket/lake%3Fsig={SECRET}",
    f"https://bucket.s3.amazonaws.com/lake?X-Amz-Signature={SECRET}",
]


@pytest.mark.parametrize("uri", SECRETS_IN_URLS)
def test_credentials_in_a_url_are_refused_and_not_printed(uri):
    with pytest.raises(tl.InvalidOptionError) as caught:
        tl.open(uri)
    said = "".join(traceback.format_exception(caught.value))
    assert SECRET.rsplit("/", 1)[-1] not in said


@pytest.mark.parametrize(
    "uri",
    [
        "abfss://container@account.dfs.core.windows.net/lake", "s3://bucket/me@home/lake",
        "hdfs://somebody@host:9000/lake", "hdfs://host:9000/me@home",
    ],
)  # fmt: skip
def test_a_sign_that_is_no_credential_may_be_in_a_url(uri):
    assert Storage(uri).uri == uri


BAD_ENDPOINTS = [f"http://me:{SECRET}@h:9", f"me:{SECRET}@h:9", f"https://h/?sig={SECRET}"]


@pytest.mark.parametrize("value", BAD_ENDPOINTS)
def test_credentials_in_an_endpoint_are_refused_and_not_printed(value, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with pytest.raises(tl.InvalidOptionError, match="AWS_ENDPOINT_URL has a user") as caught:
        Storage("s3://bucket/lake", {"AWS_ENDPOINT_URL": value})
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    with pytest.raises(tl.InvalidOptionError, match="the endpoint has a user") as caught:
        Storage("s3://bucket/lake")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("value", ["socks5://me:{}@h:9", "me:{}@h:9", "http://me:{}@h:x", "{}"])
def test_a_proxy_that_is_none_is_refused_and_not_printed(value):
    with pytest.raises(tl.InvalidOptionError, match="proxy_url is no URL of a proxy") as caught:
        Storage("s3://bucket/lake", {"proxy_url": value.format(SECRET.replace("/", ""))})
    assert "XUtn" not in "".join(traceback.format_exception(caught.value))


GIVEN = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": "IQoJb3JpZ2lu",
    "proxy_url": "http://me:pass%2Fword@proxy:3128",
}  # fmt: skip
OTHERS = "of-a-role"  # what the clients found by themselves, so that nobody here knows it
ANSWER = (
    "Kernel error: <Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message>"
    f"<Token-0>IQoJb3JpZ2lu</Token-0><Token-0>{OTHERS}</Token-0><AWSAccessKeyId>{OTHERS}</AWSAccessKeyId>"
    f"<StringToSign>{OTHERS}\n</StringToSign><CanonicalRequest>PUT\nx-amz-security-token:{OTHERS}"
)
TOLD = [
    ANSWER, f"no host h for AKIAIOSFODNN7, wJalr%2FXUtnFEMI, {SECRET} or IQoJb3JpZ2lu",
    "no way through http://me:pass%2Fword@proxy:3128, with pass/word",
    f"GET https://h/x?X-Amz-Signature={OTHERS}&X-Amz-Security-Token={OTHERS}&sig={OTHERS}",
]  # fmt: skip


@pytest.mark.parametrize("said", TOLD)
@pytest.mark.parametrize("kind", [DeltaError, OSError, CommitFailedError])
def test_no_credential_that_a_store_repeats_is_in_an_error_or_behind_it(said, kind):
    """Not in its causes either, which a traceback shows, nor in those of errors that were made from them."""
    storage = Storage("s3://bucket/lake", GIVEN)

    def fails():
        try:
            raise OSError(5, said)
        except OSError:
            raise kind(said)  # noqa: B904 # as where a repeat fails too

    def opens():
        try:
            fails()
        except (OSError, DeltaError) as error:
            raise tl.FormatError(f"no table: {error}") from error

    for call, expected in ((fails, tl.StorageError), (opens, tl.FormatError)):
        with pytest.raises(expected) as caught, reaching(storage):
            call()
        assert "s3://bucket/lake" in str(caught.value) or expected is tl.FormatError
        shown = "".join(traceback.format_exception(caught.value))
        assert "direct cause" in shown
        shown += repr(caught.value) + str(pickle.dumps(caught.value))
        for hidden in (*list(GIVEN.values())[:3], "wJalr%2FXUtnFEMI", "pass", OTHERS):
            assert hidden not in shown
    if said is ANSWER:
        told = "ExpiredToken: The provided token has expired"
        with pytest.raises(tl.StorageError, match=told), reaching(storage):
            fails()


def test_words_are_no_short_secrets():
    """A key such as "s" is not cut out of every word."""
    storage = Storage("s3://b/x", {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "s"})
    with pytest.raises(tl.StorageError, match=r"some time passes \*\*\*$"), reaching(storage):
        raise OSError("some time passes me")


MISSPELT = [
    ("AWS_SECRT_ACCESS_KEY", "aws_secret_access_key"), ("timout", "timeout"),
    ("backof_config.base", "backoff_config.base"), ("nonsense", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "near"), MISSPELT)
def test_an_option_that_nobody_knows_is_refused(name, near):
    with pytest.raises(tl.InvalidOptionError, match=f"{name}.*{near}") as caught:
        Storage("s3://bucket/lake", {name: SECRET})
    assert SECRET not in str(caught.value)


KNOWN = [
    "aws_bucket", "aws_checksum_algorithm", "aws_conditional_put", "conditional_put", "copy_if_not_exists",
    "AWS_DEFAULT_REGION", "default_region", "aws_disable_tagging", "aws_imdsv1_fallback",
    "aws_metadata_endpoint", "aws_request_payer", "aws_s3_express", "aws_unsigned_payload",
    "aws_endpoint_url_sts", "allow_http", "AWS_ALLOW_HTTP", "allow_invalid_certificates",
    "aws_allow_invalid_certificates", "proxy_excludes", "proxy_ca_certificate", "pool_idle_timeout",
    "pool_max_idle_per_host", "http1_only", "http2_only", "http2_keep_alive_interval", "randomize_addresses",
    "user_agent", "default_content_type", "AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER",
    "AWS_FORCE_CREDENTIAL_LOAD", "AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL_DYNAMODB",
    "DELTA_DYNAMO_TABLE_NAME", "max_concurrency", "concurrency_limit", "certificate_path", "worker_threads",
    "azure_storage_account_name", "google_bucket",
]  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_an_option_of_deltalake_or_its_client_is_taken(name):
    for form in (name, name.upper(), name.lower()):
        Storage("s3://bucket/lake", {form: "1"})


@pytest.mark.parametrize("value", [True, "True", "1", "ON", "yes", "y"])
def test_what_deltalake_takes_for_true_is_true_for_the_data_files_too(value):
    given = {"AWS_REGION": "x", "AWS_SKIP_SIGNATURE": value, "virtual_hosted_style_request": value}
    client = Storage("s3://bucket/lake", given).place[0].__reduce__()[1][0]
    assert client["anonymous"]
    assert client["force_virtual_addressing"]


@pytest.mark.parametrize("value", [False, "FALSE", "0", "off", "no", "n"])
def test_what_deltalake_takes_for_false_is_false_for_the_data_files_too(value):
    storage = Storage("s3://bucket/lake", {"AWS_REGION": "x", "AWS_SKIP_SIGNATURE": value})
    assert not storage.place[0].__reduce__()[1][0]["anonymous"]


def test_a_word_that_is_neither_true_nor_false_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="AWS_SKIP_SIGNATURE='t' is neither"):
        Storage("s3://bucket/lake", {"aws_skip_signature": "t"})


@pytest.mark.parametrize("value", [None, b"a-secret", {"a-secret": 1}])
def test_an_option_that_is_no_text_is_refused_and_not_printed(value):
    """None would be the word for a token; a number and a truth value are text as they are printed."""
    with pytest.raises(tl.InvalidOptionError, match="AWS_SESSION_TOKEN is of type") as caught:
        tl.open("s3://bucket/lake", storage_options={"AWS_SESSION_TOKEN": value})
    assert "a-secret" not in str(caught.value)
    with pytest.raises(tl.InvalidOptionError, match="storage_options are of type") as caught:
        tl.open("s3://bucket/lake", storage_options=["a-secret", value])
    assert "a-secret" not in str(caught.value)
    assert Storage("s3://b/x", {"max_retries": 3}).options == {"max_retries": "3"}


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


def orphans(lake):
    """Data files that no commit of the log has ever named."""
    log = [p.read_text().splitlines() for p in Path(lake.uri).glob("_delta_log/*.json")]
    named = {a["add"]["path"] for lines in log for a in map(json.loads, lines) if "add" in a}
    return {path.name for path in Path(lake.uri).glob("*.parquet")} - named


def test_a_writer_that_loses_every_commit_gives_up(lake, monkeypatch):
    """Others win each version before it; the last try is one of a bounded number."""
    before = lake.write("x", np.arange(3)).version
    other, commit_once, tries = Storage(lake.uri), commits._commit_once, []

    def beaten(snapshot, change):
        tries.append(snapshot.version)
        commit_once(Snapshot.open(other), commits.Change({}, []))
        commit_once(snapshot, change)

    monkeypatch.setattr(commits, "ATTEMPTS", 4)
    monkeypatch.setattr(commits, "_commit_once", beaten)
    with pytest.raises(tl.ConcurrentWriteError, match="other writers won 4 commits in a row"):
        lake.write("x", np.arange(3), mode="append")
    assert tries == [before, before + 1, before + 2, before + 3]
    assert lake["x"][:].tolist() == [0, 1, 2]
    assert orphans(lake) == set()


def test_a_change_that_is_computed_anew_too_often_gives_up(lake, monkeypatch):
    """An append beside a writer of the same tensor, a partial write beside one who moves its files."""
    lake.write("x", np.arange(3))
    commit, other, busy = put.commit, tl.open(lake.uri), []

    def behind(work):
        def late(storage, change):
            if not busy:
                busy.append(change)
                work()
                busy.clear()
            return commit(storage, change)

        return late

    def move():
        other.write("y", np.arange(3), mode="append")
        assert other.optimize().files_after == 1

    for module in (edit, put):
        monkeypatch.setattr(module, "RECOMPUTE", 3)
    monkeypatch.setattr(put, "commit", behind(lambda: other.write("x", [9], mode="append")))
    with pytest.raises(tl.ConcurrentWriteError, match="during each of 3 attempts to write it"):
        lake.write("x", np.arange(3), mode="append")
    assert lake["x"][:].tolist() == [0, 1, 2, 9, 9, 9]
    monkeypatch.setattr(put, "commit", behind(move))
    with pytest.raises(tl.ConcurrentWriteError, match="moved during each of 3 attempts"):
        lake["x"][0] = 7
    assert lake["y"].shape == (9,), "once for each attempt"
    assert lake["x"][:].tolist() == [0, 1, 2, 9, 9, 9]
    assert orphans(lake) == set()


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
    "Invalid Checkpoint: Had a _last_checkpoint hint but didn't find any checkpoints",
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

    if said in GAPS[:-1] or (said in GAPS and there):
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
