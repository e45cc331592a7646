"""The rules of a reader: hosts, addresses, folders, buckets, tokens."""

import pytest

from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.errors import ForbiddenLinkError, InvalidOptionError


def is_allowed(rules, url):
    try:
        rules.check_host(url)
    except ForbiddenLinkError:
        return False
    return True


@pytest.mark.parametrize(
    ("allow", "url", "expected"),
    [
        ([], "https://example.org/a", False),
        (["example.org"], "https://example.org/a", True),
        (["Example.ORG"], "http://EXAMPLE.org./a", True),
        (["example.org"], "https://www.example.org/a", False),
        (["example.org"], "https://example.org.evil.com/a", False),
        (["example.org"], "https://evil-example.org/a", False),
        (["example.org"], "https://example.org:8080/a", False),
        (["example.org:8080"], "https://example.org:8080/a", True),
        (["example.org:8080"], "https://example.org/a", False),
        (["*.example.org"], "https://a.b.example.org/a", True),
        (["*.example.org"], "https://example.org/a", False),
        (["*.example.org"], "https://evilexample.org/a", False),
        (["*"], "https://anything.org/a", True),
        (["*"], "https://anything.org:22/a", False),
        (["10.0.0.0/8"], "http://10.1.2.3/a", True),
        (["10.0.0.0/8"], "http://11.1.2.3/a", False),
        (["[::1]:8000"], "http://[::1]:8000/a", True),
        (["example.org"], "http://example.org@evil.com/a", False),
    ],
)
def test_hosts(allow, url, expected):
    assert is_allowed(LinkRules(allow_http=allow), url) is expected


PRIVATE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "224.0.0.1", "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:0:0:0:0:80ff:fffe", "no",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_are_not_connected_to(address):
    assert not LinkRules(allow_http=["*", "example.org"]).allows_address(address, 80)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are(address):
    assert LinkRules(allow_http=["*"]).allows_address(address, 443)


def test_a_private_address_is_named_with_its_port():
    rules = LinkRules(allow_http=["intranet.local", "10.0.0.0/8", "127.0.0.1:8000"])
    assert rules.allows_address("10.2.3.4", 80)
    assert rules.allows_address("::ffff:10.2.3.4", 443)
    assert rules.allows_address("127.0.0.1", 8000)
    assert not rules.allows_address("127.0.0.1", 80)
    assert not rules.allows_address("10.2.3.4", 22)


@pytest.mark.parametrize(
    "options",
    [
        {"allow_http": "example.org"}, {"allow_http": True}, {"allow_http": ["http://example.org"]},
        {"allow_http": ["a b"]}, {"allow_http": ["example.org/a"]}, {"allow_http": ["*x.org"]}, {"allow_http": [""]},
        {"allow_files": "x"}, {"allow_s3": [1]}, {"max_bytes": 0}, {"timeout": float("nan")}, {"redirects": -1},
        {"retries": True}, {"stall_timeout": "1"},
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options):
    with pytest.raises(InvalidOptionError):
        LinkRules(**options)


def test_buckets():
    LinkRules().check_bucket("any")
    LinkRules(allow_s3=["mine"]).check_bucket("mine")
    for allow in (False, [], ["mine"]):
        with pytest.raises(ForbiddenLinkError, match="'theirs'"):
            LinkRules(allow_s3=allow).check_bucket("theirs")


def test_a_token_is_for_its_host_and_not_for_all_to_read(monkeypatch):
    rules = LinkRules(allow_http=["*", "127.0.0.1:80"], tokens={"example.org": "A_TOKEN"})
    with pytest.raises(InvalidOptionError, match="A_TOKEN"):
        rules.token_of("https://example.org/a", "8.8.8.8")
    monkeypatch.setenv("A_TOKEN", "s3cr3t")
    assert rules.token_of("https://example.org/a", "8.8.8.8") == "s3cr3t"
    assert rules.token_of("http://example.org/a", "8.8.8.8") is None
    assert rules.token_of("http://example.org/a", "127.0.0.1") == "s3cr3t"
    assert rules.token_of("https://other.org/a", "8.8.8.8") is None
    assert "s3cr3t" not in repr(rules)
    monkeypatch.setenv("A_TOKEN", "two\r\nlines")
    with pytest.raises(InvalidOptionError) as caught:
        rules.token_of("https://example.org/a", "8.8.8.8")
    assert "lines" not in str(caught.value)


def test_options_are_not_shown():
    assert "s3cr3t" not in repr(LinkRules(storage_options={"AWS_SECRET_ACCESS_KEY": "s3cr3t"}))
