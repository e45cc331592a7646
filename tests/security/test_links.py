"""Links of a dataset from somebody else: none reaches a place that the reader does not allow."""

import os
import socket
import traceback

import pytest
from webserver import WebServer

from tensorlake_spark.datasets.links.fetching import describe_link, fetch_link, fetched
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.errors import ForbiddenLinkError, InvalidLinkError, StorageError

SECRET = "S3cr3t-wJalrXUtnFEMI"


@pytest.fixture
def inner():
    """A service of this machine that nobody outside should reach."""
    with WebServer() as server:
        server.pages["/latest/meta-data"] = SECRET.encode()
        yield server


def link(url):
    return [{"url": url, "size": None, "etag": None}]


def resolving(monkeypatch, *answers):
    """Let the resolver give one list of addresses after the other, and return what it was asked."""
    real, asked = socket.getaddrinfo, []

    def resolve(host, port, *arguments, **options):
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [one for address in addresses for one in real(address, port, *arguments, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_a_name_that_stands_for_this_machine(inner, monkeypatch):
    port = inner.host.partition(":")[2]
    for address in ("127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0"):
        resolving(monkeypatch, [address])
        with pytest.raises(ForbiddenLinkError, match="not public"):
            list(
                fetched(
                    link(f"http://images.example.org:{port}/latest/meta-data"),
                    LinkRules(allow_http=[f"*:{port}"]),
                )
            )
    assert inner.asked == []


def test_a_name_that_stands_for_another_address_when_it_is_asked_again(inner, monkeypatch):
    """What was checked is what is connected to: there is one look-up, and no second one to change."""
    port = inner.host.partition(":")[2]
    asked = resolving(monkeypatch, ["192.0.2.1", "203.0.113.9"], ["127.0.0.1"])
    with pytest.raises(ForbiddenLinkError):
        describe_link(
            f"http://images.example.org:{port}/x", LinkRules(allow_http=[f"*:{port}"], retries=0)
        )
    assert asked == ["images.example.org"]
    assert inner.asked == []


def test_a_public_address_beside_one_of_this_machine(inner, monkeypatch):
    port = inner.host.partition(":")[2]
    resolving(monkeypatch, ["127.0.0.1", "8.8.8.8", "::1"])
    rules = LinkRules(allow_http=[f"*:{port}"], retries=0, stall_timeout=0.2, timeout=0.2)
    with pytest.raises(StorageError):
        describe_link(f"http://images.example.org:{port}/x", rules)
    assert inner.asked == []


def test_a_redirect_into_the_network(inner):
    with WebServer() as outer:
        outer.moved["/a.jpg"] = inner.url("/latest/meta-data")
        with pytest.raises(ForbiddenLinkError):
            list(fetched(link(outer.url("/a.jpg")), LinkRules(allow_http=[outer.host])))
    assert inner.asked == []


def test_links_in_the_table_with_what_only_an_attacker_would_write(tmp_path):
    """They are parsed again when they are read, as somebody else may have written the table."""
    (tmp_path / "secret").write_text(SECRET)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "way").symlink_to(tmp_path / "secret")
    rules = LinkRules(allow_files=[str(tmp_path / "open")])
    for url in (
        f"{tmp_path}/secret", f"{tmp_path}/open/../secret", f"{tmp_path}/open/way", f"file://{tmp_path}/open/%2e%2e/secret",
        f"{tmp_path}/pipe", "/dev/zero", "/proc/self/environ",
    ):  # fmt: skip
        with pytest.raises(ForbiddenLinkError):
            fetch_link(url, None, None, rules)
    for url in (
        "../secret",
        "gopher://127.0.0.1/",
        "ftp://127.0.0.1/",
        "jar:file:/x",
        "",
        "-oProxyCommand=x",
    ):
        with pytest.raises(InvalidLinkError):
            fetch_link(url, None, None, rules)


def test_credentials_of_a_link_are_not_shown_when_somebody_else_stored_them():
    for url in (
        f"https://me:{SECRET}@example.org/a",
        f"https://example.org/a?X-Amz-Signature={SECRET}",
    ):
        with pytest.raises(InvalidLinkError) as caught:
            list(fetched(link(url), LinkRules(allow_http=["*"])))
        assert SECRET not in "".join(traceback.format_exception(caught.value))
