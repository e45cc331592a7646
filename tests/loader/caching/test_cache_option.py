"""The option ``cache``: a folder, and how much may be in it."""

from pathlib import Path

import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.caching.cache_option import DEFAULT_BYTES, parse_cache


@pytest.mark.parametrize(
    ("value", "folder", "size"),
    [
        ("/mnt/ssd/cache:50GB", "/mnt/ssd/cache", 50 * 10**9),
        ("/mnt/ssd/cache", "/mnt/ssd/cache", DEFAULT_BYTES),
        (Path("/mnt/a:b"), "/mnt/a:b", DEFAULT_BYTES),
        ("cache: 1.5 MB ", "cache", 1_500_000),
        ("a:b:512MiB", "a:b", 512 << 20),
        ("x:7", "x", 7),
    ],
)
def test_folder_and_size(value, folder, size):
    assert parse_cache(value) == (Path(folder), size)


def test_the_home_of_the_user(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert parse_cache("~/cache:1GB")[0] == Path("/home/somebody/cache")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ("/mnt/cache:", "is not a size"), ("/mnt/cache:big", "is not a size"), ("/mnt/cache:0GB", "is not a size"),
        ("/mnt/cache:-1GB", "is not a size"), ("C:/cache", "is not a size"), ("s3://bucket/cache", "is a URL"), (":5GB", "names no folder"),
        ("", "names no folder"), ("a\0b:5GB", "names no folder"), (5, "is not a folder"), (True, "is not a folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(value, match):
    with pytest.raises(InvalidOptionError, match=match):
        parse_cache(value)
