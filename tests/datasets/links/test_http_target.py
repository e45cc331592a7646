"""Links to a real web server of this machine: ranges, changes, redirects, too large, too slow, not allowed."""

import socket
import traceback
from dataclasses import replace
from threading import Thread

import pytest
from webserver import WebServer

from tensorlake_spark.datasets.links.fetching import describe_link, fetch_link, read_link
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.errors import (
    ChangedLinkError,
    ForbiddenLinkError,
    MissingLinkError,
    StorageError,
)


def fetched(web, rules, path):
    facts = describe_link(web.url(path), rules)
    return fetch_link(facts.url, facts.size, facts.etag, rules)


@pytest.mark.parametrize(
    "odd", ["", "no-head", "no-etag", "no-size", "no-range", "dated", "no-head no-range"]
)
def test_a_target_comes_back_whole_and_by_ranges(web, rules, odd):
    web.odd["/a.jpg"] = odd
    data = web.pages["/a.jpg"]
    facts = describe_link(web.url("/a.jpg"), rules)
    assert facts.size == (None if "no-size" in odd else len(data))
    assert (facts.etag is None) == ("no-etag" in odd)
    assert fetch_link(facts.url, facts.size, facts.etag, rules) == data
    for start, stop in [
        (0, 10),
        (300, 700),
        (10_000, 20_000),
        (5, 5),
        (20_000, 30_000),
        (17, None),
        (0, None),
    ]:
        assert read_link(facts.url, facts.size, facts.etag, rules, start, stop) == data[start:stop]


def test_a_range_is_asked_for_and_nothing_else(web, rules):
    read_link(web.url("/a.jpg"), None, None, rules, 100, 200)
    ((method, _, headers),) = web.asked
    assert (method, headers["Range"], headers["Accept-Encoding"]) == (
        "GET",
        "bytes=100-199",
        "identity",
    )
    assert headers["Host"] == web.host


@pytest.mark.parametrize("data", [b"x", b"y" * 10240, b"z" * 20000])
@pytest.mark.parametrize("odd", ["", "no-size"])
def test_a_changed_target_is_an_error_with_both_etags(web, rules, data, odd):
    web.odd["/a.jpg"] = odd
    facts = describe_link(web.url("/a.jpg"), rules)
    web.pages["/a.jpg"] = data
    now = describe_link(web.url("/a.jpg"), rules)
    for start, stop in [(0, None), (3, 5)]:
        with pytest.raises(ChangedLinkError) as caught:
            read_link(
                facts.url, facts.size, facts.etag, rules, start, stop, "column 'image', sample 7"
            )
        assert str(caught.value).startswith("column 'image', sample 7: ")
        assert repr(facts.etag) in str(caught.value)
        assert repr(now.etag) in str(caught.value)
    assert (
        fetch_link(
            facts.url, facts.size, facts.etag, LinkRules(allow_http=[web.host], verify=False)
        )
        == data
    )


def test_a_changed_target_without_an_etag_is_found_by_its_size(web, rules):
    web.odd["/a.jpg"] = "no-etag"
    facts = describe_link(web.url("/a.jpg"), rules)
    web.pages["/a.jpg"] += b"more"
    with pytest.raises(ChangedLinkError):
        fetch_link(facts.url, facts.size, facts.etag, rules)
    web.odd["/a.jpg"] = "no-etag no-size"  # the answer itself has to show it
    with pytest.raises(StorageError, match="more than 10240 bytes"):
        fetch_link(facts.url, facts.size, facts.etag, rules)
    web.pages["/a.jpg"] = b"less"
    with pytest.raises(ChangedLinkError, match="4 bytes came"):
        fetch_link(facts.url, facts.size, facts.etag, rules)


def test_a_date_is_compared_with_a_date(web, rules):
    web.odd["/a.jpg"] = "no-etag dated"
    facts = describe_link(web.url("/a.jpg"), rules)
    assert facts.etag == "Tue, 15 Nov 1994 12:45:26 GMT"
    web.odd["/a.jpg"] = "dated"  # later the server has ETags, too
    assert fetch_link(facts.url, facts.size, facts.etag, rules) == web.pages["/a.jpg"]


def test_nothing_that_shows_a_change_is_refused_at_the_door(web, rules):
    web.odd["/a.jpg"] = "no-etag no-size"
    with pytest.raises(StorageError, match="neither size nor ETag"):
        describe_link(web.url("/a.jpg"), rules)


def test_a_target_that_is_gone(web, rules):
    facts = describe_link(web.url("/a.jpg"), rules)
    del web.pages["/a.jpg"]
    with pytest.raises(
        MissingLinkError, match=r"sample 7: .*a\.jpg.*404.*10240 bytes and the ETag"
    ):
        fetch_link(facts.url, facts.size, facts.etag, rules, "sample 7")


def test_hosts_are_off_unless_they_are_named(web):
    for allow in ([], ["example.org"], ["127.0.0.1"], ["127.0.0.1:1"]):
        with pytest.raises(ForbiddenLinkError, match="allow_http"):
            describe_link(web.url("/a.jpg"), LinkRules(allow_http=allow))
    assert web.asked == []


def test_the_address_counts_whatever_the_name(web):
    port = web.host.partition(":")[2]
    url = f"http://localhost:{port}/a.jpg"
    with pytest.raises(ForbiddenLinkError, match="not public"):
        describe_link(url, LinkRules(allow_http=[f"localhost:{port}"]))
    assert web.asked == []
    assert describe_link(url, LinkRules(allow_http=[f"localhost:{port}", web.host])).size == 10240


@pytest.mark.parametrize("number", ["2130706433", "0x7f.1", "127.1", "017700000001"])
def test_odd_ways_to_write_an_address_reach_nobody(web, number):
    port = web.host.partition(":")[2]
    with pytest.raises((ForbiddenLinkError, StorageError)):
        describe_link(
            f"http://{number}:{port}/a.jpg", LinkRules(allow_http=[f"*:{port}"], retries=0)
        )
    assert web.asked == []


def test_a_redirect_is_followed_where_it_is_allowed(web, rules):
    web.moved |= {"/old": "/older", "/older": web.url("/a.jpg?size=1")}
    assert fetched(web, rules, "/old") == web.pages["/a.jpg"]


def test_a_redirect_to_another_host_is_not(web, rules):
    with WebServer() as other:
        other.pages["/b"] = b"inner"
        for place in (
            other.url("/b?sig=S3cr3t"),
            f"//{other.host}/b",
            "http://169.254.169.254/latest",
            "https://example.org/",
        ):
            web.moved["/old"] = place
            with pytest.raises(ForbiddenLinkError) as caught:
                describe_link(web.url("/old"), rules)
            assert "S3cr3t" not in "".join(traceback.format_exception(caught.value))
        assert other.asked == []


@pytest.mark.parametrize(
    "place",
    [
        "file:///etc/passwd",
        "s3://bucket/a",
        "gopher://x",
        "http://me:S3cr3t@127.0.0.1/",
        "http://[",
        "",
    ],
)
def test_a_redirect_to_something_else_is_not(web, rules, place):
    web.moved["/old"] = place
    with pytest.raises((ForbiddenLinkError, StorageError)) as caught:
        describe_link(web.url("/old"), rules)
    assert "S3cr3t" not in "".join(traceback.format_exception(caught.value))


def test_a_circle_of_redirects_ends(web, rules):
    web.moved |= {"/x": "/y", "/y": "/x"}
    with pytest.raises(StorageError, match="more than 5 times"):
        describe_link(web.url("/x"), rules)
    assert len(web.asked) == 6


def test_a_token_goes_to_its_host_only(web, monkeypatch):
    monkeypatch.setenv("WEB_TOKEN", "s3cr3t")
    with WebServer() as other:
        other.pages["/b"] = b"b"
        web.moved["/old"] = other.url("/b")
        rules = LinkRules(allow_http=[web.host, other.host], tokens={web.host: "WEB_TOKEN"})
        assert fetched(web, rules, "/old") == b"b"
        assert {headers.get("Authorization") for _, _, headers in web.asked} == {"Bearer s3cr3t"}
        assert {headers.get("Authorization") for _, _, headers in other.asked} == {None}


@pytest.mark.parametrize("odd", ["", "no-size"])
def test_a_target_that_is_too_large(web, odd):
    web.odd["/a.jpg"] = odd
    rules = LinkRules(allow_http=[web.host], max_bytes=10_000)
    with pytest.raises(StorageError, match=r"max_bytes|more than 10000 bytes"):
        fetch_link(web.url("/a.jpg"), None, None, rules)
    assert len(read_link(web.url("/a.jpg"), None, None, rules, 0, 10_000)) == 10_000


@pytest.mark.parametrize("odd", ["drip", "hang"])
def test_a_slow_server_is_not_waited_for(web, odd):
    web.odd["/a.jpg"] = odd
    rules = LinkRules(allow_http=[web.host], timeout=0.6, stall_timeout=0.3, retries=0)
    with pytest.raises(
        StorageError, match="too slow"
    ):  # else "drip" ends after minutes, and is right
        fetch_link(web.url("/a.jpg"), None, None, rules)


def test_an_answer_that_breaks_off(web, rules):
    web.odd["/a.jpg"] = "short"
    with pytest.raises(StorageError, match="broke off after 5120 bytes"):
        fetch_link(web.url("/a.jpg"), None, None, rules)


def test_a_busy_server_is_asked_again(web, rules):
    web.odd["/a.jpg"] = "busy"
    web.busy = 2
    assert (
        fetch_link(web.url("/a.jpg"), None, None, LinkRules(allow_http=[web.host]))
        == web.pages["/a.jpg"]
    )
    web.busy = 2
    with pytest.raises(StorageError, match="503"):
        fetch_link(web.url("/a.jpg"), None, None, rules)


def test_bytes_that_are_coded_are_not_taken_for_the_target(web, rules):
    web.odd["/a.jpg"] = "gzip"
    with pytest.raises(StorageError, match="gzip"):
        describe_link(web.url("/a.jpg"), rules)


def test_a_server_that_is_not_there(web, rules):
    url = web.url("/a.jpg")
    web.__exit__()
    with pytest.raises(StorageError, match="does not answer"):
        fetch_link(url, None, None, rules)


def test_a_server_that_closes_before_it_answers(rules):
    # The error of such a server has no text of the system.
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=_hang_up, args=(server, 1 + rules.retries), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a.jpg"
        named = replace(rules, allow_http=[url.split("/")[2]])
        with pytest.raises(StorageError, match="does not answer: Remote end closed connection"):
            describe_link(url, named)


def _hang_up(server, times):
    for _ in range(times):
        with server.accept()[0] as connection:
            connection.recv(1 << 16)


def test_a_server_that_speaks_no_tls(web, rules):
    with pytest.raises(StorageError, match="does not answer"):
        fetch_link(web.url("/a.jpg").replace("http:", "https:"), None, None, rules)


def test_proxies_of_the_environment_are_not_asked(web, rules, monkeypatch):
    with WebServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        assert fetched(web, rules, "/a.jpg") == web.pages["/a.jpg"]
        assert proxy.asked == []


def test_a_name_with_spaces_and_other_letters(web, rules):
    web.pages["/gr%C3%BC%20n.jpg"] = b"green"
    assert fetched(web, rules, "/grü n.jpg?größe=1") == b"green"


@pytest.mark.parametrize(
    "host", ["a" * 70 + ".org", "a..org", "xn--\u00fc.org", "no-such-host.invalid"]
)
def test_hosts_that_are_none(host):
    with pytest.raises((ForbiddenLinkError, StorageError)):
        describe_link(f"http://{host}/a.jpg", LinkRules(allow_http=["*"], retries=0))
