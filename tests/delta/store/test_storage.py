"""Places and their options, and what is done where a store fails; no server is needed."""

import errno
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from deltalake.exceptions import DeltaError

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage, _s3, listed, reaching, refusal
from tensorlake_spark.errors import DeniedStorageError, StorageError


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


@pytest.mark.local_disk
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


@pytest.mark.both_stores
def test_small_files_are_written_whole_and_found(place):
    storage = Storage(place)
    assert storage.find_whole("_tensorlake/a/note") is None
    assert storage.files_in("_tensorlake/a") == []
    for data in (b"one", b"another"):
        storage.put_whole("_tensorlake/a/note", data)
        assert storage.find_whole("_tensorlake/a/note") == data
    assert [info.base_name for info in storage.files_in("_tensorlake/a")] == ["note"]
    assert [info.base_name for info in storage.files_in("_tensorlake", recursive=True)] == ["note"]
    with pytest.raises(tl.FormatError, match="outside of its folder"):
        storage.put_whole("../note", b"")


@pytest.mark.parametrize("place", [3, None, ["lake"]])
@pytest.mark.parametrize("door", [tl.open, tl.dataset])
def test_a_place_that_is_no_path_is_named(door, place):
    with pytest.raises(
        tl.InvalidOptionError, match=r"the place of the table is .*name a folder"
    ) as raised:
        door(place)
    assert repr(place) in str(raised.value)


def test_a_scheme_that_names_no_store_is_a_wrong_place():
    with pytest.raises(
        tl.InvalidOptionError, match=r"^the place htp://a/b begins with htp://, which .*; begin"
    ):
        tl.open("htp://a/b")


def test_names_that_are_not_in_utf_8_are_refused(tmp_path):
    """deltalake's are always: with another locale, the log would lie in another folder than the data."""
    code = f"import tensorlake_spark as tl; tl.open({str(tmp_path)!r} + '/gr\\u00fcn')"
    set_to = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | set_to, capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1].endswith("set PYTHONUTF8=1, or LC_ALL=C.UTF-8")
    assert "tensorlake_spark.errors.InvalidOptionError" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_a_relative_path_where_the_folder_of_the_process_is_gone(tmp_path, monkeypatch):
    tl.open(tmp_path / "lake").write("x", np.arange(3))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for opened in (tl.open, tl.dataset):
        with pytest.raises(tl.InvalidOptionError, match="'lake' is a relative path"):
            opened("lake")
    assert tl.open(tmp_path / "lake")["x"][:].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (
            OSError(errno.EACCES, os.strerror(errno.EACCES)),
            DeniedStorageError,
            "give this user access to it, or take a copy",
        ),
        (
            DeltaError("Unable to open file x: Permission denied (os error 13)"),
            DeniedStorageError,
            "give this user access to it, or take a copy",
        ),
        (
            OSError(errno.EROFS, os.strerror(errno.EROFS)),
            StorageError,
            "its disk can only be read: mount it for writing, or write to a copy",
        ),
    ],
)
def test_what_this_user_may_not_do_is_told_with_what_to_do(tmp_path, error, kind, remedy):
    refused = refusal(Storage(str(tmp_path)), error)
    assert type(refused) is kind
    said = str(refused)
    assert said.startswith(f"the store of {tmp_path} refused a request")
    assert said.endswith(remedy)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_what_to_do(tmp_path, number):
    said = str(refusal(Storage(str(tmp_path)), OSError(number, os.strerror(number))))
    assert f"the disk of {tmp_path} is full" in said
    assert said.endswith("free some space, and do it again")


def test_a_panic_of_deltalake_in_a_forked_process_is_told(tmp_path):
    panic = type("PanicException", (BaseException,), {})
    with (
        pytest.raises(tl.InvalidOptionError, match=f"was forked .* {tmp_path} .*spawn"),
        reaching(Storage(str(tmp_path))),
    ):
        raise panic("Forked process detected - current PID is 2")
    with pytest.raises(panic, match="another"), reaching(Storage(str(tmp_path))):
        raise panic("another")
