"""URLs of Google and Azure reach the clients as they are; no such store is asked here."""

import pyarrow.fs as pafs
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.parametrize(
    ("uri", "client", "path", "options"),
    [
        ("gs://bucket/a/lake", "GcsFileSystem", "bucket/a/lake", {"GOOGLE_SERVICE_ACCOUNT": "/k.json"}),
        ("abfss://box@account.dfs.core.windows.net/a/lake", "AzureFileSystem", "box/a/lake", {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}),
    ],
)  # fmt: skip
def test_google_and_azure_pass_through(uri, client, path, options):
    """pyarrow gets the URL alone, deltalake the URL and its options, with the time-outs of all stores."""
    storage = Storage(uri, options)
    filesystem, found = storage.place
    assert (type(filesystem), found) == (getattr(pafs, client), path)
    assert (storage.uri, storage.is_local) == (uri, False)
    assert options.items() <= storage.log_options.items()
    assert "timeout" in storage.log_options


@pytest.mark.parametrize(
    "uri", ["s3:/bucket/lake", "gs:/bucket/lake", "hdfs:/lake", "http:/host/lake"]
)
def test_a_url_with_one_slash_is_no_folder(uri, tmp_path, monkeypatch):
    """A folder of the name ``s3:`` was made in the folder of the process, and the data written there."""
    monkeypatch.chdir(tmp_path)
    scheme = uri.partition(":")[0]
    for door in (tl.open, tl.dataset):
        with pytest.raises(
            tl.InvalidOptionError, match=f"has one slash where a URL has two; write {scheme}://"
        ):
            door(uri)
    for door in (tl.open, tl.dataset):
        with pytest.raises(
            tl.InvalidOptionError, match=r"the place of the table is b'lake' \(bytes\)"
        ):
            door(b"lake")
    for same in ("file:/a/lake", "file:///a/lake", "file://localhost/a/lake", "FILE:///a/lake"):
        assert Storage(same).uri == "/a/lake"
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("file://data/lake", "the host 'data'; a folder of this machine has three slashes"),
        ("s3://", "begins with s3:// and names no bucket; write it as s3://bucket/lake"),
        ("s3a:///lake", "begins with s3a:// and names no bucket"),
        ("a\0b", r"'a\\x00b' has a character of code 0"),
    ],
)
def test_a_place_that_no_file_system_has(uri, says):
    """The first was the folder /lake, and the second an error of os.listdir."""
    for door in (tl.open, tl.dataset):
        with pytest.raises(tl.InvalidOptionError, match=says):
            door(uri)
