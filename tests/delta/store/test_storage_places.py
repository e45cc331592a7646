"""URLs of Google and Azure reach the clients as they are; no such store is asked here."""

import pyarrow.fs as pafs
import pytest

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
