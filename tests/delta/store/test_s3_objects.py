"""Objects that boto3 makes on a real server, unless they are there, and what is said without boto3."""

import uuid

import numpy as np
import pytest
from botocore.exceptions import SSLError
from s3faults import PATIENCE

import tensorlake_spark as tl
from tensorlake_spark.delta.store import s3_objects
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def storage(s3):
    return Storage(f"s3://bucket/{uuid.uuid4()}/a lake", {**s3.options, **PATIENCE})


def test_an_object_is_made_once(storage):
    assert s3_objects.put_new(storage, "log/a b.json", b"first")
    assert not s3_objects.put_new(storage, "log/a b.json", b"second")
    assert storage.read_whole("log/a b.json") == b"first"


def test_an_object_that_is_there_with_the_same_bytes_was_made_by_us(storage):
    """A proxy, or the store, may get one request twice; the first answer is lost then."""
    assert s3_objects.put_new(storage, "one.json", b"mine, with a number that nobody else has")
    assert s3_objects.put_new(storage, "one.json", b"mine, with a number that nobody else has")


def test_a_bucket_without_folders(s3):
    name = f"top-{uuid.uuid4()}"
    storage = Storage(s3.make_bucket(name), s3.options)
    assert s3_objects.put_new(storage, "one.json", b"x")
    assert storage.read_whole("one.json") == b"x"


def test_a_name_outside_of_the_table_is_refused(storage):
    with pytest.raises(tl.FormatError, match="outside"):
        s3_objects.put_new(storage, "../one.json", b"x")


@pytest.mark.parametrize(
    ("verdict", "is_answer"), [("refuse", True), ("expired", True), ("slow down", False), ("drop", False)]
)  # fmt: skip
def test_what_the_store_says_is_an_error_without_credentials(
    s3, road, storage, caplog, verdict, is_answer
):
    """Only an answer says that the object will not be there later."""
    caplog.set_level("DEBUG")
    far = Storage(storage.uri, {**storage.options, "AWS_ENDPOINT_URL": road.endpoint})
    road.fault(verdict, "^PUT ")
    with pytest.raises(tl.StorageError, match="s3://bucket") as caught:
        s3_objects.put_new(far, "one.json", b"x")
    assert ("status code" in str(caught.value)) == is_answer
    assert len([line for line in road.requests() if line.startswith("PUT")]) == 1
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert s3.options[name] not in f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"


def test_a_store_without_such_a_request_is_told_apart(storage, road):
    far = Storage(storage.uri, {**storage.options, "AWS_ENDPOINT_URL": road.endpoint})
    road.fault("unknown", "^PUT ")
    assert s3_objects.put_new(far, "one.json", b"x") is None
    assert storage.find_whole("one.json") is None


def renewed_in_the_environment(monkeypatch, tmp_path, keys):
    for name, value in keys.items():
        monkeypatch.setenv(name, value)


def renewed_in_a_file(monkeypatch, tmp_path, keys):
    file = tmp_path / "credentials"
    lines = (f"{name.lower()} = {value}" for name, value in keys.items())
    file.write_text("\n".join(["[default]", *lines]))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))


@pytest.mark.parametrize("renew", [renewed_in_the_environment, renewed_in_a_file])
def test_new_keys_are_taken_without_a_new_process(storage, monkeypatch, tmp_path, renew):
    """As pyarrow and deltalake take them, from wherever they are but in the options."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    elsewhere = Storage(storage.uri, {k: v for k, v in storage.options.items() if k not in names})
    renew(monkeypatch, tmp_path, dict.fromkeys(names, "an-old-one"))
    with pytest.raises(tl.StorageError, match="status code 403"):
        s3_objects.put_new(elsewhere, "one.json", b"x")
    renew(monkeypatch, tmp_path, {name: storage.options[name] for name in names})
    assert s3_objects.put_new(elsewhere, "one.json", b"x")


def without_a_profile(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "one-that-is-not-there")


def without_an_authority(monkeypatch):
    def refused(*_):
        said = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed"
        raise SSLError(endpoint_url="https://host", error=said)

    monkeypatch.setattr(s3_objects, "_client", refused)


@pytest.mark.parametrize("takes_away", [without_a_profile, without_an_authority])
def test_where_boto3_cannot_ask_deltalake_commits(storage, monkeypatch, takes_away):
    """deltalake and pyarrow do not need a profile beside keys, and trust whom the system trusts."""
    takes_away(monkeypatch)
    assert s3_objects.put_new(storage, "one.json", b"x") is None
    assert storage.find_whole("one.json") is None
    lake = tl.open(storage.uri, storage_options=storage.options)
    lake.write("x", np.arange(3))
    assert lake["x"][...].tolist() == [0, 1, 2]


def test_without_boto3_the_error_names_the_extra(storage, monkeypatch):
    monkeypatch.setattr(s3_objects, "has_client", lambda: False)
    with pytest.raises(tl.MissingDependencyError, match=r"tensorlake-spark\[s3\].*REORG TABLE"):
        s3_objects.put_new(storage, "one.json", b"x")
    assert storage.find_whole("one.json") is None
