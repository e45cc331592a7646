"""Links to files: changed, gone, no file at all, outside of what is allowed."""

import os

import pytest

from tensorlake_spark.datasets.links.fetching import describe_link, fetch_link, read_link
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.errors import (
    ChangedLinkError,
    ForbiddenLinkError,
    MissingLinkError,
    StorageError,
)

RULES = LinkRules()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a b.jpg"
    path.write_bytes(bytes(range(256)))
    return path


def test_a_file_comes_back(file):
    facts = describe_link(file, RULES)
    assert (facts.url, facts.size) == (str(file), 256)
    assert facts.etag == f"{file.stat().st_mtime_ns}-256"
    assert fetch_link(facts.url, facts.size, facts.etag, RULES) == file.read_bytes()
    assert read_link(facts.url, facts.size, facts.etag, RULES, 10, 20) == bytes(range(10, 20))
    assert read_link(facts.url, facts.size, facts.etag, RULES, 250, 300) == bytes(range(250, 256))
    assert read_link(facts.url, facts.size, facts.etag, RULES, 300, 400) == b""


@pytest.mark.parametrize("data", [bytes(256), b"longer" * 100, b""])
def test_a_changed_file_is_an_error_with_both_etags(file, data):
    facts = describe_link(file, RULES)
    os.utime(file, ns=(1, 1))  # so that the clock of the file system does not matter
    file.write_bytes(data)
    now = describe_link(file, RULES)
    with pytest.raises(ChangedLinkError) as caught:
        fetch_link(facts.url, facts.size, facts.etag, RULES, "column 'image', sample 7")
    assert str(caught.value).startswith("column 'image', sample 7: ")
    assert facts.etag in str(caught.value)
    assert now.etag in str(caught.value)
    assert fetch_link(facts.url, facts.size, facts.etag, LinkRules(verify=False)) == data


def test_a_file_that_is_gone(file):
    facts = describe_link(file, RULES)
    file.unlink()
    with pytest.raises(
        MissingLinkError, match=r"sample 7: .*a b.jpg.*256 bytes and the ETag"
    ) as caught:
        fetch_link(facts.url, facts.size, facts.etag, RULES, "sample 7")
    assert facts.etag in str(caught.value)
    with pytest.raises(FileNotFoundError):
        describe_link(file / "under", RULES)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(ForbiddenLinkError, match="no file"):
            describe_link(path, RULES)


def test_only_folders_that_are_allowed(file, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "x").write_bytes(b"x")
    (inner / "link").symlink_to(file)
    rules = LinkRules(allow_files=[str(inner)])
    assert describe_link(inner / "x", rules).size == 1
    for path in (file, inner / "link", inner / ".." / file.name, f"{inner}x"):
        with pytest.raises(ForbiddenLinkError, match="allow_files"):
            describe_link(path, rules)
    with pytest.raises(ForbiddenLinkError):
        describe_link(file, LinkRules(allow_files=False))


def test_a_file_that_is_too_large(file):
    rules = LinkRules(max_bytes=255)
    with pytest.raises(StorageError, match=r"256 bytes.*max_bytes=255"):
        describe_link(file, rules)
    with pytest.raises(StorageError, match="max_bytes"):
        fetch_link(str(file), None, None, rules)
    assert len(read_link(str(file), None, None, rules, 0, 100)) == 100
